"""A cache of its own over any remote, with the calls that a sync service has; and a way to the remote that is cut.

Owns: what a check of sync needs of a client: marking, push and pull, in one phase or two, and reading past the cache.
Must not know: what is checked.
Keeps: nothing is written outside the directory it is given and the remote; `close` leaves no file open.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from mire.edge import files
from mire.edge.lockobject import ObjectLocks
from mire.edge.remote import Remote, Stat
from mire.edge.state import close_states
from mire.edge.wrap import Wrapper
from mire.errors import RemoteError
from mire.flow.datastore import Datastore
from mire.flow.fetch import fetch_content
from mire.flow.mark import mark, mark_all
from mire.flow.pull import pull
from mire.flow.push import Prepared, Pushed, commit_push, prepare_push, push
from mire.model.artifact import ModelRef
from mire.model.config import Config, Extension, SyncSettings
from mire.model.names import SOLO, Namespace

T = TypeVar("T")
_TARGET: Final = Extension(type="@mire/conformance")


class Cut(Wrapper):
    """A `Remote` that cannot be reached any more after some requests. `asked` counts those that were made."""

    def __init__(self, remote: Remote) -> None:
        super().__init__(remote)
        self._mutex = threading.Lock()
        self._left: int | None = None
        self.asked = 0

    def after(self, requests: int) -> None:
        """Let so many more requests through, then none."""
        self._left = requests

    def mend(self) -> None:
        """Let everything through."""
        self._left = None

    @property
    def is_cut(self) -> bool:
        """Whether no request gets through now."""
        return self._left == 0

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        with self._mutex:
            if self._left == 0:
                raise RemoteError(f"{operation} of {key}: the way to the remote is cut", transient=True)
            self._left = None if self._left is None else self._left - 1
            self.asked += 1
        return call()

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix."""
        return self._around("list", prefix, lambda: self._remote.list(prefix, after=after))


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What the first half of a push hands to the second."""

    prepared: Prepared | None
    done: Pushed


class SyncCache:
    """One cache over a remote. Paths are relative to it, with '/', and begin with the namespace if there is one."""

    def __init__(
        self, directory: str, remote: Remote, *, namespace: Namespace = SOLO, is_sharded: bool = False
    ) -> None:
        base = os.path.join(os.path.realpath(directory), "cache")
        files.make_dirs(base)
        self.ds = Datastore(
            repo_dir=directory,
            base=base,
            config=Config(target=_TARGET, origin="conformance", namespace=namespace),
            locks=ObjectLocks(remote),
            given_host=None,
            is_initialized=True,
            may_initialize=False,
            remote=remote,
            sync=SyncSettings(is_lazy=False, is_sharded=is_sharded),
        )

    def close(self) -> None:
        """Close what a cache keeps open."""
        close_states(self.ds.base)

    def path(self, rel: str) -> str:
        """Where a file is, as the system spells it."""
        return os.path.join(self.ds.base, *rel.split("/"))

    def read(self, rel: str) -> bytes | None:
        """The bytes of a file; None when there is none."""
        return files.read_file(self.path(rel))

    def write(self, rel: str, content: bytes) -> None:
        """Write a file, as a program does that has marked it."""
        files.make_dirs(os.path.dirname(self.path(rel)))
        files.write_file(self.path(rel), [content])

    def remove(self, rel: str) -> None:
        """Remove a file, as a program does that has marked it."""
        files.remove_file(self.path(rel))

    def mark(self, rel: str | None = None) -> None:
        """Say that a path is about to change; without one, that anything may."""
        if rel is None:
            mark_all(self.ds)
        else:
            mark(self.ds, rel)

    def push(self) -> int:
        """Publish what is marked; how many files were sent or removed."""
        return push(self.ds).count

    def pull(self, models: Sequence[ModelRef] = ()) -> int:
        """Bring the cache in step, wholly or for some models; how many files were written or removed."""
        return pull(self.ds, models=models).count

    def prepare(self) -> Phase:
        """The first half of a push."""
        prepared, done = prepare_push(self.ds)
        return Phase(prepared=prepared, done=done)

    def commit(self, phase: Phase) -> int:
        """The second half; how many files were sent or removed."""
        return commit_push(self.ds, phase.prepared, phase.done).count

    def fetch(self, key: str) -> bytes | None:
        """The bytes of an object, past the cache; None when there is none."""
        return fetch_content(self.ds, key)
