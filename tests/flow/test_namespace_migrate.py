"""Moving a repository's data into its namespace and back: all of it or nothing, and nothing of anybody else."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.edge.memory import MemoryRemote
from mire.edge.prefixed import Prefixed
from mire.flow.control import ControlStore
from mire.flow.exchange import pull_now, push_now
from mire.flow.lock import hold_global
from mire.flow.mark import mark, pending_marks
from mire.flow.namespace import bound_to, set_namespace, show_namespace, unset_namespace
from mire.flow.namespace_migrate import Migration, migrate_namespace
from mire.flow.registry import list_namespaces
from mire.flow.relocation_journal import save_journal
from mire.model.names import Namespace
from mire.plan.config import Flags
from mire.wire.monolith import decode_monolith
from sync_world import MONOLITH, WRITES, Recorded, committed, data
from tenants import Tenant

SCRIPT = Path(__file__).with_name("namespace_crash.py")
Snapshot = Callable[[Path], dict[str, Any]]
OURS = "team-a"


@pytest.mark.parametrize(
    ("way", "kind", "least"),
    [("forward", "directory", 60), ("reverse", "directory", 60), ("forward", "v1", 40), ("reverse", "v2", 40)],
)
def test_dying_at_any_step(way: str, kind: str, least: int, fast_path: Path) -> None:
    """Whatever the step: every file can be read in one place or the other, and the next run ends where it should."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), way, kind, str(fast_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= least


def move(tenant: Tenant, **options: Any) -> Migration:
    """Migrate, as a command does."""
    with tenant.home():
        return migrate_namespace(str(tenant.repo), **{"adopt": True, **options})


def at_remote(fast_path: Path, *, sharded: bool = False, name: str = "one", remote: Any = None) -> Tenant:
    """A repository without a namespace at a remote in memory, with two versions."""
    tenant = Tenant(fast_path / name, remote or Recorded(MemoryRemote()), {"index": "sharded" if sharded else "dual"})
    tenant.put("m", "first")
    tenant.put("m", "second")
    return tenant


def in_directory(fast_path: Path, name: str = "one") -> Tenant:
    """The same in a directory that others use, too."""
    shared = fast_path / "shared"
    shared.mkdir(exist_ok=True)
    tenant = Tenant(fast_path / name, None, {"type": "filesystem", "path": str(shared)})
    tenant.put("m", "first")
    tenant.put("m", "second")
    return tenant


@pytest.fixture(params=["directory", "v1", "v2"])
def tenant(request: pytest.FixtureRequest, fast_path: Path) -> Tenant:
    """A repository that has data and no namespace."""
    if request.param == "directory":
        return in_directory(fast_path)
    return at_remote(fast_path, sharded=request.param == "v2")


def numbers(done: Migration) -> tuple[object, ...]:
    """What is shown of a migration."""
    return dict(done.shares), done.files, done.size_bytes, done.duplicates


def test_there_and_back(tenant: Tenant) -> None:
    """Everything is where it was, a dry run says the same numbers, and the name is free again."""
    tenant.take(OURS)
    planned = move(tenant, dry_run=True)
    done = move(tenant)
    assert numbers(planned) == numbers(done)
    assert (done.files, set(done.shares)) == (5, {"data"})
    assert tenant.get("m") == "second"
    assert move(tenant).files == 0
    tenant.put("m", "third")
    planned = move(tenant, reverse=True, dry_run=True)
    done = move(tenant, reverse=True)
    assert numbers(planned) == numbers(done)
    assert done.files == 7
    assert tenant.get("m") == "third"
    with tenant.open() as store:
        assert store.datastore.config.namespace == ""
        assert list_namespaces(store.datastore) == []
        assert store.model("aws/ec2/vpc", "m").versions("state") == [1, 2, 3]


def test_a_dry_run_changes_nothing(tenant: Tenant, snapshot: Snapshot) -> None:
    """Neither files nor objects, and it takes no lock."""
    tenant.take(OURS)
    before = snapshot(tenant.repo.parent / "shared") if tenant.remote is None else None
    if isinstance(tenant.remote, Recorded):
        tenant.remote.take()
    move(tenant, dry_run=True)
    if isinstance(tenant.remote, Recorded):
        assert tenant.remote.take_writes() == []
    else:
        assert snapshot(tenant.repo.parent / "shared") == before


