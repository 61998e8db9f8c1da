"""Marks: made before bytes change, shared with other clients of the cache, gone only when they were handled."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.api import Store
from mire.edge.objectstore import open_memory
from mire.edge.state import close_states, state_path
from mire.flow.datastore import Datastore
from mire.flow.mark import acknowledge, mark, mark_all, marking, open_cache_state, pending_marks
from mire.flow.sidecar import update_sidecar
from mire.model.mark import Pending
from mire.model.names import Namespace
from mire.wire.relpath import is_internal

Snapshot = Callable[[Path], dict[str, bytes | str | None]]
WORKER = Path(__file__).with_name("mark_worker.py")
CRASH = Path(__file__).with_name("mark_crash.py")
OTHER = "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The directory of a cache."""
    path = tmp_path / "cache"
    path.mkdir()
    return path


def store_of(repo: Path, cache: Path, *, namespace: str = "", exclude: tuple[str, ...] = ()) -> mire.Store:
    """A store whose datastore is a cache of a remote."""
    ds = mire.open(repo, datastore=f"filesystem:{cache}").datastore
    config = replace(ds.config, namespace=Namespace(namespace), exclude=exclude)
    return Store(replace(ds, config=config, remote=open_memory()))


@pytest.fixture
def cached(repo: Path, cache: Path) -> mire.Store:
    """A store with a cache that was looked at once: everything is known, nothing is marked."""
    store = store_of(repo, cache)
    settle(store.datastore)
    return store


@pytest.fixture
def ds(cached: mire.Store) -> Datastore:
    """Its datastore."""
    return cached.datastore


def settle(ds: Datastore) -> None:
    """Acknowledge everything, as a push does that has dealt with all of it."""
    found = pending_marks(ds)
    acknowledge(ds, found, paths(found), is_bulk=True)


def paths(found: Pending) -> list[str]:
    """The marked paths."""
    return [mark.path for mark in found.records]


def kinds(ds: Datastore) -> dict[str, str]:
    """The kind of each mark, by path."""
    return {mark.path: mark.kind for mark in pending_marks(ds).records}


def sidecar(cache: Path) -> dict[str, Any]:
    """The shared state file."""
    document: dict[str, Any] = json.loads((cache / ".datastore-sync-state.json").read_text())
    return document


def write_sidecar(cache: Path, **members: object) -> None:
    """The shared state file as another client writes it."""
    usual = {"version": 2, "remoteIndexETag": "e1", "lastVerifiedAt": "", "localDirty": False}
    usual |= {"dirtyPaths": [], "bulkInvalidated": False, "lazyPullActive": False}
    (cache / ".datastore-sync-state.json").write_text(json.dumps(usual | members, indent=2))


def test_rule_1_the_mark_comes_before_the_write(ds: Datastore, cache: Path) -> None:
    """The mark is there, in the journal and in the sidecar, while the file does not exist yet."""
    with marking(ds, "data/svc/web-1/state/1"):
        assert not (cache / "data/svc/web-1/state/1").exists()
        (record,) = pending_marks(ds).records
        assert (record.path, record.kind, record.is_open) == ("data/svc/web-1/state/1", "write", True)
        assert sidecar(cache)["dirtyPaths"] == ["data/svc/web-1/state/1"]
        assert sidecar(cache)["localDirty"] is True
    assert [record.is_open for record in pending_marks(ds).records] == [False]


def test_rule_2_a_removal_is_recorded_by_path(ds: Datastore) -> None:
    """What is removed is marked as removed, so that its absence at the next push means something."""
    with marking(ds, "data/a/latest", removing=["data/a/1"]):
        pass
    assert kinds(ds) == {"data/a/latest": "write", "data/a/1": "remove"}


