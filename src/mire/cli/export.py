"""`mire export`: versions as Parquet."""

from typing import TYPE_CHECKING

import click

from mire.cli.face import common_options, emit, open_datastore, plain
from mire.cli.sparked import open_spark, spark_options

if TYPE_CHECKING:
    from mire.pipeline.jobs.export import Attributes, Exported


@click.command("export", short_help="Write versions and attributes as Parquet.")
@click.argument("directory", metavar="DIR")
@click.option(
    "--attributes",
    type=click.Choice(["json", "variant"]),
    help="The content of JSON versions: as text (the default), or as Spark's VARIANT; one export has one of them.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be exported; nothing is written.")
@spark_options
@common_options
def command(directory: str, attributes: "Attributes | None", dry_run: bool, master: str | None) -> None:
    """Add what is new since the last export to the Parquet files in DIR, on Spark.

    Each version is a row of 'DIR/versions', once, in a directory of the commit it was exported with; if its metadata
    changes later (an append), it is a row of that commit again. A version that is removed from the store later stays in
    the export. What cannot be read is a row with '_error', and is exported when it can be.
    """
    ds = open_datastore()
    with open_spark(master) as spark:
        from mire.pipeline.jobs.export import export_store

        done = export_store(spark, ds, directory, attributes=attributes, dry_run=dry_run)
    document = {
        "dryRun": done.is_dry_run,
        "directory": done.directory,
        "commit": done.commit,
        "versions": done.versions,
        "failed": done.failed,
        "new": done.is_new,
    }
    emit("export", document, lambda: _text(done))


def _text(done: "Exported") -> str:
    from mire.cli.synced import count

    failed = f"; {done.failed} could not be read: '_error' says why" if done.failed else ""
    if not done.is_new:
        return f"nothing is new since the last export, commit {done.commit}{failed}"
    verb = "would export" if done.is_dry_run else "exported"
    return plain(f"{verb} {count(done.versions, 'version')} to {done.directory}, commit {done.commit}{failed}")
