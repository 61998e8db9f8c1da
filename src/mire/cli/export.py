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
    default="json",
    help="The content of JSON versions: as text, or as Spark's VARIANT.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be exported; nothing is written.")
@spark_options
@common_options
def command(directory: str, attributes: "Attributes", dry_run: bool, master: str | None) -> None:
    """Add what is new since the last export to the Parquet files in DIR, on Spark.

    Each version is a row of 'DIR/versions', once, in a directory of the commit it was exported with. A version that is
    removed from the store later stays in the export.
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

    if not done.is_new:
        return f"nothing was committed since the last export, commit {done.commit}"
    verb = "would export" if done.is_dry_run else "exported"
    failed = f", {done.failed} of them with an error" if done.failed else ""
    return plain(f"{verb} {count(done.versions, 'version')}{failed} to {done.directory}, commit {done.commit}")
