"""What it means that a path is so here, so in the base and so in the index.

Owns: the judgement of one path, one content, one object and the parts of an index, each with its remedy.
Must not know: files, objects, who asks.
Keeps: a change that is marked and a newer version at the remote are no damage; bytes that nobody recorded are.
"""

from collections.abc import Iterator
from typing import Literal

from mire.errors import shown
from mire.model.base import BaseRow
from mire.model.index import Damaged, Entry
from mire.model.verify import Finding

State = Literal["fine", "dirty", "behind", "unhydrated", "lost", "untracked", "changed_unmarked"]
Content = tuple[int, str]
"""Size and SHA-256 of a file."""


def state_of(
    content: Content | None,
    base: BaseRow | None,
    entry: Entry | Damaged | None,
    *,
    is_marked: bool,
    is_bulk: bool,
    has_index: bool,
) -> State:
    """What a path is, from its content here (None: not here), what was agreed, and what the index says now.

    `is_bulk` says that anything may have changed; a removal is believed only with a mark of its own.
    """
    if base is None:
        if content is None:
            return "behind"
        return "dirty" if is_marked or is_bulk else "untracked"
    if content is None:
        return "dirty" if is_marked else "unhydrated" if base.identity is None else "lost"
    if content[0] != base.size_bytes or base.sha256 not in (None, content[1]):
        return "dirty" if is_marked or is_bulk else "changed_unmarked"
    return "fine" if not has_index or _agrees(base, entry) else "behind"


def _agrees(base: BaseRow, entry: Entry | Damaged | None) -> bool:
    if not isinstance(entry, Entry):
        return isinstance(entry, Damaged)
    return (base.size_bytes, base.sha256) == (entry.size_bytes, entry.sha256)


def path_finding(rel: str, state: State) -> Finding | None:
    """What is wrong with a path in this state, if anything is."""
    match state:
        case "changed_unmarked":
            return Finding(
                kind="changed_unmarked",
                path=rel,
                message=f"{shown(rel)} is not what was agreed on, and no change of it was recorded",
                remedy="if you changed it, 'mire push --full' publishes it; else delete the file, and"
                " 'mire hydrate --all' brings it again",
            )
        case "lost":
            return Finding(
                kind="lost",
                path=rel,
                message=f"{shown(rel)} was here and is gone, and no removal of it was recorded",
                remedy="'mire hydrate --all' brings it again",
            )
        case "untracked":
            return Finding(
                kind="untracked",
                path=rel,
                message=f"{shown(rel)} is only here, and nothing recorded it",
                remedy="'mire push --full' publishes it",
                is_damage=False,
            )
        case _:
            return None


def entry_finding(rel: str, reason: str) -> Finding:
    """An entry of the index that cannot be used."""
    return Finding(
        kind="bad_entry",
        path=rel,
        message=f"{shown(rel)} in the index cannot be used: {reason}",
        remedy="'mire repair' puts it right; in a sharded store, so does whoever has the file by pushing it again",
    )


def checksum_finding(
    rel: str, content: Content, recorded: int | None, checksum: str | None, *, is_streaming: bool
) -> Finding | None:
    """Content that is not what its own metadata says; of streaming data there may be more than that."""
    size, sha256 = content
    is_cut = recorded is not None and (size < recorded or (size > recorded and not is_streaming))
    if not is_cut and checksum in (None, sha256):
        return None
    return Finding(
        kind="checksum",
        path=rel,
        message=f"{shown(rel)} has {size} bytes with SHA-256 {sha256}, its metadata says {recorded} and {checksum}",
        remedy="restore the file from a copy; if it only broke here, delete it, and 'mire hydrate --all' brings it",
    )


def metadata_finding(rel: str, why: str) -> Finding:
    """Metadata that cannot be read."""
    return Finding(kind="metadata", path=rel, message=why, remedy="restore the file from a copy")


