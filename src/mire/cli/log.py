"""`mire log`: what happened: method executions, workflow runs, audit events."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import emit, nothing, open_store, plain, read_options, table

if TYPE_CHECKING:
    from mire.api import Store
    from mire.flow.record import Damaged

KINDS = ("output", "run", "audit")


@click.command("log", short_help="Show what happened, newest first.")
@click.option("--kind", type=click.Choice(KINDS), help="Only one kind.")
@click.option("--since", metavar="TIME", help="Only from this time on, e.g. 2026-05-17T00:00:00Z.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many, newest first."
)
@read_options
def command(kind: str | None, since: str | None, limit: int) -> None:
    """Show method executions, workflow runs and audit events, newest first."""
    from mire.flow.record import time_of
    from mire.model.instant import parse_instant

    start = None if since is None else parse_instant(since, "--since")
    store = open_store()
    events, damaged = _collect(store, kind)
    events = [event for event in events if start is None or time_of(event["time"] or None) >= time_of(start)]
    events.sort(key=lambda event: time_of(event["time"] or None), reverse=True)
    shown = events[:limit]
    document = {
        "events": shown,
        "total": len(events),
        "damaged": [{"path": item.path, "message": item.message} for item in damaged],
    }
    none = "nothing recorded yet"
    emit("log", document, lambda: _text(shown, len(events), damaged) or nothing(none, store.datastore))


def _collect(store: "Store", kind: str | None) -> tuple[list[dict[str, Any]], list["Damaged"]]:
    from mire.wire.record import event_document, output_document, run_document

    events: list[dict[str, Any]] = []
    damaged: list[Damaged] = []
    if kind in (None, "output"):
        outputs = store.outputs.list()
        damaged += outputs.damaged
        events += [
            {
                "kind": "output",
                "time": o.started_at,
                "what": f"{o.model_type} {o.method_name}",
                "status": o.status,
                "record": output_document(o),
            }
            for o in outputs
        ]
    if kind in (None, "run"):
        runs = store.runs.list()
        damaged += runs.damaged
        events += [
            {
                "kind": "run",
                "time": r.started_at or "",
                "what": r.workflow_name,
                "status": r.status,
                "record": run_document(r),
            }
            for r in runs
        ]
    if kind in (None, "audit"):
        audit = store.audit.list()
        damaged += audit.damaged
        for event in audit:
            record = event_document(event)
            what = (
                record.get("command") or f"{record.get('action')} {record.get('vaultName')}/{record.get('secretKey')}"
            )
            status = "" if record.get("exitCode") is None else f"exit {record['exitCode']}"
            events.append({"kind": "audit", "time": event.timestamp, "what": what, "status": status, "record": record})
    return events, damaged


def _text(shown: list[dict[str, Any]], total: int, damaged: list["Damaged"]) -> str:
    if not shown and not damaged:
        return ""
    lines = [table(["TIME", "KIND", "WHAT", "STATUS"], [[e["time"], e["kind"], e["what"], e["status"]] for e in shown])]
    if total > len(shown):
        lines.append(f"({total - len(shown)} more: raise --limit)")
    lines += [f"damaged: {plain(item.path)}: {plain(item.message)}" for item in damaged]
    return "\n".join(lines)
