"""Carrying the data of a directory into the cache of a remote: copied, never moved.

Owns: what is copied, what is there already, and what both have under one path with different content.
Must not know: the remote.
Keeps: the originals are only read; a copy is on disk, with all its bytes, before it has its name; a file in the cache
that is not our own copy is never replaced. Done again it goes on where it ended, and follows what changed since.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from mire.edge import files, staging
from mire.edge.copying import Copied, stage_copy
from mire.edge.tree import Tree, hash_file
from mire.edge.walk import identity_at
from mire.errors import MireError, shown
from mire.flow.conflict import Conflict
from mire.flow.datastore import Datastore
from mire.flow.mark import mark_all, marking
from mire.flow.within import Watch
from mire.model.names import RelPath
from mire.plan.route import tier_of
from mire.wire.carried import CarriedFile, decode_carried, encode_carried
from mire.wire.layout import LATEST
from mire.wire.relpath import INDEX_DIR, check_rel, is_internal

_JOURNAL: Final = f"{INDEX_DIR}/mire-carried.jsonl"
_STAGING: Final = f"{INDEX_DIR}/mire-staging"
_BATCH: Final = 200


@dataclass(slots=True, kw_only=True)
class Carried:
    """What was copied, and what stands in the way."""

    copied: int = 0
    size_bytes: int = 0
    same: int = 0
    """Files that were there already."""
    removed: int = 0
    """Copies of an earlier run whose originals are gone."""
    conflicts: list[Conflict] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


def list_files(source: Datastore) -> tuple[list[RelPath], list[str]]:
    """The files of a datastore that belong to it, and what could not be looked at."""
    tree = Tree(source.tier, is_internal, check_rel)
    found = [RelPath(rel) for top in source.config.directories for rel, _ in tree.files(top)]
    links = [RelPath(each.path) for each in tree.troubles if each.kind == "link" and _is_marker(each.path)]
    told = [each.message for each in tree.troubles if not (each.kind == "link" and _is_marker(each.path))]
    return sorted(rel for rel in {*found, *links} if tier_of(rel, source.config) == "datastore"), told


def _is_marker(path: str) -> bool:
    # Older versions of the reference kept the number as the target of a link.
    return path.rpartition("/")[2] == LATEST


def carry(source: Datastore, target: Datastore, watch: Watch | None = None) -> Carried:
    """Copy everything that belongs to a datastore into the cache of another, and mark it."""
    rels, told = list_files(source)
    done = Carried(findings=told)
    journal = _load(target)
    if rels or journal:
        mark_all(target)
        _carry_files(source, target, iter(rels), journal, done, watch)
        if not told:  # whatever could not be looked at is not gone
            _take_back(target, journal, frozenset(rels), done)
    return done


def has_journal(target: Datastore) -> bool:
    """Whether an earlier run did not come to its end."""
    return files.is_file(os.path.join(target.base, _JOURNAL))


def forget_journal(target: Datastore) -> None:
    """Forget what was copied: from now on the cache is on its own."""
    files.remove_file(os.path.join(target.base, _JOURNAL))


def _load(target: Datastore) -> dict[str, CarriedFile]:
    files.make_dirs(os.path.join(target.base, _STAGING))
    return decode_carried(files.read_file(os.path.join(target.base, _JOURNAL)) or b"")


def _carry_files(
    source: Datastore,
    target: Datastore,
    rels: Iterator[RelPath],
    journal: dict[str, CarriedFile],
    done: Carried,
    watch: Watch | None,
) -> None:
    while batch := list(islice(rels, _BATCH)):
        staged: list[tuple[RelPath, Copied]] = []
        try:
            for rel in batch:
                try:
                    copy = _copied(source, target, rel, journal.get(rel), done)
                except MireError as error:
                    done.findings.append(f"{shown(rel)} was not copied: {error.message}")
                    continue
                staged += [] if copy is None else [(rel, copy)]
            _put_in_place(target, staged)
        finally:
            for _, copy in staged:
                staging.discard(copy.temporary)
        done.copied += len(staged)
        done.size_bytes += sum(copy.original.size_bytes for _, copy in staged)
        if watch is not None:
            watch(done.copied + done.same)


def _copied(
    source: Datastore, target: Datastore, rel: RelPath, known: CarriedFile | None, done: Carried
) -> Copied | None:
    """A copy to be put in place; None when the file is there already, or something else is."""
    origin, path = os.path.join(source.tier, rel), os.path.join(target.tier, rel)
    files.check_inside(path, target.tier)
    is_there = os.path.lexists(path)
    if is_there and known is not None and known.original == identity_at(origin):
        done.same += 1
        return None
    staging_dir = os.path.join(target.base, _STAGING)
    copy = _marker_copy(origin, staging_dir) if files.is_link(origin) else stage_copy(origin, staging_dir)
    if not is_there:
        return copy
    present = hash_file(path).sha256
    if present != copy.sha256 and known is not None and present == known.sha256:
        return copy
    staging.discard(copy.temporary)
    if present == copy.sha256:
        done.same += 1
    else:
        done.conflicts.append(Conflict(rel=rel, why="another file is in the cache", ours=origin, theirs=path))
    return None


def _marker_copy(origin: str, directory: str) -> Copied:
    """The file that takes the place of a link: what it points to is what it says."""
    temporary, written = staging.stage(directory, [files.read_marker(origin) or b""])
    identity = identity_at(temporary)
    assert identity is not None  # noqa: S101 - it was written a moment ago
    return Copied(temporary=temporary, sha256=written.sha256, original=identity)


def _put_in_place(target: Datastore, staged: Iterable[tuple[RelPath, Copied]]) -> None:
    copies = [CarriedFile(rel=rel, original=copy.original, sha256=copy.sha256) for rel, copy in staged]
    if not copies:
        return
    # Before the files: should we die, what is there is known to be ours, and may be replaced by a newer copy.
    files.append_line(os.path.join(target.base, _JOURNAL), encode_carried(copies))
    directories: set[str] = set()
    for rel, copy in staged:
        directories.update(staging.put_in_place(copy.temporary, os.path.join(target.tier, rel)))
    staging.sync_dirs(directories)


def _take_back(target: Datastore, journal: dict[str, CarriedFile], rels: frozenset[RelPath], done: Carried) -> None:
    """Remove our copies of files that were deleted since an earlier run."""
    for rel, known in journal.items():
        path = os.path.join(target.tier, rel)
        if rel in rels or known.original is None or not files.is_regular(path):
            continue
        if hash_file(path).sha256 == known.sha256:
            with marking(target, removing=[path]):
                files.remove_file(path)
            done.removed += 1
        gone = CarriedFile(rel=rel, original=None, sha256=known.sha256)
        files.append_line(os.path.join(target.base, _JOURNAL), encode_carried([gone]))