def test_rule_3_a_mark_without_a_path_means_everything(ds: Datastore, cache: Path) -> None:
    """A bulk mark names no path, and is shown to other clients."""
    mark_all(ds)
    found = pending_marks(ds)
    assert (found.is_bulk, found.records) == (True, ())
    assert (sidecar(cache)["bulkInvalidated"], sidecar(cache)["localDirty"]) == (True, True)


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"version": 9}', '{"version": 2}', "\udce9"])
def test_rule_4_without_a_sidecar_or_a_journal_everything_is_looked_at(ds: Datastore, cache: Path, text: str) -> None:
    """A cache that lost both is not known; once it was looked at, the file is there again in the second form."""
    file = cache / ".datastore-sync-state.json"
    close_states(ds.base)
    Path(state_path(ds.base)).unlink()
    file.unlink()
    if text is not None:
        file.write_text(text, errors="surrogateescape")
    assert not pending_marks(ds).is_known
    settle(ds)
    assert (pending_marks(ds).is_clean, sidecar(cache)["version"], sidecar(cache)["localDirty"]) == (True, 2, False)


@pytest.mark.parametrize("text", [None, "", "{", '{"version": 9}'])
def test_rule_4_a_lost_sidecar_alone_is_reason_enough(ds: Datastore, cache: Path, text: str | None) -> None:
    """What other clients marked in it is lost with it, whatever our own journal knows."""
    file = cache / ".datastore-sync-state.json"
    mark(ds, "data/a")
    file.unlink() if text is None else file.write_text(text)
    found = pending_marks(ds)
    assert (found.is_known, found.is_bulk, paths(found)) == (True, True, ["data/a"])
    settle(ds)
    assert (pending_marks(ds).is_clean, sidecar(cache)["version"]) == (True, 2)


def test_rule_5_paths_are_relative_to_the_cache(ds: Datastore, cache: Path) -> None:
    """Absolute paths inside become relative ones, a final slash goes, and what leads out means everything."""
    mark(ds, f"{cache}/data/a/")
    mark(ds, "data/b/../c")
    assert (kinds(ds), pending_marks(ds).is_bulk) == ({"data/a": "unknown", "data/c": "unknown"}, False)
    for path in ("../x", "/etc/hosts", ".", str(cache)):
        settle(ds)
        mark(ds, path)
        assert (pending_marks(ds).is_bulk, pending_marks(ds).records) == (True, ())


def test_rule_5_the_namespace_is_part_of_a_path(repo: Path, cache: Path) -> None:
    """In a namespace the marks of a verb begin with it."""
    store = store_of(repo, cache, namespace="team-a")
    store.model("svc", "web-1").put("state", "x")
    assert set(kinds(store.datastore)) == {
        "team-a/data/svc/web-1/state/1",
        "team-a/data/svc/web-1/state/latest",
    }


def test_rule_6_marks_of_clients_that_know_no_journal_count(ds: Datastore, cache: Path) -> None:
    """What only the sidecar says is pending too: paths, with nobody knowing what happened, and dirt without a path."""
    write_sidecar(cache, localDirty=True, dirtyPaths=["data/theirs"])
    with marking(ds, "data/ours"):
        pass
    assert kinds(ds) == {"data/ours": "write", "data/theirs": "unknown"}
    assert sidecar(cache)["dirtyPaths"] == ["data/theirs", "data/ours"]
    write_sidecar(cache, localDirty=True)
    found = pending_marks(ds)
    assert (found.is_bulk, paths(found)) == (True, ["data/ours", "data/theirs"])


def test_rule_7_only_marks_have_paths(ds: Datastore, cache: Path) -> None:
    """Looking at what is pending changes nothing, in the journal or in the sidecar."""
    mark(ds, "data/a")
    before, seen = (cache / ".datastore-sync-state.json").read_bytes(), pending_marks(ds)
    assert pending_marks(ds) == seen
    assert (cache / ".datastore-sync-state.json").read_bytes() == before


def test_rule_8_a_bulk_mark_keeps_recorded_removals(ds: Datastore) -> None:
    """A bulk mark widens what is looked at; a removal recorded before or after it is still there by path (hole a)."""
    with marking(ds, removing=["data/before"]):
        pass
    mark_all(ds)
    with marking(ds, removing=["data/after"]):
        pass
    assert (pending_marks(ds).is_bulk, kinds(ds)) == (True, {"data/before": "remove", "data/after": "remove"})


def test_a_mark_made_during_a_push_survives_it(ds: Datastore, cache: Path) -> None:
    """A path marked after the push looked stays marked, in both places (A7, hole d)."""
    mark(ds, "data/a")
    seen = pending_marks(ds)
    mark(ds, "data/a")
    mark(ds, "data/b")
    acknowledge(ds, seen, paths(seen))
    assert set(kinds(ds)) == {"data/a", "data/b"}
    assert (sidecar(cache)["dirtyPaths"], sidecar(cache)["localDirty"]) == (["data/a", "data/b"], True)


