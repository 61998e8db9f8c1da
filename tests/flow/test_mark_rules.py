"""The eight rules of the reference's markDirty contract, carried through: what a push makes of marks, and peers see."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mire.edge.state import close_states, state_path
from mire.flow.mark import marking
from mire.flow.pull import pull
from mire.flow.push import commit_push, prepare_push, push
from sync_world import Client, World, data, latest

SIDECAR = ".datastore-sync-state.json"


@pytest.fixture
def peers(world: World) -> tuple[Client, Client]:
    """Two caches that agree about one version and have nothing marked."""
    one, other = world.client(), world.client()
    one.version("m", 1, "x")
    one.push()
    other.pull()
    assert not one.is_dirty
    world.remote.take()
    return one, other


def sidecar(client: Client, **changes: object) -> dict[str, Any]:
    """The state file that all clients of a cache share, changed as another client does."""
    file = Path(client.ds.base, SIDECAR)
    document: dict[str, Any] = json.loads(file.read_text())
    if changes:
        file.write_text(json.dumps(document | changes))
    return document


def test_rule_1_a_push_between_mark_and_write_keeps_the_mark(peers: tuple[Client, Client]) -> None:
    """The file may not exist yet, or be half written: that push sends and removes nothing, the next one does."""
    one, other = peers
    with marking(one.ds, str(one.path("logs/new")), str(one.path(data("m")))):
        assert (one.push().count, one.marks()) == (0, {"logs/new", data("m")})
        one.scribble("logs/new", "half of it")
        one.path(data("m")).unlink()
        assert (one.push().count, one.marks()) == (0, {"logs/new", data("m")})
        one.scribble("logs/new", "all of it")
        one.scribble(data("m"), "replaced")
    assert one.push().uploaded == [data("m"), "logs/new"]
    assert other.pull().count == 2
    assert other.files() == one.files()


@pytest.mark.parametrize("marked", [data("m"), data("m").rpartition("/")[0]])
def test_rule_2_a_marked_path_that_is_gone_is_deleted(peers: tuple[Client, Client], world: World, marked: str) -> None:
    """By its own mark or by that of its directory, made by any client: from the index, the store and the peer."""
    one, other = peers
    one.mark(marked)
    one.path(data("m")).unlink()
    assert one.push().removed == [data("m")]
    assert data("m") not in world.index().keys() | world.objects().keys()
    assert other.pull().removed == [data("m")]
    world.check()


def test_rule_2_an_unmarked_path_that_is_gone_is_not_deleted(peers: tuple[Client, Client], world: World) -> None:
    """Absence alone is no deletion, whatever else is marked; the next pull in full brings the file back."""
    one, _ = peers
    one.path(data("m")).unlink()
    one.mark(latest("m"))
    assert one.push(full=True).removed == []
    assert data("m") in world.objects()
    assert one.read(data("m")) is None


@pytest.mark.parametrize("is_bulk", [True, False])
def test_rule_3_a_mark_without_a_path_finds_what_nobody_named(peers: tuple[Client, Client], *, is_bulk: bool) -> None:
    """New, changed and unchanged files: only with the mark is any looked at, and then exactly what differs goes."""
    one, other = peers
    if is_bulk:
        one.mark_all()
    one.scribble("logs/new", "1")
    one.scribble(data("m"), "2 and longer")
    assert one.push().count == (2 if is_bulk else 0)
    assert not one.is_dirty
    assert other.pull().count == (2 if is_bulk else 0)


@pytest.mark.parametrize("text", [None, "", "{", '{"version": 9}'])
@pytest.mark.parametrize("loses_journal", [True, False])
def test_rule_4_a_restart_without_a_valid_sidecar_walks_everything(
    peers: tuple[Client, Client], world: World, text: str | None, *, loses_journal: bool
) -> None:
    """What changed unmarked is found and sent, what is not here is not deleted, and the sidecar is valid again."""
    one, other = peers
    one.scribble("logs/new", "unmarked")
    one.path(data("m")).unlink()
    close_states(one.ds.base)
    if loses_journal:
        Path(state_path(one.ds.base)).unlink()
    file = Path(one.ds.base, SIDECAR)
    file.unlink() if text is None else file.write_text(text)
    assert (one.push().uploaded, data("m") in world.index()) == (["logs/new"], True)
    assert (sidecar(one)["version"], sidecar(one)["localDirty"], one.is_dirty) == (2, False, False)
    world.remote.take()
    assert (one.push().count, world.remote.take()) == (0, [])
    assert other.pull().written == ["logs/new"]


@pytest.mark.parametrize("namespace", ["", "team"])
def test_rule_5_paths_are_relative_with_forward_slashes(worlds: Callable[..., World], namespace: str) -> None:
    """In journal, sidecar and index, and as keys; an absolute path becomes one; the namespace comes first."""
    world = worlds()
    one = world.client(namespace=namespace)
    one.push(full=True)
    one.write(data("m"), "x")
    wanted = f"{namespace}/{data('m')}".lstrip("/")
    assert (one.marks(), sidecar(one)["dirtyPaths"]) == ({wanted}, [wanted])
    one.push()
    assert set(world.objects()) - {f"{namespace}/_index/_meta.json"} >= {wanted}
    assert not any("\\" in key or key.startswith("/") for key in world.objects())


@pytest.mark.parametrize(
    ("members", "count"),
    [
        ({"localDirty": True}, 1),
        ({"localDirty": True, "bulkInvalidated": True}, 1),
        ({"localDirty": True, "dirtyPaths": ["logs/theirs"]}, 1),
        ({"localDirty": True, "dirtyPaths": ["logs"]}, 1),
        ({"localDirty": True, "dirtyPaths": [data("m")]}, 0),
    ],
)
def test_rule_6_beside_clients_that_ignore_paths(
    peers: tuple[Client, Client], members: dict[str, object], count: int
) -> None:
    """What another program of this cache marked, with or without a path, is pushed by us, and our marks survive it."""
    one, other = peers
    one.scribble("logs/theirs", "theirs")
    one.write("logs/ours", "ours")
    sidecar(one, **({"dirtyPaths": []} | members))
    assert len(one.push().uploaded) == 1 + count
    assert (sidecar(one)["localDirty"], one.is_dirty) == (False, False)
    assert other.pull().count == 1 + count


def test_rule_6_a_client_that_ignores_paths_may_clear_everything(peers: tuple[Client, Client]) -> None:
    """One that pushed the whole cache leaves a clean sidecar: what we marked is looked at all the same."""
    one, other = peers
    one.write("logs/ours", "ours")
    sidecar(one, localDirty=False, dirtyPaths=[], bulkInvalidated=False)
    assert one.push().uploaded == ["logs/ours"]
    assert other.pull().count == 1


def test_rule_7_push_and_pull_know_no_path(peers: tuple[Client, Client]) -> None:
    """They cannot be given one; a push publishes all marks, and a pull, also of one model, changes none."""
    one, other = peers
    for verb in (push, prepare_push, commit_push, pull):
        assert not {name for name in inspect.signature(verb).parameters if "path" in name or "rel" in name}
    one.version("n", 1, "y")
    one.write("logs/a", "z")
    before = one.marks()
    one.pull("m")
    one.pull()
    assert (one.marks(), len(before)) == (before, 4)
    assert one.push().count == 4
    assert other.pull().count == 4


@pytest.mark.parametrize("is_bulk_first", [True, False])
def test_rule_8_a_bulk_mark_widens_and_drops_no_deletion(
    peers: tuple[Client, Client], world: World, *, is_bulk_first: bool
) -> None:
    """In either order, in one operation: what nobody named is found, what was deleted by path is deleted."""
    one, other = peers
    if is_bulk_first:
        one.mark_all()
    one.remove(data("m"))
    if not is_bulk_first:
        one.mark_all()
    one.scribble("logs/new", "unmarked")
    done = one.push()
    assert (done.uploaded, done.removed) == (["logs/new"], [data("m")])
    assert data("m") not in world.index().keys() | world.objects().keys()
    assert other.pull().removed == [data("m")]
    assert other.files() == one.files()
    one.scribble("logs/later", "unmarked")
    assert one.push().count == 0


def test_201_paths_cost_no_walk_and_lose_no_deletion(peers: tuple[Client, Client], world: World) -> None:
    """Others are told to look at everything; we know each path: nothing unmarked is sent, and what was removed goes."""
    one, other = peers
    one.scribble("logs/unmarked", "not looked at")
    for number in range(200):
        one.write(f"logs/{number:03}", str(number))
    assert sidecar(one)["bulkInvalidated"] is False
    one.remove(data("m"))
    assert sidecar(one)["bulkInvalidated"] is True
    done = one.push()
    assert (len(done.uploaded), done.removed) == (200, [data("m")])
    assert "logs/unmarked" not in world.objects()
    assert sidecar(one)["bulkInvalidated"] is False
    assert other.pull().count == 201
