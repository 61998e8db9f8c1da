"""Whether a file in the cache is still what was agreed on, and what it means when it is gone.

Owns: the three branches of the change test (size; size and times; SHA-256) and the rule for absent files.
Must not know: how a file is looked at or read, what the remote has.
Keeps: a file counts as unchanged without being read only if nobody could have changed it unseen; a file that was
never here, or about which nobody recorded anything, is not a deletion.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeVar

from mire.model.base import BaseRow
from mire.model.mark import MarkKind
from mire.model.row import FileIdentity

Change = Literal["same", "changed", "hash"]
"""`hash`: only the content can tell."""

RACY_NS: Final = 2 * 10**9
"""The coarsest time stamps of a file system in use (FAT's): within them a second write leaves the same time."""

Numbers = tuple[int, int, int, int]
"""A file's identity (mtime_ns, ctime_ns, size, inode) where there are so many that a noun for each would cost more."""

File = TypeVar("File")
Row = TypeVar("Row")


def change_of(file: FileIdentity, base: BaseRow | None, *, now_ns: int, is_marked: bool) -> Change:
    """Whether a file differs from what was agreed on; what somebody marked is judged by its content only."""
    if base is None or file.size_bytes != base.size_bytes:
        return "changed"
    agreed = None if base.identity is None else numbers_of(base.identity)
    is_sure = is_untouched(numbers_of(file), agreed, base.looked_ns, now_ns)
    if base.sha256 is not None:
        return "same" if is_sure and not is_marked else "hash"
    if is_sure:
        return "same"
    is_old = base.identity is not None and file.mtime_ns == base.identity.mtime_ns
    return "same" if is_old and not is_marked else "changed"


def is_untouched(file: Numbers, agreed: Numbers | None, looked_ns: int, now_ns: int) -> bool:
    """Whether a file is certainly what was agreed on: the same one, and not looked at too soon after a change."""
    return file == agreed and max(file[0], file[1]) + RACY_NS <= looked_ns <= now_ns


def numbers_of(identity: FileIdentity) -> Numbers:
    """An identity as plain numbers."""
    return identity.mtime_ns, identity.ctime_ns, identity.size_bytes, identity.inode


def absent_of(base: BaseRow, kind: MarkKind | None, *, is_top_gone: bool) -> Literal["removed", "missing"]:
    """What it means that a file of the base is certainly not here.

    `kind` is that of the mark at or above it, None without one; `is_top_gone` says that the mark names a directory
    above it which is gone as a whole.
    """
    if kind is None:
        return "missing"
    if kind == "remove" or base.identity is not None or is_top_gone:
        return "removed"
    return "missing"  # never fetched: somebody is about to write it, or works beside it


def paired(
    found: Iterable[tuple[str, File]], base: Iterable[tuple[str, Row]]
) -> Iterator[tuple[str, File | None, Row | None]]:
    """Files and base rows side by side, both in the order of their paths; neither is held in memory."""
    rows = iter(base)
    row = next(rows, None)
    for path, file in found:
        while row is not None and row[0] < path:
            yield row[0], None, row[1]
            row = next(rows, None)
        if row is not None and row[0] == path:
            yield path, file, row[1]
            row = next(rows, None)
        else:
            yield path, file, None
    while row is not None:
        yield row[0], None, row[1]
        row = next(rows, None)
