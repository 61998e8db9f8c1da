"""`mire doctor`: prove on a store what mire relies on."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import common_options, emit, flags, plain, repo_dir, settings, table

if TYPE_CHECKING:
    from mire.model.config import Target
    from mire.model.doctor import Report


@click.command("doctor", short_help="Prove that a store can be trusted.")
@click.argument("url", required=False, metavar="[URL]")
@click.option("--paging", is_flag=True, help="Also prove listings of more than one page; writes 1,001 objects.")
@click.option("--allow-untrusted", is_flag=True, help="Accept a store that ignores conditions, for a single writer.")
@common_options
def command(url: str | None, paging: bool, allow_untrusted: bool) -> None:
    """Prove that a store can be trusted (exit 0 only then).

    URL is any datastore, such as s3://bucket/prefix, gs://bucket/prefix or file:///path; without it
    the datastore of the repository is examined. Conditions of writes and removals, reading back,
    listings, the clock and the format marker are tried on keys below _control/ that no program
    uses, and removed again. It takes seconds, and about 25 requests.
    """
    from mire.flow.doctor import diagnose

    target, origin = _target(url)
    report = diagnose(target, repo_dir=repo_dir(), origin=origin, paging=paging, allow_untrusted=allow_untrusted)
    # Where not even the first look succeeds there is nothing to tabulate: the error says it all.
    if report.error is not None and len(report.checks) == 1 and not settings().is_json:
        raise report.error
    emit("doctor", _document(report), lambda: _text(report))
    if report.error is not None:
        raise click.exceptions.Exit(report.error.exit_code)


def _target(url: str | None) -> tuple["Target", str]:
    from mire.flow.datastore import locate
    from mire.flow.doctor import NAMED, target_named

    if url is not None:
        return target_named(url, repo_dir=repo_dir()), NAMED
    config = locate(repo_dir(), flags=flags()).config
    return config.target, config.origin


def _document(report: "Report") -> dict[str, Any]:
    return {
        "datastoreType": report.datastore_type,
        "datastore": report.name,
        "healthy": report.is_healthy,
        "message": report.message,
        "latencyMs": round(report.latency_ms, 1),
        "details": report.details,
        "checks": [{"check": check.name, "result": check.result, "meaning": check.meaning} for check in report.checks],
    }


def _text(report: "Report") -> str:
    words = {"ok": "ok", "warn": "note", "fail": "FAIL", "skip": "-"}
    rows = [(check.name, words[check.result], check.meaning) for check in report.checks]
    verdict = report.message if report.is_healthy else "NOT SAFE: do not use it as it is"
    return f"{table(('CHECK', 'RESULT', 'MEANING'), rows)}\n\n{plain(report.name)}: {plain(verdict)}"
