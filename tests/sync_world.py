"""A world for sync tests: one remote in memory, any number of caches, and what must hold whoever did what."""

import hashlib
import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

import mire
from mire.edge.memory import MemoryRemote
from mire.edge.remote import Body, Remote, Stat
from mire.edge.state import State, close_states, open_state
from mire.edge.wrap import Wrapper
from mire.errors import NotFoundError, RemoteError
from mire.flow.mark import mark, mark_all, marking, pending_marks
from mire.flow.pull import Pulled, pull
from mire.flow.push import Pushed, commit_push, prepare_push, push
from mire.model.artifact import ModelRef
from mire.model.config import SyncSettings
from mire.model.index import Entry
from mire.model.names import ModelId, ModelType, Namespace, RelPath
from mire.wire.meta import decode_meta
from mire.wire.monolith import decode_monolith
from mire.wire.partition import partition_of
from mire.wire.relpath import is_internal
from mire.wire.shard import decode_shard

T = TypeVar("T")
Asked = list[tuple[str, str]]
WRITES = frozenset(("put", "put_if", "put_stream", "put_stream_if", "delete", "delete_if", "copy"))

MONOLITH = ".datastore-index.json"
META = "_index/_meta.json"
TYPE = "aws/ec2/vpc"


@contextmanager
def fast_directory() -> Iterator[Path]:
    """A directory where syncing a file costs nothing, if there is such a place."""
    memory = "/dev/shm"  # noqa: S108 - a place that is fast, not one that is trusted
    with tempfile.TemporaryDirectory(prefix="mire-", dir=memory if os.path.isdir(memory) else None) as path:
        yield Path(path)


def data(model: str, name: str = "state", version: int = 1, last: str = "raw") -> RelPath:
    """The path of a file of one version."""
    return RelPath(f"data/{TYPE}/{model}/{name}/{version}/{last}")


def latest(model: str, name: str = "state") -> RelPath:
    """The path of a marker."""
    return RelPath(f"data/{TYPE}/{model}/{name}/latest")


def ref(model: str, model_type: str = TYPE) -> ModelRef:
    """A model by its id."""
    return ModelRef(model_type=ModelType(model_type), model_id=ModelId(model))