def test_a_failed_push_leaves_its_marks(ds: Datastore, cache: Path) -> None:
    """Without an acknowledgement nothing changes, and a partial one takes only what was handled (hole b)."""
    with marking(ds, "data/new", removing=["data/gone"]):
        pass
    seen = pending_marks(ds)
    assert pending_marks(ds) == seen
    acknowledge(ds, seen, ["data/new"])
    assert kinds(ds) == {"data/gone": "remove"}
    assert (sidecar(cache)["dirtyPaths"], sidecar(cache)["localDirty"]) == (["data/gone"], True)


def test_marking_a_path_again_after_its_push_counts_again(ds: Datastore, cache: Path) -> None:
    """The second write of a path is pushed like the first (A1)."""
    for _ in range(3):
        mark(ds, "data/a")
        assert (paths(pending_marks(ds)), sidecar(cache)["localDirty"]) == (["data/a"], True)
        settle(ds)
        assert pending_marks(ds).is_clean
        assert (sidecar(cache)["dirtyPaths"], sidecar(cache)["localDirty"]) == ([], False)


def test_a_block_that_fails_leaves_its_mark(ds: Datastore) -> None:
    """Nobody knows how far it came: the mark stays, and is no longer open."""
    with pytest.raises(RuntimeError), marking(ds, "data/a"):
        raise RuntimeError
    assert [(record.path, record.is_open) for record in pending_marks(ds).records] == [("data/a", False)]


def test_the_201st_path_shows_as_bulk_and_is_known_all_the_same(ds: Datastore, cache: Path) -> None:
    """The sidecar says bulk and never the flag that deletes; the journal has every path, and no need of a full walk."""
    wanted = [f"data/{number:03d}" for number in range(250)]
    for path in wanted[:200]:
        mark(ds, path)
    assert (len(sidecar(cache)["dirtyPaths"]), sidecar(cache)["bulkInvalidated"]) == (200, False)
    for path in wanted[200:]:
        mark(ds, path)
    assert (len(sidecar(cache)["dirtyPaths"]), sidecar(cache)["bulkInvalidated"]) == (200, True)
    assert "dirtyPathsOverflowed" not in sidecar(cache)
    found = pending_marks(ds)
    assert (paths(found), found.is_bulk, found.is_known) == (wanted, False, True)
    acknowledge(ds, found, wanted[:249])
    assert (sidecar(cache)["localDirty"], sidecar(cache)["bulkInvalidated"]) == (True, True)
    acknowledge(ds, found, wanted[249:])
    assert pending_marks(ds).is_clean
    assert (sidecar(cache)["localDirty"], sidecar(cache)["bulkInvalidated"]) == (False, False)


def test_unknown_members_and_other_facts_survive(ds: Datastore, cache: Path) -> None:
    """Marking and acknowledging change marks only: fingerprint, `commitSeq` and members of a newer client stay."""
    write_sidecar(cache, commitSeq=7, dataKeyMigrated=True, lastCatalogHash="ab", later={"x": [1]})
    mark(ds, "data/a")
    settle(ds)
    found = sidecar(cache)
    assert (found["remoteIndexETag"], found["commitSeq"], found["dataKeyMigrated"]) == ("e1", 7, True)
    assert (found["lastCatalogHash"], found["later"]) == ("ab", {"x": [1]})


def test_another_client_writing_in_between_loses_nothing(ds: Datastore, cache: Path) -> None:
    """A reference overwrites the sidecar with what it read long ago: ours come back, and its own are taken up."""
    mark(ds, "data/ours")
    write_sidecar(cache, localDirty=True, dirtyPaths=["data/theirs"])
    mark(ds, "data/more")
    assert set(sidecar(cache)["dirtyPaths"]) == {"data/ours", "data/more", "data/theirs"}
    seen = pending_marks(ds)
    write_sidecar(cache, localDirty=True, dirtyPaths=["data/theirs", "data/late"])
    acknowledge(ds, seen, paths(seen))
    # Nobody can tell whether `theirs` was marked once more: it is looked at again.
    assert kinds(ds) == {"data/theirs": "unknown", "data/late": "unknown"}
    assert (sidecar(cache)["localDirty"], set(sidecar(cache)["dirtyPaths"])) == (True, {"data/theirs", "data/late"})


