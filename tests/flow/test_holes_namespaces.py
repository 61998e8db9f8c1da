"""Namespaces of the reference (wire-format §10, E): each way it mixes tenants up, and that ours does not."""

from collections.abc import Callable
from pathlib import Path

import pytest

import mire
from mire.edge.memory import MemoryRemote
from mire.edge.prefixed import Prefixed
from mire.flow.contamination import examine_namespace
from mire.flow.control import ControlStore
from mire.flow.exchange import pull_now, push_now
from mire.flow.foreign import ForeignView
from mire.flow.mark import mark_all
from mire.flow.namespace import unset_namespace
from mire.flow.registry import list_namespaces
from mire.model.names import SOLO, Namespace
from sync_world import WRITES, Recorded, World, committed, data
from tenants import Tenant

A, B = "team-a", "team-b"


@pytest.fixture
def remote() -> Recorded:
    """A store that remembers what was asked."""
    return Recorded(MemoryRemote())


def tenant(top: Path, name: str, remote: Recorded, namespace: str = "") -> Tenant:
    """A repository with data, in a namespace or without one."""
    one = Tenant(top / name, remote)
    if namespace:
        one.take(namespace)
    one.put("m", f"of {name}")
    return one


@pytest.mark.parametrize("damage", [None, b"garbage"])
def test_E1_the_solo_tenants_data_is_never_touched(fast_path: Path, remote: Recorded, damage: bytes | None) -> None:
    """However often a namespaced repository pushes, from however many machines, and whatever the root index says."""
    solo = tenant(fast_path, "solo", remote)
    if damage is not None:
        remote.put(".datastore-index.json", damage)
    before = {stat.key: stat.fingerprint for stat in remote.list()}
    one = tenant(fast_path, "one", remote, A)
    remote.take()
    for content in ("second", "third"):
        one.put("m", content)
        with one.open() as store:
            mark_all(store.datastore)
            push_now(store.datastore)
    assert not [key for operation, key in remote.take() if operation in WRITES and key in before]
    assert {key: tag for key, tag in ((s.key, s.fingerprint) for s in remote.list()) if key in before} == before
    assert not [stat.key for stat in remote.list(f"{A}/") if "of solo" in str(remote.get(stat.key).data)]
    if damage is None:
        assert solo.get("m") == "of solo"


@pytest.mark.parametrize("sharded", [False, True])
def test_E2_a_push_in_a_namespace_asks_nothing_of_the_root(worlds: Callable[..., World], *, sharded: bool) -> None:
    """No HEAD, no GET of the root's index, no listing of the store: the same requests as without a namespace."""
    world = worlds(sharded=sharded)
    solo, one = world.client(), world.client(namespace=A)
    asked = []
    for client in (solo, one):
        client.version("m", 1, "x")
        client.push()
        client.pull()
        client.version("m", 2, "y")
        world.remote.take()
        client.push()
        asked.append(world.remote.take())
    assert all(key.startswith(f"{A}/") for _, key in asked[1])
    assert sorted((operation, key.removeprefix(f"{A}/")) for operation, key in asked[1]) == sorted(asked[0])