@pytest.mark.parametrize("sharded", [False, True])
def test_entries_move_as_they_are(fast_path: Path, *, sharded: bool) -> None:
    """Hashes, times and members that we do not know are the same in the new index, which has the form of the old."""
    tenant = at_remote(fast_path, sharded=sharded)
    remote = tenant.remote
    assert isinstance(remote, Recorded)
    before = committed(remote)
    assert before
    tenant.take(OURS)
    move(tenant)
    assert committed(Prefixed(remote, OURS)) == before
    assert committed(remote) == {}
    keys = [stat.key for stat in remote.list()]
    assert (f"{OURS}/{MONOLITH}" in keys) == (not sharded)
    assert not [key for key in keys if key.startswith("data/")]


@pytest.mark.parametrize("sharded", [False, True])
def test_an_object_is_listed_before_it_is_unlisted_and_unlisted_before_it_is_deleted(
    fast_path: Path, *, sharded: bool
) -> None:
    """Copies, then the new index, then the old one, then deletions: at no moment an entry has no object."""
    tenant = at_remote(fast_path, sharded=sharded)
    tenant.take(OURS)
    remote = tenant.remote
    assert isinstance(remote, Recorded)
    remote.take()
    move(tenant)
    order = [
        "copy" if operation == "copy" else "delete" if operation.startswith("delete") else key
        for operation, key in remote.take_writes()
        if operation == "copy"
        or key.startswith(("data/", "_index/", ".datastore-index", f"{OURS}/_index/", f"{OURS}/.datastore-index"))
    ]
    index = [at for at, each in enumerate(order) if each.startswith(f"{OURS}/")]
    old = [at for at, each in enumerate(order) if each.startswith(("_index/", ".datastore-index"))]
    copies = [at for at, each in enumerate(order) if each == "copy"]
    deletes = [at for at, each in enumerate(order) if each == "delete"]
    assert len(copies) == len(deletes) == 5
    assert max(copies) < min(index) <= max(index) < min(old) <= max(old) < min(deletes)


def test_both_locks_are_held(tenant: Tenant) -> None:
    """Who works at the root, or in the namespace, is waited for."""
    tenant.take(OURS)
    for namespace in ("", OURS):
        with tenant.open() as store:
            ds = replace(bound_to(store.datastore, Namespace(namespace)), lifecycle=None)
            outcome: list[object] = []

            def other(into: list[object] = outcome) -> None:
                try:
                    migrate_namespace(str(tenant.repo), adopt=True, flags=Flags(lock_timeout_s=0))
                except mire.LockTimeoutError as error:
                    into.append(error)

            with hold_global(ds):
                thread = threading.Thread(target=other)
                thread.start()
                thread.join(30)
            assert len(outcome) == 1, namespace


def test_real_collisions_are_refused_with_both_paths(tenant: Tenant, snapshot: Snapshot) -> None:
    """Before anything is moved; equal bytes on both sides are no collision."""
    rel, other = data("m", version=1), data("m", version=2)
    tenant.take(OURS)
    if tenant.remote is None:
        shared = tenant.repo.parent / "shared"
        for path, content in ((rel, b"something else"), (other, b"second")):
            (shared / OURS / path).parent.mkdir(parents=True, exist_ok=True)
            (shared / OURS / path).write_bytes(content)
        before: object = snapshot(shared)
    else:
        tenant.remote.put(f"{OURS}/{rel}", b"something else")
        tenant.remote.put(f"{OURS}/{other}", b"second")
        before = {stat.key: stat.fingerprint for stat in tenant.remote.list() if not stat.key.startswith(".")}
    for dry_run in (True, False):
        with pytest.raises(mire.ConflictError, match="different content") as told:
            move(tenant, dry_run=dry_run)
        assert told.value.kind == "namespace_collision"
        assert f"{OURS}/{rel}" in str(told.value)
        (pair,) = told.value.document()["pairs"]
        assert [each.removeprefix(f"{tenant.repo.parent}/shared/") for each in pair] == [rel, f"{OURS}/{rel}"]
    if tenant.remote is None:
        after = {path: each for path, each in snapshot(tenant.repo.parent / "shared").items() if ".lock" not in path}
        assert after == before
        (tenant.repo.parent / "shared" / OURS / rel).unlink()
    else:
        assert {
            s.key: s.fingerprint for s in tenant.remote.list() if not s.key.startswith(".")
        }.items() >= before.items()  # type: ignore[attr-defined]
        tenant.remote.delete(f"{OURS}/{rel}")
    assert move(tenant).duplicates == 1
    assert tenant.get("m") == "second"


