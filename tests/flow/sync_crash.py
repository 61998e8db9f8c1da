"""Dies before every step of a push or pull, and checks what is left, and that the next one converges; run as a script.

Usage: sync_crash.py SCENARIO v1|v2 DIRECTORY. Prints the number of deaths. A step is whatever changes something: a file
in the cache, a commit of the private state, a request that writes. What happens between two of them leaves no trace.
"""

import os
import pickle
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from mire.edge.memory import MemoryRemote
from mire.edge.remote import Stat
from mire.edge.state import close_states
from mire.edge.wrap import Wrapper
from mire.model.config import SyncSettings
from sync_world import Client, check_lists, committed, data

T = TypeVar("T")
_CHANGES = frozenset(("replace", "rename", "unlink", "mkdir", "rmdir", "link", "ftruncate"))
_left = 0
_quiet = threading.local()


def step() -> None:
    """One step: the process may die here."""
    global _left  # noqa: PLW0603 - counted in the child that dies
    if _left:
        _left -= 1
        if not _left:
            os.kill(os.getpid(), signal.SIGKILL)


def hook(frame: FrameType, event: str, function: Any) -> None:
    """See every change of a file, and every commit of the state."""
    if getattr(_quiet, "is_on", False):
        return
    if event == "c_call":
        name, module = getattr(function, "__name__", ""), getattr(function, "__module__", None)
        is_write = name == "write" and type(getattr(function, "__self__", None)).__module__ == "_io"
        if (module == "posix" and name in _CHANGES) or is_write:
            step()
    elif event == "call" and frame.f_code.co_name == "run" and frame.f_locals.get("sql") == "COMMIT":
        step()


