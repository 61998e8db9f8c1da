"""`mire migrate`: from any store to any store."""

import os
from typing import TYPE_CHECKING

import click

from mire.cli.face import common_options, emit, facts, plain, size_text
from mire.cli.sparked import bulk_options, rounds_of

if TYPE_CHECKING:
    from mire.pipeline.rounds import Moved


@click.command("migrate", short_help="Copy a store into another, verified by hash.")
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@click.option("--from-namespace", default="", metavar="NAME", help="The namespace of SRC (default: none).")
@click.option("--to-namespace", default="", metavar="NAME", help="The namespace of DST (default: none).")
@click.option(
    "--index", type=click.Choice(["dual", "sharded"]), default="dual", help="The index of a new DST (default: dual)."
)
@click.option("--dry-run", is_flag=True, help="Show what would be copied; nothing is.")
@bulk_options("Copy")
@common_options
def command(
    source: str,
    target: str,
    from_namespace: str,
    to_namespace: str,
    index: str,
    dry_run: bool,
    is_forced: bool | None,
    master: str | None,
) -> None:
    """Copy the store SRC into DST: s3://bucket/prefix, gs://bucket/prefix, cached:/path (a directory that is
    synced like a bucket) or file:///path (a directory that is used in place).

    Every object is verified by its hash. Nothing in DST counts before everything is there, and SRC is only read; what
    is published there meanwhile is brought, too. Run again after a crash, it goes on. Repositories that should use DST
    are switched with 'mire setup' afterwards.

    When there are very many objects, they are copied on Spark: --pipeline insists on it, --no-pipeline refuses it. What
    is decided and what is committed is the same either way.
    """  # noqa: D205 - the first sentence is long
    from mire.pipeline.sides import open_source, open_target

    here = os.getcwd()
    one = open_source(source, namespace=from_namespace, repo_dir=here)
    other = open_target(target, namespace=to_namespace, index=index, repo_dir=here, dry_run=dry_run)
    with rounds_of(one, is_forced=is_forced, master=master) as open_round:
        from mire.pipeline.jobs.migrate import migrate_store

        done = migrate_store(open_round, one, other, dry_run=dry_run)
    document = {
        "dryRun": done.is_dry_run,
        "source": done.source,
        "target": done.target,
        "objects": done.objects,
        "bytes": done.size_bytes,
        "copied": done.copied,
        "there": done.there,
        "leftOut": list(done.left_out),
    }
    emit("migrate", document, lambda: _text(done))


def _text(done: "Moved") -> str:
    return facts(
        [
            ("from", done.source),
            ("to", done.target),
            ("objects", f"{done.objects}, {size_text(done.size_bytes)}"),
            ("to copy" if done.is_dry_run else "copied", done.copied),
            ("there already", done.there),
            ("left out", " ".join(map(plain, done.left_out)) or None),
            ("verdict", "nothing was changed" if done.is_dry_run else "everything is there, and counts"),
        ]
    )
