"""`mire retain`: remove what lifetimes and version policies let go."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import common_options, emit, open_datastore, plain, size_text, table
from mire.cli.sparked import spark_options

if TYPE_CHECKING:
    from mire.flow.retain import Report


@click.command("retain", short_help="Remove what has expired and versions beyond the policy.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed; takes no lock, changes nothing.")
@click.option("--pipeline", is_flag=True, help="Look at the versions on Spark; what goes is the same.")
@spark_options
@common_options
def command(dry_run: bool, pipeline: bool, master: str | None) -> None:
    """Remove data whose lifetime is over, and versions beyond the version policy of their name.

    What 'mire hold' holds stays. A name with damaged metadata is left alone and reported.
    """
    from mire.flow.retain import retain

    if pipeline:
        from mire.cli.sparked import open_spark

        ds = open_datastore()
        with open_spark(master) as spark:
            from mire.pipeline.jobs.retain import retain_store

            report = retain_store(spark, ds, dry_run=dry_run)
    elif master is not None:
        raise click.UsageError("--master goes with --pipeline.")
    else:
        report = retain(open_datastore(), dry_run=dry_run)
    emit("retain", report_document(report), lambda: report_text(report))


def report_document(report: "Report") -> dict[str, Any]:
    """The report under the names `--json` uses."""
    return {
        "dryRun": report.is_dry_run,
        "namesRemoved": report.names_removed,
        "versionsRemoved": report.versions_removed,
        "bytesReclaimed": report.bytes_reclaimed,
        "removed": [
            {
                "modelType": item.model.model_type,
                "modelId": item.model.model_id,
                "name": item.name,
                "reason": item.reason,
                "versions": list(item.versions),
                "wholeName": item.is_whole_name,
                "bytes": item.size_bytes,
            }
            for item in report.decisions
        ],
        "findings": [
            {
                "modelType": item.model.model_type,
                "modelId": item.model.model_id,
                "name": item.name,
                "message": item.message,
            }
            for item in report.findings
        ],
    }


def report_text(report: "Report") -> str:
    """The report for people: what goes, what was left alone, the sums."""
    parts = []
    if report.decisions:
        rows = [
            [item.model, item.name, ranges(item.versions), item.reason, size_text(item.size_bytes)]
            for item in report.decisions
        ]
        parts.append(table(["MODEL", "NAME", "VERSIONS", "REASON", "SIZE"], rows))
    parts += [
        plain(f"note: {item.model}{'' if item.name is None else f' {item.name}'}: {item.message}")
        for item in report.findings
    ]
    verb = "would remove" if report.is_dry_run else "removed"
    parts.append(
        f"{verb} {_count(report.names_removed, 'name')}, {_count(report.versions_removed, 'version')},"
        f" {size_text(report.bytes_reclaimed)}"
    )
    return "\n".join(parts)


def ranges(numbers: tuple[int, ...]) -> str:
    """Ascending numbers, runs of them drawn together: `1-3, 7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
