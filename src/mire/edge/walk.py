"""Looking at many directories quickly: which there are, and whether they changed.

Owns: listings and identities of directories and files, without opening any.
Must not know: what a directory means.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mire.model.row import FileIdentity


@dataclass(slots=True)
class Walk:
    """A walk under way: `errors` are directories that could not be listed; nothing is known about what is below."""

    errors: list[tuple[str, str]] = field(default_factory=list)

    def directories(
        self, top: str, rel_path: str, is_leaf: Callable[[str], bool]
    ) -> Iterator[tuple[str, FileIdentity]]:
        """Directories below `top`, leaves first; those `is_leaf` knows are not entered, links never followed."""
        pending = [(top, rel_path)]
        while pending:
            directory, here = pending.pop()
            inner = []
            for entry in self._listed(directory, here):
                below = f"{here}/{entry.name}"
                if is_leaf(below):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # removed since the listing
                    yield below, identity_of(status)
                else:
                    inner.append((entry.path, below))
            pending += reversed(inner)

    def _listed(self, directory: str, rel_path: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(directory) as found:
                return sorted([e for e in found if e.is_dir(follow_symlinks=False)], key=_name_of)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self.errors.append((rel_path, error.strerror or str(error)))
            return []


def _name_of(entry: os.DirEntry[str]) -> str:
    return entry.name


def identity_of(status: os.stat_result) -> FileIdentity:
    """The identity of what was looked at."""
    return FileIdentity(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def identity_at(path: str) -> FileIdentity | None:
    """The identity of a file or directory, or None when there is none."""
    try:
        return identity_of(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_small(path: str, entries_max: int) -> bool:
    """Whether a tree has at most so many entries; looks at no more than that."""
    waiting, left = [path], entries_max
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        return False
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return True