def test_a_bulk_mark_of_another_client_during_a_push_stays(ds: Datastore, cache: Path) -> None:
    """The sidecar changed since the push looked, so its flags are not cleared."""
    mark_all(ds)
    seen = pending_marks(ds)
    write_sidecar(cache, localDirty=True, bulkInvalidated=True)
    acknowledge(ds, seen, paths(seen), is_bulk=True)
    assert pending_marks(ds).is_bulk
    assert sidecar(cache)["bulkInvalidated"]
    settle(ds)
    assert (pending_marks(ds).is_clean, sidecar(cache)["bulkInvalidated"]) == (True, False)


def test_a_sidecar_written_again_as_it_was_counts_again(ds: Datastore, cache: Path) -> None:
    """A reference marks the same path once more and so writes the very bytes it wrote before: that is a new mark."""
    for _ in range(2):
        write_sidecar(cache, localDirty=True, dirtyPaths=["data/a"])
        assert kinds(ds) == {"data/a": "unknown"}
        settle(ds)
        assert pending_marks(ds).is_clean


def test_a_reference_after_a_commit_lists_paths_and_is_clean(ds: Datastore, cache: Path) -> None:
    """Listed paths count although the flag says clean, and marking one of them makes the sidecar dirty (A1)."""
    write_sidecar(cache, localDirty=False, dirtyPaths=["data/a"])
    mark(ds, "data/a")
    assert sidecar(cache)["localDirty"] is True
    assert set(kinds(ds)) == {"data/a"}


def test_a_first_version_that_is_dirty_means_everything(ds: Datastore, cache: Path) -> None:
    """Version 1 does not say what is dirty; the file becomes one of version 2, which does."""
    text = {"version": 1, "remoteIndexETag": "e1", "lastVerifiedAt": "", "localDirty": True}
    (cache / ".datastore-sync-state.json").write_text(json.dumps(text))
    mark(ds, "data/a")
    assert (pending_marks(ds).is_bulk, kinds(ds)) == (True, {"data/a": "unknown"})
    assert (sidecar(cache)["version"], sidecar(cache)["bulkInvalidated"]) == (2, True)


@pytest.mark.parametrize(("content", "spelling"), [(True, "remoteIndexETag"), (False, "remoteIndexGeneration")])
def test_the_fingerprint_is_spelled_as_the_store_needs_it(
    ds: Datastore, cache: Path, *, content: bool, spelling: str
) -> None:
    """A sidecar of the other kind of store says nothing usable, and is replaced."""
    (cache / ".datastore-sync-state.json").unlink()
    other = replace(ds, remote=open_memory(content_fingerprint=content))
    mark(other, "data/a")
    assert spelling in sidecar(cache)
    assert len({"remoteIndexETag", "remoteIndexGeneration"} & sidecar(cache).keys()) == 1


def test_other_facts_of_the_sidecar_can_be_changed_beside_marks(ds: Datastore, cache: Path) -> None:
    """A pull records what it verified, and marks of others that came in between are kept."""
    write_sidecar(cache, localDirty=True, dirtyPaths=["data/theirs"])
    with open_cache_state(ds) as state:
        update_sidecar(ds, state, lambda found: replace(found, fingerprint="e9", lazy_pull_active=True))
    found = sidecar(cache)
    assert (found["remoteIndexETag"], found["lazyPullActive"]) == ("e9", True)
    assert (found["dirtyPaths"], kinds(ds)) == (["data/theirs"], {"data/theirs": "unknown"})


def test_a_damaged_journal_in_the_middle_of_a_write(ds: Datastore) -> None:
    """The journal is lost between begin and done: nothing is known, and the write is marked all the same."""
    with marking(ds, "data/a"):
        close_states(ds.base)
        Path(state_path(ds.base)).write_bytes(b"rubbish" * 1000)
    found = pending_marks(ds)
    assert (found.is_known, paths(found)) == (False, ["data/a"])


