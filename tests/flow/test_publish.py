"""A push in a namespace publishes its catalog: what it says, what it costs, and who may do it at the same time."""

import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import mire
from mire.edge import clock
from mire.edge.prefixed import Prefixed
from mire.edge.state import State
from mire.errors import ConfigError, RemoteError
from mire.flow import publish
from mire.flow.catalog import rebuild
from mire.flow.datastore import Datastore
from mire.flow.exchange import push_now
from mire.flow.publishnow import is_waiting, publish_now, unpublish_now
from mire.flow.push import push
from mire.flow.verify import verify
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.wire.export import EXPORT, EXPORT_COLUMNS, encode_export_compact
from sync_world import META, MONOLITH, TYPE, Client, Hooked, World, committed, data, ref

KEY = f"team/{EXPORT}"


def client(world: World, **options: Any) -> Client:
    """A cache of the namespace that publishes."""
    return world.client(**{"namespace": "team", "lazy": True, "publishing": True, **options})


def rows(world: World) -> list[dict[str, Any]]:
    """What is published."""
    found: list[dict[str, Any]] = json.loads(world.get(KEY) or b"null")
    return found


def names(world: World) -> list[tuple[str, str, int]]:
    """The models, names and versions that are published, sorted."""
    return sorted((row["model_id"], row["data_name"], row["version"]) for row in rows(world))


def entry(world: World) -> Entry | None:
    """What the index says of the published catalog."""
    return committed(Prefixed(world.memory, "team")).get(EXPORT)


def quiet(ds: Datastore) -> Datastore:
    """A datastore whose settings say that nothing is published."""
    config = replace(ds.config, publishes_catalog=False)
    return replace(ds, config=config, sync=replace(ds.sync, is_publishing=False))


def check(world: World) -> None:
    """The index describes the object that is there."""
    found, listed = world.get(KEY), entry(world)
    assert found is not None
    assert listed is not None
    assert (listed.size_bytes, listed.sha256) == (len(found), hashlib.sha256(found).hexdigest())


def asked_of_export(world: World) -> list[str]:
    """The operations on the published catalog since the last time."""
    return [operation for operation, key in world.remote.take() if key == KEY]


def test_a_push_publishes_its_rows_as_the_reference_does(world: World) -> None:
    """The 23 columns in two-space indent, an ordinary file of the cache, listed in the partition `_root`."""
    one = client(world)
    one.put("m", {"a": 1}, tags={"env": "prod", "ü": "é"})
    one.put("m", {"a": 2})
    done = one.push()
    assert done.is_whole
    assert EXPORT in done.uploaded
    text = world.get(KEY)
    assert text == (json.dumps(rows(world), indent=2, ensure_ascii=False) + "\n").encode()
    assert [list(row) for row in rows(world)] == [list(EXPORT_COLUMNS)] * 2
    last = rows(world)[1]
    assert (last["namespace"], last["type_normalized"], last["model_id"], last["data_name"]) == (
        *("team", TYPE, "m", "state"),
    )
    assert (last["version"], last["is_latest"], last["model_name"], last["size"]) == (2, 1, "name-of-m", 7)
    assert json.loads(rows(world)[0]["tags"])["ü"] == "é"
    assert one.read(EXPORT) == text
    assert world.get("team/_index/_root.json") is not None
    check(world)


def test_a_clean_push_asks_nothing_and_a_pull_asks_once(plain: World) -> None:
    """Publishing leaves nothing to do for either."""
    one = client(plain)
    one.put("m", {"a": 1})
    one.push()
    one.pull()
    plain.remote.take()
    assert one.push().count == 0
    assert plain.remote.take() == []
    assert one.pull().count == 0
    assert plain.remote.take() == [("get_if_changed", f"team/{META if plain.sharded else MONOLITH}")]


