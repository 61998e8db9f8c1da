"""A remote in a directory that somebody mounts: without the mount it is out of reach, not empty.

Owns: telling the directory from the empty place it is mounted on.
Must not know: what the witness says.
Keeps: nothing is read from, written to or created in a directory that is not the one that was set up.
"""

import os
from collections.abc import Callable, Iterator
from typing import TypeVar

from mire.edge import files
from mire.edge.remote import Remote, Stat
from mire.edge.wrap import Wrapper
from mire.errors import RemoteError, shown

T = TypeVar("T")

_WITNESS_BYTES_MAX = 256


class Mounted(Wrapper):
    """A `Remote` in a directory that must be there, with its witness: a small file and what it must hold."""

    def __init__(self, remote: Remote, directory: str, witness: tuple[str, str] | None = None) -> None:
        super().__init__(remote)
        self._directory = directory
        self._witness = witness

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        self._check()
        return super()._around(operation, key, call)

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix."""
        self._check()
        yield from super().list(prefix, after=after)

    def _check(self) -> None:
        if not files.is_dir(self._directory):
            raise self._away("is not there: mount it, or create it")
        if self._witness is None:
            return
        name, wanted = self._witness
        found = files.read_file(os.path.join(self._directory, name), limit=_WITNESS_BYTES_MAX)
        if found is None:
            raise self._away(f"has no {name}: it is not mounted, or not the one that was set up")
        if found.decode(errors="replace").strip() != wanted:
            raise self._away(f"is another one than was set up: its {name} is {shown(found)}, not {shown(wanted)}")

    def _away(self, why: str) -> RemoteError:
        return RemoteError(
            f"the directory {shown(self._directory)} {why}", kind="unreachable", transient=True, path=self._directory
        )