class Recorded(Wrapper):
    """A remote that remembers which operation was asked of which key."""

    def __init__(self, remote: Remote) -> None:
        super().__init__(remote)
        self._mutex = threading.Lock()
        self.asked: Asked = []

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        with self._mutex:
            self.asked.append((operation, key))
        return call()

    def take(self) -> Asked:
        """What was asked since the last time, in order."""
        with self._mutex:
            asked, self.asked = self.asked, []
        return asked

    def take_index(self) -> Counter[tuple[str, str]]:
        """What was asked of the index since the last time."""
        return Counter((operation, key) for operation, key in self.take() if is_internal(key) or key == "_index/")

    def take_writes(self) -> Asked:
        """What was written or deleted since the last time."""
        return [each for each in self.take() if each[0] in WRITES]

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix; counted by pages of 1,000."""
        found = [*self._remote.list(prefix, after=after)]
        with self._mutex:
            self.asked += [("list", prefix)] * max(1, -(-len(found) // 1000))
        return iter(found)


class Hooked(Wrapper):
    """A remote with something that happens right before or after some calls, by operation and key."""

    def __init__(self, remote: Remote) -> None:
        super().__init__(remote)
        self._mutex = threading.Lock()
        self._hooks: list[tuple[str, str, str, Callable[[], object], list[int]]] = []

    def at(
        self, operation: str, key: str, act: Callable[[], object], *, after: bool = False, skip: int = 0, times: int = 1
    ) -> None:
        """Do something at calls that match (`*` stands for anything), once unless told otherwise."""
        self._hooks.append(("after" if after else "before", operation, key, act, [skip, times]))

    def fail(self, operation: str, key: str, *, after: bool = False, skip: int = 0, times: int = 1) -> None:
        """Let calls fail, before or after they happened."""

        def act() -> None:
            raise RemoteError(f"{operation} of {key} fails because it was told to", transient=True)

        self.at(operation, key, act, after=after, skip=skip, times=times)

    def _run(self, when: str, operation: str, key: str) -> None:
        due = []
        with self._mutex:
            for at, wanted, pattern, act, left in self._hooks:
                if at == when and fnmatchcase(operation, wanted) and fnmatchcase(key, pattern):
                    if left[0] > 0:
                        left[0] -= 1
                    elif left[1] > 0:
                        left[1] -= 1
                        due.append(act)
        for act in due:
            act()

    def _around(self, operation: str, key: str, call: Callable[[], T]) -> T:
        self._run("before", operation, key)
        answer = call()
        self._run("after", operation, key)
        return answer

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[Stat]:
        """The objects below a prefix."""
        return self._around("list", prefix, lambda: iter([*self._remote.list(prefix, after=after)]))


class Client:
    """One cache over a remote, and who works in it."""

    def __init__(self, home: Path, remote: Remote, settings: SyncSettings, namespace: str, *, two_phase: bool) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.store = mire.open(home)
        config = replace(self.store.datastore.config, namespace=Namespace(namespace))
        self.ds = replace(self.store.datastore, remote=remote, sync=settings, config=config)
        self.store.datastore = self.ds
        self.two_phase = two_phase
        Path(self.ds.tier).mkdir(parents=True, exist_ok=True)

    def path(self, rel: str) -> Path:
        """Where a file is."""
        return Path(self.ds.tier) / rel

    def write(self, rel: str, content: bytes | str) -> None:
        """Write a file as every verb does: marked before, and after."""
        with marking(self.ds, str(self.path(rel))):
            self.scribble(rel, content)

    def scribble(self, rel: str, content: bytes | str) -> None:
        """Write a file that nobody marks."""
        path = self.path(rel)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def remove(self, rel: str) -> None:
        """Remove a file as every verb does."""
        with marking(self.ds, removing=[str(self.path(rel))]):
            self.path(rel).unlink(missing_ok=True)

    def put(self, model: str, content: Any, name: str = "state", **options: Any) -> None:
        """Write a version as the API does, with metadata that says what it is."""
        mire.Model(self.ds, ref(model), f"name-of-{model}").put(name, content, **options)

    def version(self, model: str, number: int, content: bytes | str, name: str = "state") -> None:
        """Write a version with its marker."""
        self.write(data(model, name, number), content)
        self.write(data(model, name, number, "metadata.yaml"), f"version: {number}")
        self.write(latest(model, name), str(number))

    def mark(self, rel: str) -> None:
        """Mark a path of the cache."""
        mark(self.ds, rel)

    def mark_all(self) -> None:
        """Mark without a path."""
        mark_all(self.ds)

    def push(self, **options: Any) -> Pushed:
        """Push, in one or two phases."""
        if not self.two_phase or "dry_run" in options or "guard" in options:
            return push(self.ds, **options)
        prepared, done = prepare_push(self.ds, **options)
        return commit_push(self.ds, prepared, done)

    def pull(self, *models: str, **options: Any) -> Pulled:
        """Pull, wholly or some models."""
        return pull(self.ds, models=[ref(model) for model in models], **options)

    def read(self, rel: str) -> bytes | None:
        """The bytes of a file; None when there is none."""
        path = self.path(rel)
        return path.read_bytes() if path.is_file() else None

    def files(self) -> dict[str, bytes]:
        """Every file that is synced."""
        found: dict[str, bytes] = {}
        for directory, _, names in os.walk(self.ds.tier):
            for name in names:
                path = os.path.join(directory, name)
                rel = os.path.relpath(path, self.ds.tier)
                if not is_internal(rel) and os.path.isfile(path):
                    found[rel] = Path(path).read_bytes()
        return found

    def marks(self) -> set[str]:
        """What is marked."""
        return {mark.path for mark in pending_marks(self.ds).records}

    @property
    def is_dirty(self) -> bool:
        """Whether there is something to push."""
        return not pending_marks(self.ds).is_clean

    def state(self) -> Any:
        """The private state, opened."""
        assert self.ds.remote is not None
        name = self.ds.remote.properties.name
        return open_state(self.ds.base, f"{name}/{self.ds.config.namespace}" if self.ds.config.namespace else name)

    def with_state(self, work: Callable[[State], T]) -> T:
        """Do something with the private state."""
        with self.state() as state:
            return work(state)

    def look_at_meta_again(self) -> None:
        """Let the time pass after which the list of partitions is looked at."""
        self.with_state(lambda state: state.set_facts({"meta_looked_ms": "0"}))

    def on(self, remote: Remote) -> "Client":
        """The same cache over another view of the remote, as a new process sees it."""
        close_states(self.ds.base)
        other = Client.__new__(Client)
        other.home, other.two_phase = self.home, self.two_phase
        other.ds = replace(self.ds, remote=remote)
        other.store = mire.open(self.home)
        other.store.datastore = other.ds
        return other


class World:
    """One remote and the clients of it."""

    def __init__(
        self,
        root: Path,
        *,
        sharded: bool = False,
        two_phase: bool = False,
        content_fingerprint: bool = True,
    ) -> None:
        self.root = root
        self.sharded = sharded
        self.two_phase = two_phase
        self.memory = MemoryRemote(content_fingerprint=content_fingerprint)
        self.remote = Recorded(self.memory)
        self.clients: list[Client] = []

    def client(
        self,
        remote: Remote | None = None,
        *,
        lazy: bool = False,
        namespace: str = "",
        sharded: bool | None = None,
        publishing: bool = False,
    ) -> Client:
        """A new cache, by default one that brings everything."""
        settings = SyncSettings(
            is_sharded=self.sharded if sharded is None else sharded, is_lazy=lazy, is_publishing=publishing
        )
        home = self.root / f"client-{len(self.clients)}"
        client = Client(home, remote or self.remote, settings, namespace, two_phase=self.two_phase)
        self.clients.append(client)
        return client

    def close(self) -> None:
        """Close what clients keep open."""
        for client in self.clients:
            client.store.close()
            close_states(client.ds.base)

    def get(self, key: str) -> bytes | None:
        """An object."""
        try:
            return self.memory.get(key).data
        except NotFoundError:
            return None

    def objects(self) -> dict[str, bytes]:
        """Every data object there is."""
        return {stat.key: self.memory.get(stat.key).data for stat in self.memory.list() if not is_internal(stat.key)}

    def index(self) -> dict[str, Entry]:
        """What is committed: the shards that are there, or the monolith."""
        return committed(self.memory)

    def check_present(self) -> None:
        """What must hold at every instant: every entry has its object, lists name what is there, proofs are true."""
        for rel in self.index():
            self.memory.head(rel)
        check_lists(self.memory)

    def check(self) -> None:
        """What must hold at rest: every entry has its object, lists name what is there, proofs are true."""
        for rel, entry in self.index().items():
            body = self.memory.get(rel)
            assert len(body.data) == entry.size_bytes, rel
            assert entry.sha256 in (None, hashlib.sha256(body.data).hexdigest()), rel
        check_lists(self.memory)


def body_at(remote: Remote, key: str) -> Body | None:
    """An object, or None."""
    try:
        return remote.get(key)
    except NotFoundError:
        return None


def committed(remote: Remote) -> dict[str, Entry]:
    """The entries of an index in either form."""
    meta = body_at(remote, META)
    if meta is not None and decode_meta(meta.data, META).version == 2:
        found: dict[str, Entry] = {}
        for name in decode_meta(meta.data, META).partitions:
            key = f"_index/{name}.json"
            shard = decode_shard(remote.get(key).data, key)
            found |= {rel: entry for rel, entry in shard.items() if isinstance(entry, Entry)}
        return found
    monolith = body_at(remote, MONOLITH)
    entries = {} if monolith is None else decode_monolith(monolith.data)
    return {rel: entry for rel, entry in entries.items() if isinstance(entry, Entry)}


def check_lists(remote: Remote) -> None:
    """A list names only shards that are there; a valid proof is true for every partition that it names."""
    meta = body_at(remote, META)
    if meta is None:
        return
    found = decode_meta(meta.data, META)
    if found.version == 2:
        for name in found.partitions:
            decode_shard(remote.get(f"_index/{name}.json").data, name)
        return
    monolith = body_at(remote, MONOLITH)
    assert monolith is not None
    if found.proof is None or found.proof.monolith != monolith.stat.fingerprint:
        return
    groups: dict[str | None, dict[str, Any]] = {}
    for rel, entry in decode_monolith(monolith.data).items():
        groups.setdefault(partition_of(rel), {})[rel] = entry
    assert set(groups) - {None} <= set(found.proof.shards)
    for name, tag in found.proof.shards.items():
        body = body_at(remote, f"_index/{name}.json")
        if body is not None and body.stat.fingerprint == tag:
            assert dict(decode_shard(body.data, name).items()) == groups.get(name, {}), name


def pair(world: World, content: str = "base") -> tuple[Client, Client]:
    """Two caches that agree about one file."""
    one, other = world.client(), world.client()
    one.write("logs/a", content)
    one.push()
    other.pull()
    return one, other


def disagree(world: World) -> tuple[Client, Client]:
    """Two caches that both changed it; the first one was faster."""
    one, other = pair(world)
    one.write("logs/a", "from one")
    one.push()
    other.write("logs/a", "from other")
    return one, other