class Shelf(Wrapper):
    """A remote in memory that is on disk, too, after every request: what a dead process did to it stays done."""

    def __init__(self, path: Path) -> None:
        self.memory = MemoryRemote()
        super().__init__(self.memory)
        self._path = path
        self._mutex = threading.Lock()
        if path.exists():
            self.memory._objects, self.memory._generation = pickle.loads(path.read_bytes())  # noqa: S301 - ours

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        del key
        is_change = operation.startswith(("put", "delete", "copy"))
        if is_change:
            step()
        with self._mutex:
            _quiet.is_on = True
            try:
                answer = call()
                if is_change:
                    fresh = self._path.with_suffix(".new")
                    fresh.write_bytes(pickle.dumps((self.memory._objects, self.memory._generation)))
                    fresh.replace(self._path)
            finally:
                _quiet.is_on = False
        return answer

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix."""
        return self._around("list", prefix, lambda: iter([*self._remote.list(prefix, after=after)]))


class Stage:
    """A remote and three caches in a directory: one that dies, a peer, and whoever looks afterwards."""

    def __init__(self, top: Path, *, sharded: bool) -> None:
        self.top, self.sharded = top, sharded
        top.mkdir(parents=True, exist_ok=True)
        self.remote = Shelf(top / "remote")

    def client(self, name: str) -> Client:
        """A cache, as a new process finds it; one request at a time, so that steps come in one order."""
        settings = SyncSettings(is_sharded=self.sharded, is_lazy=False, push_concurrency=1, pull_concurrency=1)
        return Client(self.top / name, self.remote, settings, "", two_phase=False)

    def index_files(self) -> dict[str, bytes]:
        """What the index lists, with the bytes of each object; every entry has one."""
        return {rel: self.remote.memory.get(rel).data for rel in committed(self.remote.memory)}


def prepare(stage: Stage) -> None:
    """Two versions and two logs, which both caches have."""
    one, peer = stage.client("one"), stage.client("peer")
    for number in (1, 2):
        one.version("m", number, f"content {number}")
    one.write("logs/a", "old")
    one.write("logs/b", "going")
    one.push()
    peer.pull()


def change(client: Client) -> None:
    """Something new, something replaced, a marker of equal size, something removed."""
    client.version("m", 3, "content 3")
    client.version("n", 1, "another model")
    client.write("logs/a", "new")
    client.remove("logs/b")
    client.remove(data("m"))


def check_push(stage: Stage, before: dict[str, bytes], number: int) -> None:
    """Each path has its old or new value for others, marks are there until all is done, and a retry finishes it."""
    one = stage.client("one")
    wanted = one.files()
    listed = stage.index_files()
    check_lists(stage.remote.memory)
    for rel, content in listed.items():
        # Between upload and commit an object may be newer than its entry; nobody takes it for what the entry says.
        assert content in (before.get(rel), wanted.get(rel)), f"{number}: {rel} has {content!r}"
    for rel in before.keys() & wanted.keys():
        assert rel in listed, f"{number}: {rel} is lost"
    if not one.is_dirty:
        assert listed == wanted, f"{number}: clean, but not everything is published"
    reader = stage.client("reader")
    seen = reader.pull()
    assert not seen.conflicts, f"{number}: {seen.conflicts}"
    for rel, content in reader.files().items():
        assert content in (before.get(rel), wanted.get(rel)), f"{number}: a reader has {content!r} as {rel}"
    done = one.push()
    assert done.is_whole, f"{number}: {done}"
    assert not one.is_dirty, f"{number}: {one.marks()}"
    assert stage.index_files() == wanted, f"{number}: the retry did not publish everything"
    objects = {stat.key for stat in stage.remote.memory.list() if not stat.key.startswith((".", "_index/"))}
    assert objects == wanted.keys(), f"{number}: objects are left: {objects ^ wanted.keys()}"
    for each in (reader, stage.client("peer")):
        assert each.pull().is_whole
        assert each.files() == wanted, f"{number}: a peer has something else"
    assert one.pull().count == 0


def check_pull(stage: Stage, before: dict[str, bytes], number: int) -> None:
    """Each file is whole, old or new; the next pull finishes it, and nothing is pushed as if it were news."""
    one = stage.client("one")
    wanted = stage.index_files()
    for rel, content in one.files().items():
        assert content in (before.get(rel), wanted.get(rel)), f"{number}: {rel} has {content!r}"
    for rel in before.keys() & wanted.keys():
        assert rel in one.files(), f"{number}: {rel} is lost"
    done = one.pull()
    assert done.is_whole, f"{number}: {done}"
    assert one.files() == wanted, f"{number}: the retry did not bring everything"
    one.mark_all()
    assert one.push().count == 0, f"{number}: something was sent that nobody wrote"
    assert one.pull().count == 0


def survives(work: Callable[[], object], number: int) -> bool:
    """Run something in a child that dies at a step; whether it finished first."""
    global _left  # noqa: PLW0603 - counted in the child that dies
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _left = number
            threading.setprofile(hook)
            sys.setprofile(hook)
            work()
            code = 0
        finally:
            _left = 0
            sys.setprofile(None)
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), f"it failed by itself before step {number}"
    return code == 0


def main(scenario: str, form: str, top: Path) -> None:
    """Die before each step in turn."""
    clean = Stage(top / "clean", sharded=form == "v2")
    if scenario != "first-push":
        prepare(clean)
    one, peer = clean.client("one"), clean.client("peer")
    before = one.files()
    if scenario == "pull":
        change(peer)
        peer.push()
    else:
        change(one)
    close_states()
    for number in range(1, 1000):
        shutil.rmtree(top / "run", ignore_errors=True)
        shutil.copytree(top / "clean", top / "run", symlinks=True)

        def work() -> None:
            client = Stage(top / "run", sharded=form == "v2").client("one")
            _ = client.pull() if scenario == "pull" else client.push()

        if survives(work, number):
            sys.stdout.write(str(number - 1))
            return
        check = check_pull if scenario == "pull" else check_push
        check(Stage(top / "run", sharded=form == "v2"), before, number)
        close_states()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