def test_publishing_costs_one_request_and_its_partition(worlds: Callable[..., World], plain: World) -> None:
    """Who published last writes the catalog without reading it; the index has one more partition to keep."""
    costs = []
    for publishing in (False, True):
        world = worlds(sharded=plain.sharded)
        one = client(world, publishing=publishing)
        one.put("m", {"a": 1})
        one.push()
        one.put("m", {"a": 2})
        world.remote.take()
        one.push()
        costs.append(sorted(world.remote.take()))
    more = [each for each in costs[1] if each not in costs[0]]
    shard = "team/_index/_root.json"
    assert more == [*([("get", shard)] if plain.sharded else []), ("put_if", KEY), ("put_if", shard)]
    assert len(costs[1]) == len(costs[0]) + len(more)


def test_nothing_is_published_when_no_row_changed(plain: World) -> None:
    """Other files do not concern the catalog; files beside a version do, but change no row."""
    one = client(plain)
    one.put("m", {"a": 1})
    one.push()
    before = plain.get(KEY)
    plain.remote.take()
    one.write("logs/a", "x")
    one.push()
    one.write(f"data/{TYPE}/m/state/.hold", "x")
    one.push()
    assert asked_of_export(plain) == []
    assert plain.get(KEY) == before
    assert one.push().count == 0


def test_rows_of_removed_data_leave(plain: World) -> None:
    """A version, then a name, then a name that was renamed away, and one that is marked deleted."""
    one = client(plain)
    for number in range(2):
        one.put("m", {"a": number})
    one.put("n", {"a": 1})
    one.put("o", {"a": 1})
    one.push()
    mire.Model(one.ds, ref("m"), None).delete("state", 1)
    one.push()
    assert names(plain) == [("m", "state", 2), ("n", "state", 1), ("o", "state", 1)]
    mire.Model(one.ds, ref("n"), None).rename("state", "was")
    mire.Model(one.ds, ref("o"), None).mark_deleted("state")
    one.push()
    assert names(plain) == [("m", "state", 2), ("n", "was", 1)]
    mire.Model(one.ds, ref("m"), None).delete("state")
    one.push()
    assert names(plain) == [("n", "was", 1)]
    check(plain)


def test_caches_that_know_different_parts_keep_each_others_rows(world: World) -> None:
    """A cache that pulled one model publishes that one; whoever publishes next fetches what is there first."""
    one, other = client(world), client(world)
    one.put("m", {"a": 1})
    one.push()
    other.pull("n")
    other.put("n", {"a": 1})
    world.remote.take()
    assert other.push().is_whole
    assert asked_of_export(world) == ["get_stream", "put_if"]
    one.put("m", {"a": 2})
    assert one.push().is_whole
    assert one.pull().is_whole
    one.put("o", {"a": 1})
    assert one.push().is_whole
    assert other.pull().is_whole
    assert names(world) == [("m", "state", 1), ("m", "state", 2), ("n", "state", 1), ("o", "state", 1)]
    check(world)
    for each in (one, other):
        assert (each.push().count, each.pull().count) == (0, 0)


