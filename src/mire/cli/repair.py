"""`mire repair`: apply the remedies for what `mire verify` finds."""

from typing import TYPE_CHECKING

import click

from mire.cli.face import common_options, emit, open_datastore, plain, table
from mire.cli.sparked import open_spark, spark_options

if TYPE_CHECKING:
    from mire.pipeline.jobs.repair import Repaired
    from mire.plan.repair import Orphans


@click.command("repair", short_help="Apply the remedies for what 'mire verify' finds.")
@click.option(
    "--orphans",
    type=click.Choice(["leave", "adopt", "delete"]),
    default="leave",
    help="Objects that no index lists: list them, or delete those whose bytes are elsewhere, too.",
)
@click.option(
    "--drop",
    is_flag=True,
    help="Take entries out of the index whose object is gone and has no copy here; to other caches that is a deletion.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done; takes no lock, changes nothing.")
@spark_options
@common_options
def command(orphans: "Orphans", drop: bool, dry_run: bool, master: str | None) -> None:
    """Verify the whole store on Spark, every object read, and put right what can be put right.

    Each remedy is shown with its reason. An object that is gone or damaged is stored again from this cache, if it has
    the bytes the index describes; an entry is corrected where metadata vouches for the object, or where the entry says
    nothing usable. Bytes that are replaced are kept beside the cache. Nothing is deleted or dropped unasked, and no
    object of which there may be no other copy. It takes the global lock.
    """
    from mire.flow.place import view_of

    ds = open_datastore()
    view_of(ds)
    with open_spark(master) as spark:
        from mire.pipeline.jobs.repair import repair_store

        done = repair_store(spark, ds, orphans=orphans, drop=drop, dry_run=dry_run)
    document = {
        "dryRun": done.is_dry_run,
        "left": done.left,
        "repairs": [
            {"path": each.path, "kind": each.kind, "action": each.remedy.action, "reason": each.remedy.reason}
            for each in done.repairs
        ],
    }
    emit("repair", document, lambda: _text(done))


def _text(done: "Repaired") -> str:
    if not done.repairs:
        return "nothing to repair"
    rows = [(each.remedy.action, each.path, each.remedy.reason) for each in done.repairs]
    head = "would repair" if done.is_dry_run else "repaired"
    return "\n".join(
        [
            table(("action", "path", "reason"), rows),
            plain(f"{head} {len(done.repairs) - done.left}, left {done.left}"),
        ]
    )