def object_finding(rel: str, entry: Entry, size_bytes: int | None, *, is_here: bool) -> Finding | None:
    """An object that is not there, or not the one the index describes."""
    if size_bytes == entry.size_bytes:
        return None
    what = "the copy in this cache may be the last one: keep it" if is_here else "ask who else has a copy"
    if size_bytes is None:
        return Finding(
            kind="dangling",
            path=rel,
            message=f"{shown(rel)} is in the index, but its object is not there",
            remedy=f"{what}; 'mire verify --repair' stores it again from such a copy, and so does writing the path",
        )
    return Finding(
        kind="object_differs",
        path=rel,
        message=f"the object of {shown(rel)} has {size_bytes} bytes, the index says {entry.size_bytes}",
        remedy=f"look again in a minute, somebody may be replacing it; else {what}",
    )


def unlisted_finding(rel: str) -> Finding:
    """A path that was agreed on, and that the index no longer names although its object is there."""
    return Finding(
        kind="unlisted",
        path=rel,
        message=f"{shown(rel)} is no longer in the index, but its object is there: a program dropped it, or died while"
        " deleting it",
        remedy="'mire verify --repair' lists it again; if it should be gone, whoever deleted it pushes again, or"
        " delete the object in the store",
    )


def hash_finding(rel: str, entry: Entry, sha256: str, *, is_here: bool) -> Finding | None:
    """An object of the right size with other bytes than the index describes."""
    if entry.sha256 in (None, sha256):
        return None
    what = "the copy in this cache is what it should be" if is_here else "ask who has a copy"
    return Finding(
        kind="object_hash",
        path=rel,
        message=f"the object of {shown(rel)} has SHA-256 {sha256}, the index says {entry.sha256}",
        remedy=f"'mire repair' puts it right where it can; {what}",
    )


def orphan_finding(rel: str, size_bytes: int, *, is_young: bool) -> Finding:
    """An object that no entry describes: nobody sees it."""
    why = "somebody may be about to publish it" if is_young else "left by a push or a removal that died"
    return Finding(
        kind="orphan",
        path=rel,
        message=f"the object of {shown(rel)} ({size_bytes} bytes) is in the store, but not in the index: {why}",
        remedy="look again in a while" if is_young else "'mire repair --orphans adopt' or '--orphans delete' decides",
        is_damage=False,
    )


def marker_finding(rel: str, number: int | None) -> Finding:
    """A marker that leads nowhere."""
    what = "names no version" if number is None else f"says version {number}, of which there is no metadata"
    return Finding(
        kind="marker",
        path=rel,
        message=f"{shown(rel)} {what}",
        remedy="write the name again, or restore the version from a copy",
    )


def list_finding(path: str, why: str) -> Finding:
    """A list of partitions that is not understood."""
    return Finding(
        kind="list_unreadable", path=path, message=why, remedy="'mire index rebuild' makes one from what is stored"
    )


def shard_findings(
    missing: tuple[str, ...], unreadable: tuple[tuple[str, str], ...], unlisted: tuple[str, ...]
) -> Iterator[Finding]:
    """What is wrong with the shards of an index."""
    for name in missing:
        yield Finding(
            kind="shard_missing",
            path=name,
            message=f"the index lists the shard {shown(name)}, which is not there",
            remedy="restore the object, or 'mire index rebuild': what it listed is still in the store",
        )
    for name, why in unreadable:
        yield Finding(
            kind="shard_unreadable",
            path=name,
            message=f"the shard {shown(name)} cannot be understood: {why}",
            remedy="upgrade mire, restore the object, or 'mire index rebuild'",
        )
    for name in unlisted:
        yield Finding(
            kind="shard_unlisted",
            path=name,
            message=f"the shard {shown(name)} has entries, but the index does not list it: an old program dropped it",
            remedy="mire still reads it; the next push from this cache that changes something lists it again",
            is_damage=False,
        )


def partition_finding(name: str, *, is_proven: bool) -> Finding:
    """A partition that says something else than the monolith it is a copy of."""
    if is_proven:
        return Finding(
            kind="partition_differs",
            path=name,
            message=f"the partition {shown(name)} says something else than the monolith, and the index vouches for it",
            remedy="push a change, which writes it anew",
        )
    return Finding(
        kind="partition_differs",
        path=name,
        message=f"the partition {shown(name)} lags behind the monolith; no reader of mire believes it",
        remedy="the next push brings it in step",
        is_damage=False,
    )