@pytest.mark.parametrize("at", ["export", "export in parts", "index", "partition"])
def test_of_two_who_publish_at_once_neither_loses_rows(world: World, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody publishes right before our object is stored, or right before our commit: ours is composed anew."""
    is_large = at == "export in parts"
    if is_large:
        monkeypatch.setattr("mire.flow.publish._WHOLE_BYTES", 0)
    hooked = Hooked(world.remote)
    one, other = client(world, remote=hooked), client(world)
    one.put("m", {"a": 1})
    one.push()
    one.put("m", {"a": 2})
    other.put("n", {"a": 1})
    index = "team/_index/_root.json" if world.sharded else f"team/{MONOLITH}"
    key = {"index": index, "partition": "team/_index/_root.json"}.get(at, KEY)
    hooked.at("put_stream_if" if is_large else "put_if", key, other.push)
    done = one.push()
    assert done.is_whole, done
    assert names(world) == [("m", "state", 1), ("m", "state", 2), ("n", "state", 1)]
    check(world)
    assert (one.push().count, other.push().count) == (0, 0)
    assert [found.path for found in verify(one.ds, deep=True).findings if found.is_damage] == []


def test_others_who_are_faster_again_and_again_are_no_conflict(worlds: Callable[..., World]) -> None:
    """What could not be published is marked, and the next push publishes it."""
    world = worlds()
    hooked = Hooked(world.remote)
    one, other = client(world, remote=hooked), client(world)
    one.put("m", {"a": 1})
    one.push()
    count = iter(range(100))

    def publish_other() -> None:
        other.put("n", {"a": next(count)})
        other.push()

    one.put("m", {"a": 2})
    hooked.at("put_if", KEY, publish_other, times=5)
    assert one.push().is_whole
    assert ("m", "state", 2) not in names(world)
    assert one.push().is_whole
    assert ("m", "state", 2) in names(world)
    assert not one.is_dirty
    check(world)


@pytest.mark.parametrize("after", [False, True])
def test_a_push_that_dies_on_the_way_is_made_up_for(plain: World, *, after: bool) -> None:
    """The catalog was stored, or not; the index does not know of it; nobody is kept from publishing."""
    hooked = Hooked(plain.remote)
    one, other = client(plain, remote=hooked), client(plain)
    one.put("m", {"a": 1})
    one.push()
    one.put("m", {"a": 2})
    hooked.fail("put_if", KEY, after=after)
    with pytest.raises(RemoteError):
        one.push()
    other.put("n", {"a": 1})
    assert other.push().is_whole
    check(plain)
    assert one.push().is_whole
    assert names(plain) == [("m", "state", 1), ("m", "state", 2), ("n", "state", 1)]
    check(plain)


def test_a_first_publication_says_all_that_is_here(plain: World) -> None:
    """Where nobody published before, the push that begins to publishes what its cache knows, not only what it sends."""
    one = client(plain, publishing=False)
    one.put("m", {"a": 1})
    one.put("n", {"a": 1})
    one.push()
    assert plain.get(KEY) is None
    one.ds = replace(one.ds, sync=replace(one.ds.sync, is_publishing=True))
    one.put("n", {"a": 2})
    one.push()
    assert names(plain) == [("m", "state", 1), ("n", "state", 1), ("n", "state", 2)]


@pytest.mark.parametrize("published", [b"", b"{", b"null", b"[1]", b"\xff"])
def test_a_catalog_that_nobody_can_read_is_written_anew(plain: World, published: bytes) -> None:
    """From all that is here."""
    one = client(plain)
    one.put("m", {"a": 1})
    one.push()
    plain.memory.put(KEY, published)
    one.put("n", {"a": 1})
    assert one.push().is_whole
    assert names(plain) == [("m", "state", 1), ("n", "state", 1)]
    check(plain)


def test_a_catalog_in_the_other_spelling_is_understood(plain: World) -> None:
    """Extensions of the reference write it without white space, and its rows may be of another shape."""
    one = client(plain)
    one.put("m", {"a": 1})
    one.push()
    strange = {"relPath": "data/x", "size": 1}
    plain.memory.put(KEY, encode_export_compact([strange, *rows(plain)]))
    one.put("m", {"a": 2})
    assert one.push().is_whole
    assert strange in rows(plain)
    assert [row["version"] for row in rows(plain) if row != strange] == [1, 2]
    check(plain)


def test_a_lazy_pull_leaves_it_and_a_full_one_brings_it(plain: World) -> None:
    """It is derived: whoever publishes fetches it, and nobody else needs it."""
    one, other = client(plain), client(plain)
    one.put("m", {"a": 1})
    one.push()
    plain.remote.take()
    assert EXPORT not in other.pull().written
    assert asked_of_export(plain) == []
    assert other.read(EXPORT) is None
    assert EXPORT in other.pull(full=True).written
    assert other.read(EXPORT) == plain.get(KEY)


def test_a_copy_that_somebody_scribbled_on_is_neither_pushed_nor_a_conflict(plain: World) -> None:
    """Not even by a full look, or with marks of another program; a full pull replaces it."""
    one, other = client(plain), client(plain)
    one.put("m", {"a": 1})
    one.push()
    other.pull(full=True)
    other.scribble(EXPORT, "mine")
    other.mark(f"team/{EXPORT}")
    one.put("m", {"a": 2})
    one.push()
    assert other.push(full=True).is_whole
    assert not other.is_dirty
    assert other.pull(full=True).is_whole
    assert other.read(EXPORT) == plain.get(KEY)
    assert names(plain) == [("m", "state", 1), ("m", "state", 2)]


def test_without_a_namespace_or_with_publication_off_nothing_is_published(plain: World) -> None:
    """A solo store has nobody to publish for."""
    solo, quiet = client(plain, namespace="", publishing=False), client(plain, publishing=False)
    for each in (solo, quiet):
        each.put("m", {"a": 1})
        assert each.push().is_whole
    assert [key for key in plain.objects() if key.endswith(EXPORT)] == []
    for each in (solo, quiet):
        each.ds = replace(each.ds, config=replace(each.ds.config, publishes_catalog=False))
        with pytest.raises(ConfigError):
            publish_now(each.ds)


def test_what_was_published_is_withdrawn_when_it_is_turned_off(world: World) -> None:
    """The object, its entry and our copy go, another cache follows, and nothing of the data is touched."""
    one, other = client(world), client(world, publishing=False)
    one.put("m", {"a": 1})
    one.push()
    other.pull(full=True)
    assert other.read(EXPORT) is not None
    with pytest.raises(mire.ConflictError, match="publishCatalog: false"):
        unpublish_now(one.ds)
    one.ds = quiet(one.ds)
    assert unpublish_now(one.ds)
    assert (world.get(KEY), entry(world), one.read(EXPORT)) == (None, None, None)
    assert not unpublish_now(one.ds)
    assert other.pull(full=True).is_whole
    assert other.read(EXPORT) is None
    one.put("n", {"a": 1})
    assert one.push(full=True).is_whole
    assert other.pull(full=True).is_whole
    assert world.get(KEY) is None
    assert not one.push(full=True).count
    assert len(committed(Prefixed(world.memory, "team"))) == 6  # of each model content, metadata and marker
    with pytest.raises(ConfigError, match="namespace"):
        unpublish_now(client(world, namespace="", publishing=False).ds)


def test_a_dry_run_shows_it_and_changes_nothing(plain: World) -> None:
    """The numbers are those of the real one."""
    one = client(plain)
    one.put("m", {"a": 1})
    shown = push(one.ds, dry_run=True)
    assert plain.get(KEY) is None
    done = push(one.ds)
    assert sorted(shown.uploaded) == sorted(done.uploaded)
    one.put("m", {"a": 2})
    before = plain.get(KEY)
    assert EXPORT in push(one.ds, dry_run=True).uploaded
    assert plain.get(KEY) == before


def test_what_stays_in_the_repository_is_not_shown(plain: World) -> None:
    """Excluded data has rows in our catalog, and none in the published one."""
    one = client(plain)
    one.ds = replace(one.ds, config=replace(one.ds.config, exclude=(f"data/{TYPE}/secret/**",)))
    one.put("secret", {"a": 1})
    one.put("m", {"a": 1})
    one.push()
    assert names(plain) == [("m", "state", 1)]
    rebuild(one.ds)
    publish_now(one.ds)
    assert names(plain) == [("m", "state", 1)]


def test_a_path_in_conflict_is_not_published(plain: World) -> None:
    """Others see of a name what the remote has, not what only we have."""
    one, other = client(plain), client(plain)
    one.put("m", {"a": 1})
    one.push()
    other.pull()
    one.put("m", {"a": "one"})
    one.push()
    other.put("m", {"a": "other"}, tags={"mine": "x"})
    assert other.push().conflicts
    assert all("mine" not in row["tags"] for row in rows(plain))
    check(plain)


def test_publishing_on_request_writes_all_rows_anew(plain: World) -> None:
    """What this cache does not know is brought first; rows of data that is nowhere go."""
    one, other = client(plain), client(plain)
    one.put("m", {"a": 1})
    one.push()
    other.pull("n")
    other.put("n", {"a": 1})
    other.push()
    plain.memory.put(KEY, encode_export_compact([{**rows(plain)[0], "model_id": "gone"}]))
    done = publish_now(other.ds)
    assert getattr(done, "uploaded", None) == [EXPORT]
    assert names(plain) == [("m", "state", 1), ("n", "state", 1)]
    check(plain)
    assert getattr(publish_now(other.ds), "count", None) == 0


def test_a_large_catalog_waits_after_writes_and_not_when_a_push_is_asked_for(
    plain: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a twentieth of the time of writers; the names that wait are on record, and asking publishes them."""
    monkeypatch.setattr(publish, "_CHEAP_BYTES", 0)
    one = client(plain)
    one.put("m", {"a": 1})
    one.push()
    one.with_state(lambda state: cost(state, 1_000_000, 5_000))
    patient = replace(one.ds, sync=replace(one.ds.sync, is_patient=True))
    one.put("n", {"a": 1})
    plain.remote.take()
    assert push(patient).is_whole
    assert all(EXPORT not in key and "_root" not in key for _, key in plain.remote.take())
    assert push(patient).count == 0
    assert plain.remote.take() == []
    assert names(plain) == [("m", "state", 1)]
    assert is_waiting(one.ds) is True
    assert push_now(one.ds).uploaded == [EXPORT]
    assert is_waiting(one.ds) is False
    assert is_waiting(quiet(one.ds)) is None
    assert is_waiting(client(plain, namespace="").ds) is None
    assert names(plain) == [("m", "state", 1), ("n", "state", 1)]
    one.with_state(lambda state: cost(state, 1_000_000, 5_000))
    one.put("o", {"a": 1})
    push(patient)
    one.with_state(lambda state: cost(state, 1_000_000, 20_000_000))
    one.put("p", {"a": 1})
    push(patient)
    assert [model for model, _, _ in names(plain)] == ["m", "n", "o", "p"]
    check(plain)


def test_many_who_publish_at_once_lose_nothing(plain: World) -> None:
    """Four caches of one namespace push at the same time; whoever was too slow again and again makes up for it."""
    everybody = [client(plain) for _ in range(4)]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for count in range(3):
                everybody[number].put(f"m-{number}-{count}", {"a": count})
                assert everybody[number].push().is_whole
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    for each in everybody:
        assert each.push().is_whole
    assert names(plain) == sorted((f"m-{number}-{count}", "state", 1) for number in range(4) for count in range(3))
    check(plain)
    for each in everybody:
        assert each.pull().is_whole
        assert [found.path for found in verify(each.ds, deep=True).findings if found.is_damage] == []


def cost(state: State, cost_ms: float, age_ms: float) -> None:
    """Let the last publication have cost so much, so long ago."""
    known = json.loads(state.fact("publish_object") or "{}")
    stored_ms = clock.now_ns() / 1e6 - age_ms
    state.set_facts({"publish_object": json.dumps({**known, "costMs": cost_ms, "storedMs": stored_ms})})


def test_a_reader_of_the_index_alone_gets_the_catalog_as_a_file(plain: World) -> None:
    """A client that knows nothing of publishing pulls it like any other file, and pushes it back unchanged."""
    one = client(plain)
    one.put("m", {"a": 1})
    one.push()
    old = client(plain, publishing=False, lazy=False)
    assert RelPath(EXPORT) in old.pull().written
    old.write(data("z"), "x")
    assert EXPORT not in old.push().uploaded
    assert old.read(EXPORT) == plain.get(KEY)