def test_E3_nothing_is_hydrated_or_pushed_twice_below_its_namespace(fast_path: Path, remote: Recorded) -> None:
    """Content comes to its place, and what another program left below a doubled name is not published."""
    one = tenant(fast_path, "one", remote, A)
    again = Tenant(fast_path / "again", remote)
    (again.repo / ".swamp.yaml").write_bytes((one.repo / ".swamp.yaml").read_bytes())
    with again.home(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWAMP_HOME", str(fast_path / "elsewhere"))
        with mire.open(again.repo) as store:
            pull_now(store.datastore)
            assert store.model("aws/ec2/vpc", "m").get("state").text() == "of one"
            tier = Path(store.datastore.tier)
            assert not (tier / A).exists()
            (tier / A / data("x")).parent.mkdir(parents=True)
            (tier / A / data("x")).write_bytes(b"doubled")
            mark_all(store.datastore)
            assert push_now(store.datastore).uploaded == []
    assert not [stat.key for stat in remote.list(f"{A}/{A}/")]


def test_E4_a_namespace_called_data_cannot_exist_and_repairs_nothing_away(fast_path: Path, remote: Recorded) -> None:
    """Nobody takes it with ours; registered by another program, our data is still not taken for its."""
    one = tenant(fast_path, "one", remote, A)
    with pytest.raises(mire.InputError, match="'data' is the name of a datastore directory"):
        Tenant(fast_path / "other", remote).take("data")
    manifest = b'{"namespace": "data", "repoId": "other", "registeredAt": "2026-01-01T00:00:00.000Z"}'
    remote.put("data/.namespace.json", manifest)
    before = {stat.key: stat.fingerprint for stat in remote.list(f"{A}/data/")}
    with one.open() as store:
        assert examine_namespace(store.datastore, repair=True, root=True).findings == []
        assert [each.namespace for each in list_namespaces(store.datastore)] == [A]
    assert {stat.key: stat.fingerprint for stat in remote.list(f"{A}/data/") if "/.lock" not in stat.key} == before


def test_E5_own_doubling_is_detected_without_a_manifest(fast_path: Path, remote: Recorded) -> None:
    """`<ns>/<ns>/…` is told and brought home, whatever lies there."""
    one = tenant(fast_path, "one", remote, A)
    remote.put(f"{A}/{A}/{data('x')}", b"only copy")
    with one.open() as store:
        (found,) = examine_namespace(store.datastore).findings
        assert (found.kind, found.home) == ("doubled", f"{A}/{data('x')}")
        examine_namespace(store.datastore, repair=True)
    assert remote.get(f"{A}/{data('x')}").data == b"only copy"
    assert data("x") in committed(Prefixed(remote, A))


def test_E6_internal_files_stay_internal_inside_a_namespace(worlds: Callable[..., World]) -> None:
    """Index, control records, sidecar, locks and catalogs in the directory of a namespace are not published."""
    world = worlds()
    one = world.client(namespace=A)
    for rel in (
        *(".datastore-index.json", "_index/x.json", "_control/y", ".datastore-sync-state.json", ".datastore.lock"),
        *(".push-queue.json", ".namespace.json", "data/_catalog.db", "data/_catalog.db-wal", "data/a/b/.lock"),
    ):
        one.scribble(rel, "internal")
    one.version("m", 1, "x")
    one.mark_all()
    assert sorted(one.push().uploaded) == sorted(one.files())
    assert "_control/y" not in committed(Prefixed(world.memory, A))
    for key in (f"{A}/_index/x.json", f"{A}/_control/y", f"{A}/.namespace.json", f"{A}/data/_catalog.db"):
        assert world.get(key) is None


def test_E7_a_solo_push_leaves_directories_of_namespaces_alone(fast_path: Path, remote: Recorded) -> None:
    """Who had a namespace and left it does not publish it once more at the root, with or without a manifest there."""
    one = tenant(fast_path, "one", remote, A)
    with one.home():
        unset_namespace(str(one.repo), keep=True)
    with one.open() as store:
        base = Path(store.datastore.base)
        assert (base / A / data("m")).is_file()
        (base / B / data("m")).parent.mkdir(parents=True)
        (base / B / data("m")).write_bytes(b"no manifest here")
        remote.take()
        mark_all(store.datastore)
        assert push_now(store.datastore, full=True).uploaded == []
        pull_now(store.datastore, full=True)
    assert not [key for _, key in remote.take() if key.startswith((f"{A}/", f"{B}/"))]
    assert not [rel for rel in committed(remote) if rel.startswith((f"{A}/", f"{B}/"))]


def test_E7_marks_of_anothers_files_touch_nothing(worlds: Callable[..., World]) -> None:
    """What an earlier program marked in the part of a namespace is neither sent nor asked for nor deleted."""
    world = worlds()
    one = world.client()
    one.version("m", 1, "x")
    one.push()
    rel = f"{A}/{data('m')}"
    one.scribble(rel, "theirs")
    one.mark(rel)
    world.remote.take()
    assert one.push().count == 0
    assert not one.is_dirty
    one.path(rel).unlink()
    one.mark(rel)
    one.push()
    assert not [key for _, key in world.remote.take() if key.startswith(f"{A}/")]


def test_E8_control_records_are_listed_where_they_are_written(remote: Recorded) -> None:
    """A store that is bound to a namespace after it was made lists and writes in the same place."""
    bound = SOLO
    store = ControlStore(remote, lambda: bound)
    store.put("heartbeats/a", b"solo")
    bound = Namespace(A)
    store.put("heartbeats/b", b"bound")
    assert store.list("heartbeats") == ["heartbeats/b"]
    assert remote.get(f"{A}/_control/heartbeats/b").data == b"bound"


def test_E9_what_a_cache_knows_of_one_namespace_is_not_believed_of_another(fast_path: Path, remote: Recorded) -> None:
    """Changing the namespace of a cache forgets fingerprints and base: nothing is skipped, nothing deleted."""
    solo = tenant(fast_path, "one", remote)
    other = tenant(fast_path, "other", remote, B)
    with solo.open() as store:
        pull_now(store.datastore)
        base = Path(store.datastore.base)
        (base / ".datastore-index.json").write_text("{}")
    solo.take(A)
    assert not (base / ".datastore-index.json").exists()
    with solo.open() as store:
        assert pull_now(store.datastore).count == 0
        assert push_now(store.datastore, full=True).count == 0
    solo.put("n", "in the namespace")
    assert [rel for rel in committed(Prefixed(remote, A)) if rel.endswith("/raw")] == [data("n")]
    assert data("m") in committed(remote)
    with solo.home():
        unset_namespace(str(solo.repo), keep=True)
    with solo.open() as store:
        pull_now(store.datastore)
    assert solo.get("m") == "of one"
    assert other.get("m") == "of other"


def test_E10_only_the_list_of_namespaces_lists_the_store_and_one_level_of_it(fast_path: Path, remote: Recorded) -> None:
    """With a delimiter; a nested manifest is no namespace; a missing index is not discovered by listing."""
    one = tenant(fast_path, "one", remote, A)
    tenant(fast_path, "two", remote, B)
    remote.put(f"{A}/nested/.namespace.json", b"{}")
    remote.take()
    with one.open() as store:
        assert [each.namespace for each in list_namespaces(store.datastore)] == [A, B]
        asked = [each for each in remote.take() if each[0].startswith("list")]
        assert asked == [("list_level", "")]
        examine_namespace(store.datastore, repair=True)
        assert {key for operation, key in remote.take() if operation.startswith("list")} <= {
            f"{A}/",
            f"{A}/_index/",
            f"{A}/data/",
        }
    assert ForeignView(remote).manifest(Namespace("nested")) is None


@pytest.mark.parametrize("sharded", [False, True])
def test_a_sync_of_nothing_costs_one_request_or_none(worlds: Callable[..., World], *, sharded: bool) -> None:
    """In a namespace as without one: a pull asks once whether the index changed, a push asks nothing."""
    world = worlds(sharded=sharded)
    one = world.client(namespace=A)
    one.version("m", 1, "x")
    one.push()
    one.pull()
    world.remote.take()
    assert one.pull().count == 0
    assert len(world.remote.take()) == 1
    assert one.push().count == 0
    assert world.remote.take() == []