def test_without_a_remote_nothing_is_marked(store: mire.Store, repo: Path) -> None:
    """A datastore that is a directory has neither journal nor sidecar."""
    store.model("svc", "web-1").put("state", "x")
    mark_all(store.datastore)
    mark(store.datastore, "data/a")
    assert not (repo / ".swamp/_index").exists()
    assert not (repo / ".swamp/.datastore-sync-state.json").exists()


def test_what_is_in_the_local_tier_is_not_marked(repo: Path, cache: Path) -> None:
    """Data that the settings keep local is written there, and no mark says otherwise (A12)."""
    store = store_of(repo, cache, namespace="team-a", exclude=("data/svc/web-1/secret",))
    settle(store.datastore)
    model = store.model("svc", "web-1")
    model.put("secret", "x")
    model.delete("secret")
    assert pending_marks(store.datastore).is_clean
    model.put("state", "x")
    assert len(pending_marks(store.datastore).records) == 2


def two(model: mire.Model) -> None:
    """Two versions of a name."""
    model.put("state", "a")
    model.put("state", "b")


def three_kept_one(model: mire.Model) -> None:
    """Three versions of which retention keeps one."""
    for text in "abc":
        model.put("state", text, version_policy=1)


def streaming(model: mire.Model) -> None:
    """A log that grows."""
    model.put("log", "one\n", streaming=True)


def deleted_newest(model: mire.Model) -> None:
    """A name whose newest version was deleted."""
    two(model)
    model.delete("state", 2)


def held(model: mire.Model) -> None:
    """A name of which two things are held."""
    two(model)
    model.hold_back("state")
    model.hold_back("state", 1)


Act = Callable[[mire.Store, mire.Model], object]
VERBS: dict[str, tuple[Callable[[mire.Model], None], Act, dict[str, str]]] = {
    "put-first": (lambda _: None, lambda _, m: m.put("state", "a"), {"state/1": "write", "state/latest": "write"}),
    "put": (two, lambda _, m: m.put("state", "c"), {"state/3": "write", "state/latest": "write"}),
    "append": (streaming, lambda _, m: m.append("log", "two\n"), {"log/1": "write"}),
    "mark-deleted": (two, lambda _, m: m.mark_deleted("state"), {"state/3": "write", "state/latest": "write"}),
    "delete-newest": (
        two,
        lambda _, m: m.delete("state", 2),
        {"state/2": "remove", "state/latest": "write", "state/.highest": "write"},
    ),
    "delete-older": (two, lambda _, m: m.delete("state", 1), {"state/1": "remove"}),
    "delete-name": (
        two,
        lambda _, m: m.delete("state"),
        {"state/1": "remove", "state/2": "remove", "state/latest": "remove", "state/.highest": "write"},
    ),
    "put-after-delete": (
        deleted_newest,
        lambda _, m: m.put("state", "c"),
        {"state/3": "write", "state/latest": "write"},
    ),
    "rename": (
        two,
        lambda _, m: m.rename("state", "status"),
        {"state/3": "write", "state/latest": "write", "status/1": "write", "status/latest": "write"},
    ),
    "retain": (three_kept_one, lambda s, _: s.retain(), {"state/1": "remove", "state/2": "remove"}),
    "hold": (two, lambda _, m: m.hold_back("state", 1), {"state/.hold": "write"}),
    "release-one": (held, lambda _, m: m.let_go("state", 1), {"state/.hold": "write"}),
}


def covered(path: str, marks: set[str]) -> bool:
    """Whether a mark names a path or a directory above it."""
    return any(path == mark or path.startswith(f"{mark}/") for mark in marks)


def changed(before: dict[str, bytes | str | None], after: dict[str, bytes | str | None]) -> set[str]:
    """The synced files that came, went or changed."""
    both = {rel for rel in before.keys() | after.keys() if before.get(rel) != after.get(rel)}
    return {rel for rel in both if not is_internal(rel) and (before.get(rel), after.get(rel)) != (None, None)}


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_mark_exactly_what_they_change(cached: mire.Store, cache: Path, snapshot: Snapshot, verb: str) -> None:
    """Every file a verb changes is marked by its own path or its version's, and nothing else is."""
    prepare, act, expected = VERBS[verb]
    model = cached.model("svc", "web-1")
    model.put("beside", "x")
    prepare(model)
    settle(cached.datastore)
    before = snapshot(cache)
    act(cached, model)
    marks = kinds(cached.datastore)
    assert marks == {f"data/svc/web-1/{path}": kind for path, kind in expected.items()}
    touched = changed(before, snapshot(cache))
    assert touched
    assert all(covered(path, set(marks)) for path in touched)
    assert not any(mark.is_open for mark in pending_marks(cached.datastore).records)