def beside(owner: Tenant, name: str) -> Tenant:
    """Another repository on the same store."""
    place = owner.repo.parent
    block = {"type": "filesystem", "path": str(place / "shared")} if owner.remote is None else None
    return Tenant(place / name, owner.remote, block)


def test_what_another_repository_wrote_at_the_root_is_not_taken(fast_path: Path) -> None:
    """Whose it is nobody can tell: who wants it must say that it is its own."""
    for make in (in_directory, at_remote):
        place = fast_path / make.__name__
        place.mkdir()
        owner = make(place, name="owner")
        stranger = beside(owner, "stranger")
        stranger.take(OURS)
        with pytest.raises(mire.ConflictError, match="add --adopt"):
            move(stranger, adopt=False)
        assert owner.get("m") == "second"
        assert move(stranger, adopt=True).files == 5
        if stranger.remote is not None:
            with stranger.open() as store:
                pull_now(store.datastore)
        assert stranger.get("m") == "second"


def test_the_way_back_does_not_mix_with_others(fast_path: Path) -> None:
    """A root that somebody uses is not written into, unless that is wanted."""
    for make in (in_directory, at_remote):
        place = fast_path / make.__name__
        place.mkdir()
        owner = make(place, name="owner")
        one = beside(owner, "one")
        one.take(OURS)
        one.put("n", "mine")
        with pytest.raises(mire.ConflictError, match="perhaps another repository's"):
            move(one, reverse=True, adopt=False)
        assert one.get("n") == "mine"
        assert move(one, reverse=True, adopt=True).files == 3
        assert owner.get("m") == "second"


def test_other_namespaces_control_records_and_the_marker_stay(fast_path: Path) -> None:
    """X9: nothing below `_control/` moves, the format marker least of all."""
    remote = Recorded(MemoryRemote())
    one = at_remote(fast_path, remote=remote)
    other = Tenant(fast_path / "other", remote)
    other.take("team-b")
    other.put("m", "theirs")
    ControlStore(remote).put("heartbeats/web-1", b"beat")
    remote.put("_control/datastore-format", b'{"format": 2}')
    theirs = {stat.key: stat.fingerprint for stat in remote.list("team-b/")}
    one.take(OURS)
    move(one)
    assert remote.get("_control/datastore-format").data == b'{"format": 2}'
    assert ControlStore(remote).get("heartbeats/web-1") == b"beat"
    assert {stat.key: stat.fingerprint for stat in remote.list("team-b/")} == theirs
    assert [stat.key for stat in remote.list(f"{OURS}/_control/")] == []


def test_marks_are_not_forgotten(fast_path: Path) -> None:
    """X2: what is marked before or during a first push in a namespace is published, whatever fails."""
    one = at_remote(fast_path)
    one.take(OURS)
    move(one)
    with one.open() as store:
        mark(store.datastore, f"{OURS}/data/aws/ec2/vpc/m")
        assert {each.path for each in pending_marks(store.datastore).records} == {f"{OURS}/data/aws/ec2/vpc/m"}
        with pytest.raises(mire.ConflictError, match="push"):
            move(one, reverse=True)
        push_now(store.datastore)
    move(one, reverse=True)


def test_an_interrupted_migration_forbids_writing_and_the_other_way(tenant: Tenant) -> None:
    """Until it is finished nobody gives out numbers that are still under way, nor leaves; a look tells of it."""
    tenant.take(OURS)
    with tenant.open() as store:
        save_journal(store.datastore, "forward", {})
    with pytest.raises(mire.DeniedError, match="mire namespace migrate"):
        tenant.put("m", "x")
    if tenant.remote is not None:
        with tenant.open() as store:
            mark(store.datastore, f"{OURS}/{data('m')}")
            with pytest.raises(mire.DeniedError, match="mire namespace migrate"):
                push_now(store.datastore)
    with pytest.raises(mire.ConflictError, match="the other way"):
        move(tenant, reverse=True)
    with tenant.home():
        assert show_namespace(str(tenant.repo)).unfinished == "forward"
        with pytest.raises(mire.ConflictError, match="did not come to its end"):
            unset_namespace(str(tenant.repo), keep=True)
        set_namespace(str(tenant.repo), OURS)
    assert move(tenant).is_resumed
    tenant.put("m", "third")
    with tenant.home():
        assert show_namespace(str(tenant.repo)).unfinished is None


