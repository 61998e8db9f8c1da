"""`mire index`: the index of a remote."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import common_options, emit, facts, open_datastore, plain, size_text, sync_progress
from mire.cli.sparked import spark_options

if TYPE_CHECKING:
    from mire.flow.index import IndexSummary
    from mire.flow.migrate import Migrated
    from mire.pipeline.jobs.rebuild import Rebuilt
    from mire.pipeline.jobs.survivors import Form

FORMS = {
    "none": "none yet",
    "dual": "dual (v1): a monolith, with partitions beside it",
    "sharded": "sharded (v2): shards and a list of them",
}


@click.group("index", no_args_is_help=True)
@common_options
def command() -> None:
    """The index of a remote: what it lists, and in which form."""


@command.command("status")
@common_options
def status() -> None:
    """Show the form of the index and what it lists."""
    from mire.flow.index import fetch_index, summary_of
    from mire.flow.place import open_place

    ds = open_datastore()
    with open_place(ds) as place:
        found = summary_of(fetch_index(place))
        name = place.remote.properties.name
    emit("index.status", {"remote": name, **index_document(found)}, lambda: _text(name, found))


@command.command("migrate")
@click.option("--leave-out", is_flag=True, help="Leave out what no shard can list; its objects stay in the store.")
@click.option("--dry-run", is_flag=True, help="Show what would be written; takes no lock, changes nothing.")
@common_options
def migrate(leave_out: bool, dry_run: bool) -> None:
    """Make a dual index sharded.

    Pushes then cost the same however much there is, but only programs that know shards (Swamp since July 2026) see
    what is pushed. It takes the global lock. Run again after a crash, it goes on; on a sharded index it does nothing.
    There is no way back.
    """
    from mire.flow.migrate import migrate_index

    done = migrate_index(open_datastore(), leave_out=leave_out, dry_run=dry_run, watch=sync_progress())
    document = {
        "dryRun": done.is_dry_run,
        "migrated": done.is_done,
        "shards": done.shards,
        "entries": done.entries,
        "commitSeq": done.commit_seq or None,
        "leftOut": list(done.left_out),
    }
    emit("index.migrate", document, lambda: _migrated_text(done))


@command.command("rebuild")
@click.option(
    "--index", "form", type=click.Choice(["dual", "sharded"]), help="The form, where the old one cannot tell."
)
@click.option("--deep", is_flag=True, help="Read every object, and believe it, whatever the old index says of it.")
@click.option("--dry-run", is_flag=True, help="Show what would be written; takes no lock, changes nothing.")
@spark_options
@common_options
def rebuild(form: "Form | None", deep: bool, dry_run: bool, master: str | None) -> None:
    """Make the index anew from what is stored, on Spark.

    The store is listed; what of the old index still describes an object is kept, and other objects are read for their
    hash. What has no object stays listed: caches delete what an index no longer lists, and one of them may have the
    last copy. An object that is something else than its entry says is not believed, unless its metadata vouches for it;
    with --deep every object is, and takes the place of good copies if it is damaged. 'mire repair' is for both.

    It takes the global lock. Each shard is replaced by a complete one, and the list that counts the commit comes last.
    Run again after a crash, it goes on.
    """
    from mire.cli.sparked import open_spark
    from mire.flow.place import view_of

    ds = open_datastore()
    view_of(ds)
    with open_spark(master) as spark:
        from mire.pipeline.jobs.rebuild import rebuild_index

        done = rebuild_index(spark, ds, form=form, deep=deep, dry_run=dry_run)
    document = {
        "dryRun": done.is_dry_run,
        "form": done.form,
        "entries": done.entries,
        "kept": done.kept,
        "hashed": done.hashed,
        "gone": done.gone,
        "differing": done.differing,
        "shards": done.shards,
        "commitSeq": done.commit_seq,
        "leftOut": list(done.left_out),
    }
    emit("index.rebuild", document, lambda: _rebuilt_text(done))


def _rebuilt_text(done: "Rebuilt") -> str:
    from mire.cli.synced import count

    verb = "would write" if done.is_dry_run else "wrote"
    what = f"{verb} {count(done.entries, 'entry', 'entries')} into {count(done.shards, 'shard')}"
    commit = "" if done.commit_seq is None else f", commit {done.commit_seq}"
    lines = [f"{what}{commit}", f"kept {done.kept}, read {done.hashed} for their hash"]
    if done.gone:
        lines.append(f"{done.gone} without an object: 'mire repair' stores it again from a cache that has a copy")
    if done.differing:
        lines.append(f"{done.differing} whose object is something else: 'mire verify --pipeline --deep' shows them")
    return "\n".join([*lines, *(plain(f"left out: {rel}") for rel in done.left_out)])


def _migrated_text(done: "Migrated") -> str:
    from mire.cli.synced import count

    if not done.is_done:
        return f"the index is sharded already: {count(done.shards, 'shard')}, commit {done.commit_seq}"
    what = f"{count(done.entries, 'entry', 'entries')} into {count(done.shards, 'shard')}"
    lines = [f"would write {what}" if done.is_dry_run else f"wrote {what}, commit {done.commit_seq}"]
    return "\n".join([*lines, *(plain(f"left out: {rel}") for rel in done.left_out)])


def index_document(found: "IndexSummary") -> dict[str, Any]:
    """An index under the names `--json` uses."""
    return {
        "form": found.form,
        "generation": {"none": None, "dual": 1, "sharded": 2}[found.form],
        "partitions": found.partitions,
        "commitSeq": found.commit_seq,
        "proven": found.is_proven,
        "entries": found.entries,
        "names": found.names,
        "bytes": found.size_bytes,
        "damaged": found.damaged,
        "missing": list(found.missing),
        "unlisted": list(found.unlisted),
    }


def _text(name: str, found: "IndexSummary") -> str:
    from mire.cli.synced import count

    proof = {None: None, True: "yes", False: "no: readers take the monolith; the next push brings them in step"}
    return facts(
        [
            ("remote", name),
            ("index", FORMS[found.form]),
            ("partitions", found.partitions),
            ("partitions in step", proof[found.is_proven]),
            ("commit", found.commit_seq),
            ("files", f"{found.entries} ({count(found.names, 'data name')}), {size_text(found.size_bytes)}"),
            ("damaged entries", found.damaged or None),
            ("missing shards", " ".join(found.missing) or None),
            ("unlisted shards", " ".join(found.unlisted) or None),
        ]
    )
