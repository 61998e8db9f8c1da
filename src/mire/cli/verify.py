"""`mire verify`: compare index, cache and content."""

from typing import TYPE_CHECKING, Any

import click

from mire.cli.face import common_options, emit, facts, open_datastore, plain, size_text, sync_progress
from mire.cli.sparked import spark_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mire.flow.repair import Repaired
    from mire.model.verify import Finding, Verified
    from mire.pipeline.jobs.verify import StoreVerified

_DAMAGED = 7


@click.command("verify", short_help="Compare index, cache and content.")
@click.option("--deep", is_flag=True, help="Look for every object at the remote, not only for those that are not here.")
@click.option("--local", "is_local", is_flag=True, help="Only compare what is here; ask the remote nothing.")
@click.option("--repair", "is_repair", is_flag=True, help="First store and list again what this cache has a copy of.")
@click.option("--pipeline", is_flag=True, help="Compare the whole store on Spark; with --deep every object is read.")
@click.option(
    "--table",
    metavar="DIR",
    help="With --pipeline: write all findings there, as Parquet; only such a table is replaced.",
)
@spark_options
@common_options
def command(deep: bool, is_local: bool, is_repair: bool, pipeline: bool, table: str | None, master: str | None) -> None:
    """Compare the index with the cache, content with what was recorded, and objects with the index.

    Every file here is read. Nothing is changed, here or at the remote. Exit 7 when something is damaged; each finding
    says what to do. In a datastore that is a directory, content is compared with its metadata.

    With --repair, an object that the index names and the store lost is stored again from the cache, if the bytes here
    are those the index describes; and a path that the index lost is listed again, if its object has the bytes that were
    agreed on. Nothing is replaced or removed. It takes the global lock, and looks deeply afterwards.

    With --pipeline the whole store is listed and compared with its index: what only a listing shows (objects that no
    index describes) is found, too, and --deep reads every object. 'mire repair' applies the remedies.
    """
    if pipeline:
        _verify_store(deep=deep, table=table, master=master, is_elsewhere=is_local or is_repair)
        return
    if table is not None or master is not None:
        raise click.UsageError("--table and --master go with --pipeline.")
    from mire.errors import InputError
    from mire.flow.repair import repair
    from mire.flow.verify import verify

    if is_repair and is_local:
        raise InputError("--repair needs the remote: leave out --local")
    ds = open_datastore()
    repaired = repair(ds, watch=sync_progress()) if is_repair else None
    done = verify(ds, deep=deep or is_repair, is_local=is_local, watch=sync_progress())
    document = {**_document(done), "repaired": None if repaired is None else _repaired_document(repaired)}
    lines = [] if repaired is None else _repaired_lines(repaired)
    emit(
        "verify",
        document,
        lambda: "\n".join([*lines, _text(done, has_remote=ds.remote is not None, is_local=is_local)]),
    )
    if done.is_damaged:
        raise click.exceptions.Exit(_DAMAGED)


def _verify_store(*, deep: bool, table: str | None, master: str | None, is_elsewhere: bool) -> None:
    from mire.cli.sparked import open_spark

    if is_elsewhere:
        raise click.UsageError("--local and --repair do not go with --pipeline; 'mire repair' repairs on Spark.")
    ds = open_datastore()
    with open_spark(master) as spark:
        from mire.pipeline.jobs.verify import verify_store

        done = verify_store(spark, ds, deep=deep, table=table)
    emit("verify.store", _store_document(done), lambda: _store_text(done))
    if done.is_damaged:
        raise click.exceptions.Exit(_DAMAGED)


def _store_document(done: "StoreVerified") -> dict[str, Any]:
    return {
        "damaged": done.is_damaged,
        "form": done.form,
        "entries": done.entries,
        "objects": done.objects,
        "bytes": done.size_bytes,
        "read": done.inspected,
        "toPush": done.to_push,
        "toPull": done.to_pull,
        "kinds": done.kinds,
        "table": done.table,
        "findings": _findings_document(done.findings),
    }


def _store_text(done: "StoreVerified") -> str:
    from mire.cli.index import FORMS

    found = sum(done.kinds.values())
    more = [f"… and {found - len(done.findings)} more: --table DIR has all"] if found > len(done.findings) else []
    numbers: list[tuple[str, object]] = [
        ("index", FORMS[done.form]),
        ("in the index", done.entries),
        ("in the store", f"{done.objects} objects, {size_text(done.size_bytes)}"),
        ("objects read", done.inspected or None),
        ("not pushed", done.to_push or None),
        ("not pulled", done.to_pull or None),
        *((f"found: {kind}", number) for kind, number in done.kinds.items()),
        ("all findings in", done.table),
        ("verdict", "something is damaged" if done.is_damaged else "nothing is damaged"),
    ]
    return "\n".join([*_finding_lines(done.findings), *more, facts(numbers)])


def _findings_document(findings: "Iterable[Finding]") -> list[dict[str, Any]]:
    return [
        {
            "kind": finding.kind,
            "path": finding.path,
            "message": finding.message,
            "remedy": finding.remedy,
            "damage": finding.is_damage,
        }
        for finding in findings
    ]


def _finding_lines(findings: "Iterable[Finding]") -> list[str]:
    lines = []
    for finding in findings:
        word = "DAMAGED" if finding.is_damage else "note"
        lines += [plain(f"{word}: {finding.message}"), plain(f"  {finding.remedy}")]
    return lines


def _document(done: "Verified") -> dict[str, Any]:
    return {
        "damaged": done.is_damaged,
        "entries": done.entries,
        "here": done.here,
        "bytes": done.size_bytes,
        "unhydrated": done.unhydrated,
        "unhydratedBytes": done.unhydrated_bytes,
        "dirty": done.dirty,
        "behind": done.behind,
        "objects": done.objects,
        "findings": _findings_document(done.findings),
    }


def _repaired_document(repaired: "Repaired") -> dict[str, Any]:
    return {"stored": repaired.stored, "listed": repaired.listed, "findings": repaired.findings}


def _repaired_lines(repaired: "Repaired") -> list[str]:
    return [
        *(plain(f"stored again: {rel}") for rel in repaired.stored),
        *(plain(f"listed again: {rel}") for rel in repaired.listed),
        *(plain(f"note: {finding}") for finding in repaired.findings),
    ]


def _text(done: "Verified", *, has_remote: bool, is_local: bool) -> str:
    from mire.cli.synced import count

    unhydrated = f"{count(done.unhydrated, 'file')}, {size_text(done.unhydrated_bytes)}"
    numbers = [
        ("here", f"{count(done.here, 'file')}, {size_text(done.size_bytes)}"),
        ("not pushed", done.dirty if has_remote else None),
        ("content at the remote", unhydrated if has_remote else None),
        ("in the index", done.entries if has_remote and not is_local else None),
        ("newer at the remote", done.behind if has_remote and not is_local else None),
        ("objects looked for", done.objects if has_remote and not is_local else None),
        ("verdict", "something is damaged" if done.is_damaged else "nothing is damaged"),
    ]
    return "\n".join([*_finding_lines(done.findings), facts(numbers)])
