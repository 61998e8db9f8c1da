"""Locks in a directory: each is a file, as `edge/lockfile` makes and keeps them.

Owns: the place of a lock's file below the base, and finding lock files.
Must not know: what the bodies say.
Keeps: no symbolic link leads a new lock out of the base.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from mire.edge import files, lockfile
from mire.edge.lockplace import Found, Judge, LeaseText, Leaves
from mire.model.lease import LockKey


@dataclass(frozen=True, slots=True)
class LockDir:
    """A `LockPlace` below a base directory."""

    base: str

    @property
    def may_block(self) -> bool:
        """A renewal is one small write into an open file."""
        return False

    def create(self, key: LockKey, text: LeaseText) -> "_HeldLock | None":
        """Create a lock file with its whole body; None when there is one already."""
        path = self._path(key)
        files.check_inside(path, self.base)
        return _held(lockfile.create(path, text.body), text)

    def look(self, key: LockKey) -> Found | None:
        """The lock file under a key, or None when there is none."""
        found = lockfile.look(self._path(key))
        return None if found is None else Found(key=key, body=found.body, age_ms=found.age_ms)

    def refreshed(self, found: Found) -> Found:
        """The same: every look measures the age anew."""
        return found

    def take_over(self, found: Found, text: LeaseText, judge: Judge) -> "_HeldLock | None":
        """Replace a lock file that `judge` condemns."""
        return _held(lockfile.take_over(self._path(found.key), text.body, judge), text)

    def remove(self, found: Found, judge: Judge, parting: bytes) -> bool:
        """Remove a lock file that `judge` condemns; it is one step, so there are no parting words."""
        del parting
        return lockfile.remove(self._path(found.key), judge)

    def find(self, root: str, name: str, leaves: Leaves) -> Iterator[LockKey]:
        """The lock files below a directory; leaves are not entered."""
        pending = [self._path(LockKey(root))]
        while pending:
            directory = pending.pop()
            entries = files.list_dir(directory)
            if any(entry.name == name for entry in entries):
                yield LockKey(os.path.relpath(os.path.join(directory, name), self.base))
            if not _is_leaf(directory, entries, leaves):
                pending += [
                    os.path.join(directory, entry.name) for entry in entries if entry.is_dir and entry.name != name
                ]

    def _path(self, key: LockKey) -> str:
        return os.path.join(self.base, key)


@dataclass(frozen=True, slots=True)
class _HeldLock:
    file: lockfile.HeldFile
    text: LeaseText

    def is_current(self) -> bool:
        return self.file.is_current()

    def renew(self, stamp: bytes) -> bool:
        return self.file.renew(self.text.stamp_at, stamp)

    def release(self) -> bool:
        return self.file.release()


def _held(file: lockfile.HeldFile | None, text: LeaseText) -> _HeldLock | None:
    return None if file is None else _HeldLock(file, text)


def _is_leaf(directory: str, entries: list[files.Entry], leaves: Leaves) -> bool:
    if any(entry.name in leaves.marks and not entry.is_dir for entry in entries):
        return True
    number = next((entry.name for entry in entries if entry.is_dir and entry.name.isdigit()), None)
    return number is not None and any(files.is_file(os.path.join(directory, number, part)) for part in leaves.parts)
