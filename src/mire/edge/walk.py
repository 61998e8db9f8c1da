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
        """Directories below `top`, depth first; those `is_leaf` knows are not entered, links never followed."""
        try:
            with os.scandir(top) as found:
                entries = sorted((e for e in found if e.is_dir(follow_symlinks=False)), key=lambda e: e.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.errors.append((rel_path, error.strerror or str(error)))
            return
        for entry in entries:
            below = f"{rel_path}/{entry.name}"
            if is_leaf(below):
                yield below, identity_of(entry.stat(follow_symlinks=False))
            else:
                yield from self.directories(entry.path, below, is_leaf)


def identity_of(status: os.stat_result) -> FileIdentity:
    """The identity of what was looked at."""
    return FileIdentity(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def identity_at(path: str) -> FileIdentity | None:
    """The identity of a file or directory, or None when there is none."""
    try:
        return identity_of(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