def test_a_dry_run_tells_what_whose_owner_nobody_knows(tenant: Tenant) -> None:
    """A look at a shared root shows the numbers, and says which word the real run wants."""
    tenant.take(OURS)
    planned = move(tenant, dry_run=True, adopt=False)
    assert planned.files > 0
    assert [finding for finding in planned.findings if "--adopt" in finding] == list(planned.findings) != []
    with pytest.raises(mire.ConflictError, match="--adopt"):
        move(tenant, adopt=False)
    assert numbers(move(tenant)) == numbers(planned)


def test_what_is_local_or_a_lock_stays(fast_path: Path) -> None:
    """The repository's catalog, excluded data and locks are not the tenant's; hidden files of data are."""
    one = Tenant(fast_path / "one", None, {"type": "filesystem", "path": ".swamp", "exclude": ["/data/private"]})
    with one.open() as store:
        store.model("svc", "web").put("state", "x")
        store.model("svc", "web").hold_back("state", reason="audit")
        store.model("private", "p").put("state", "secret")
        assert len(store.query("true")) == 2
        Path(store.datastore.base, "secrets").mkdir(exist_ok=True)
        Path(store.datastore.base, "secrets/key").write_text("k")
    one.take(OURS)
    move(one)
    base = one.repo / ".swamp"
    assert (base / OURS / "data/svc/web/state/.hold").is_file()
    assert (base / "data/private/p/state/1/raw").is_file()
    assert (base / "secrets/key").is_file()
    assert list((base / "data").glob("_catalog.db*"))
    with one.open() as store:
        assert len(store.query("true")) == 2
        assert len(store.holds()) == 1
        assert store.model("private", "p").get("state").text() == "secret"


def test_an_entry_without_an_object_is_told_and_stays(fast_path: Path) -> None:
    """What cannot be moved is not dropped from the index it is in."""
    one = at_remote(fast_path)
    remote = one.remote
    assert isinstance(remote, Recorded)
    rel = data("m", version=1)
    remote.delete(rel)
    one.take(OURS)
    done = move(one)
    assert any(rel in finding for finding in done.findings)
    assert set(decode_monolith(remote.get(MONOLITH).data)) == {rel}
    assert done.files == 4


def test_a_peer_with_a_cache_of_its_own_finds_it(fast_path: Path) -> None:
    """Another clone of the repository, with its own cache, pulls from the namespace what the first one moved."""
    one = at_remote(fast_path)
    one.take(OURS)
    move(one)
    clone = Tenant(fast_path / "clone", one.remote)
    (clone.repo / ".swamp.yaml").write_bytes((one.repo / ".swamp.yaml").read_bytes())
    with clone.home() as _, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWAMP_HOME", str(fast_path / "elsewhere"))
        with mire.open(clone.repo) as store:
            assert len(pull_now(store.datastore).written) > 0
            assert store.model("aws/ec2/vpc", "m").get("state").text() == "second"


def test_requests_that_write_are_those_that_are_needed(fast_path: Path) -> None:
    """Per object one copy and one deletion; everything else is the index, the locks, the claim and the journal."""
    one = at_remote(fast_path)
    one.take(OURS)
    remote = one.remote
    assert isinstance(remote, Recorded)
    remote.take()
    move(one)
    asked = remote.take()
    data_writes = [
        (operation, key) for operation, key in asked if operation in WRITES and "data/" in key and "_index" not in key
    ]
    assert sorted({operation for operation, _ in data_writes}) in (["copy", "delete_if"], ["copy", "delete"])
    assert len(data_writes) == 10
    assert {key for operation, key in asked if operation == "list" and not key.startswith(OURS)} <= {"_index/", "data/"}