def test_the_last_release_marks_a_removal(cached: mire.Store) -> None:
    """The file of holds goes with the last of them."""
    model = cached.model("svc", "web-1")
    model.put("state", "a")
    model.hold_back("state")
    settle(cached.datastore)
    model.let_go("state")
    assert kinds(cached.datastore) == {"data/svc/web-1/state/.hold": "remove"}


RECORDS: dict[str, Callable[[mire.Store], object]] = {
    "output": lambda store: store.outputs.start("svc", OTHER, "deploy"),
    "run": lambda store: store.runs.start(OTHER, "sweep"),
    "audit": lambda store: store.audit.command("deploy"),
}


@pytest.mark.parametrize("record", RECORDS)
def test_records_mark_their_own_file(cached: mire.Store, cache: Path, snapshot: Snapshot, record: str) -> None:
    """An output, a run or an event marks the one file it is in."""
    RECORDS[record](cached)
    files = {rel for rel, data in snapshot(cache).items() if data is not None and not is_internal(rel)}
    assert kinds(cached.datastore) == dict.fromkeys(files, "write")
    assert len(files) == 1


def test_pruning_marks_what_it_removes(cached: mire.Store, repo: Path, cache: Path, snapshot: Snapshot) -> None:
    """The data of a model without a definition goes by path, never as a whole model."""
    model = cached.model("svc", OTHER)
    model.put("state", "a")
    model.put("state", "b")
    for directory in ("models", "workflows"):
        (repo / directory).mkdir()
    settle(cached.datastore)
    before = snapshot(cache)
    assert cached.prune().names_removed == 1
    marks = kinds(cached.datastore)
    top = f"data/svc/{OTHER}/state"
    expected = {"1": "remove", "2": "remove", "latest": "remove", ".highest": "write"}
    assert marks == {f"{top}/{path}": kind for path, kind in expected.items()}
    assert all(covered(path, set(marks)) for path in changed(before, snapshot(cache)))


def test_eight_processes_marking_at_once_lose_nothing(ds: Datastore, repo: Path, cache: Path) -> None:
    """Journal and sidecar have every path of eight processes that mark while each other's marks are written."""
    workers = [
        subprocess.Popen([sys.executable, str(WORKER), str(repo), str(cache), str(number)]) for number in range(8)
    ]
    assert [worker.wait() for worker in workers] == [0] * 8
    wanted = {f"data/{number}/{count}" for number in range(8) for count in range(10)}
    assert set(kinds(ds)) == wanted
    assert set(sidecar(cache)["dirtyPaths"]) == wanted
    assert sidecar(cache)["localDirty"] is True


def test_threads_marking_at_once_lose_nothing(ds: Datastore, cache: Path) -> None:
    """The same inside one process: every thread has its own connection to the journal."""

    def work(number: int) -> None:
        for count in range(10):
            with marking(ds, f"data/{number}/{count}"):
                pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    wanted = {f"data/{number}/{count}" for number in range(8) for count in range(10)}
    assert (set(kinds(ds)), set(sidecar(cache)["dirtyPaths"])) == (wanted, wanted)


CRASHES = [
    line.split('"')[1] for line in CRASH.read_text().splitlines() if line.startswith('    "') and "lambda" in line
]


def test_every_kind_of_change_has_a_crash_scenario() -> None:
    """The list of scenarios read from the script is complete."""
    assert {"put", "append", "rename", "delete-name", "delete-latest", "hold", "output"} <= set(CRASHES)


@pytest.mark.parametrize("scenario", CRASHES)
def test_dying_anywhere_loses_no_mark(scenario: str, tmp_path: Path) -> None:
    """Whatever step a process dies before, every file whose bytes changed is marked, and nobody waits for the dead."""
    done = subprocess.run(
        [sys.executable, str(CRASH), scenario, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
