"""Looking at the files below a directory, in the order of their paths, and at one file's content.

Owns: what counts as a file of the cache (a regular one, never through a link), and what could not be looked at.
Must not know: what a path means, what was there before.
Keeps: whatever could not be looked at is a trouble with its path, recorded before any later path is given out: nothing
is ever told to be absent because looking failed.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from mire.edge import files
from mire.edge.walk import identity_of
from mire.errors import InputError, RemoteError, shown
from mire.model.row import FileIdentity

Numbers = tuple[int, int, int, int]
"""mtime_ns, ctime_ns, size and inode of a file: what a `FileIdentity` is made of."""

_GOOD_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Trouble:
    """A path that was not looked at, and why: what is there, or below, is not known."""

    path: str
    kind: Literal["link", "special", "name", "unreadable", "vanished"]
    message: str


class Tree:
    """A look below a root; paths are relative to it. `troubles` grows while files are given out."""

    def __init__(
        self, root: str, is_skipped: Callable[[str], bool], check_path: Callable[[str], str | None] = lambda _: None
    ) -> None:
        """`is_skipped` says what is nobody's business; `check_path` why a path cannot be used, if so.

        Below the first level both go by a path's last name, so that one that was good once is good everywhere.
        """
        self._root = root
        self._is_skipped = is_skipped
        self._check_path = check_path
        self._good: set[str] = set()
        self.troubles: list[Trouble] = []

    def files(self, top: str = "") -> Iterator[tuple[str, Numbers]]:
        """The file at a path, or the files below it, by ascending path, each with its identity."""
        status = self._look(top)
        if status is None or (top and self._is_skipped(top)):
            return
        if stat.S_ISDIR(status.st_mode):
            yield from self._below(os.path.join(self._root, top) if top else self._root, f"{top}/" if top else "")
        elif stat.S_ISREG(status.st_mode):
            if self._is_usable(top):
                yield top, _numbers(status)
        else:
            self._note(top, "special", "is neither a file nor a directory: it is not synced")

    def is_absent(self, path: str) -> bool:
        """Whether there is certainly nothing under a path: looked at directly, not taken from a listing."""
        before = len(self.troubles)
        return self._look(path) is None and len(self.troubles) == before

    def _look(self, path: str) -> os.stat_result | None:
        """What is at a path; None when nothing is, or when it is a trouble. No link on the way is followed."""
        parts = path.split("/") if path else []
        status: os.stat_result | None = None
        for depth in range(len(parts) + 1):
            part = "/".join(parts[:depth])
            try:
                # The root itself may be reached through a link: somebody configured it so.
                status = os.lstat(os.path.join(self._root, part)) if part else os.stat(self._root)
            except (FileNotFoundError, NotADirectoryError):
                if part:
                    return None
                self._note(part, "unreadable", "the cache itself is not there")
                return None
            except (OSError, ValueError) as error:
                self._note(part, "unreadable", f"cannot be looked at: {_reason(error)}")
                return None
            if stat.S_ISLNK(status.st_mode):
                self._note(part, "link", "is a symbolic link: it is not followed and not synced")
                return None
        return status

    def _below(self, directory: str, prefix: str) -> Iterator[tuple[str, Numbers]]:
        for key, entry in self._listed(directory, prefix):
            if key.endswith("/"):
                yield from self._below(entry.path, key)
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                self._note(key, "vanished", "went away while it was looked at")
            except OSError as error:
                self._note(key, "unreadable", f"cannot be looked at: {_reason(error)}")
            else:
                yield key, _numbers(status)

    def _listed(self, directory: str, prefix: str) -> list[tuple[str, os.DirEntry[str]]]:
        """What is in a directory, by path; directories end in a slash, so that what is below them is in order, too."""
        found: list[tuple[str, os.DirEntry[str]]] = []
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    path = prefix + entry.name
                    if entry.name not in self._good and not self._is_wanted(path, entry.name):
                        continue
                    if entry.is_file(follow_symlinks=False):
                        found.append((path, entry))
                    elif entry.is_dir(follow_symlinks=False):
                        found.append((f"{path}/", entry))
                    elif entry.is_symlink():
                        self._note(path, "link", "is a symbolic link: it is not followed and not synced")
                    else:
                        self._note(path, "special", "is neither a file nor a directory: it is not synced")
        except FileNotFoundError:
            self._note(prefix[:-1], "vanished", "went away while it was looked at")
        except OSError as error:
            self._note(prefix[:-1], "unreadable", f"cannot be listed: {_reason(error)}")
        found.sort(key=_key)
        return found

    def _is_wanted(self, path: str, name: str) -> bool:
        if self._is_skipped(path) or not self._is_usable(path):
            return False
        if "/" in path and len(self._good) < _GOOD_MAX:
            self._good.add(name)
        return True

    def _is_usable(self, path: str) -> bool:
        reason = self._check_path(path)
        if reason is not None:
            self._note(path, "name", f"is not synced: {reason}")
        return reason is None

    def _note(
        self, path: str, kind: Literal["link", "special", "name", "unreadable", "vanished"], message: str
    ) -> None:
        self.troubles.append(Trouble(path, kind, f"{shown(path or self._root)} {message}"))


def _numbers(status: os.stat_result) -> Numbers:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _key(item: tuple[str, object]) -> str:
    return item[0]


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


@dataclass(frozen=True, slots=True)
class Hashed:
    """A file's content as it was read, whole."""

    sha256: str
    file: FileIdentity


def hash_file(path: str) -> Hashed:
    """The SHA-256 of a file that nobody changed meanwhile; a link is refused."""
    with files.mapped(path):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb", buffering=0) as file:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise InputError(f"{shown(path)} is not a regular file: it is not synced", path=path)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            after = os.fstat(fd)
    if identity_of(before) != identity_of(after):
        raise RemoteError(f"{shown(path)} changed while it was read: try again", kind="changing", transient=True)
    return Hashed(digest, identity_of(before))
