"""Uploads: large files under conditions, and a push that was stopped goes on where it was."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

import mire
from mire.errors import RemoteError
from mire.flow.push import commit_push, prepare_push
from mire.flow.transfer import are_short
from mire.model.backend import SHORT_CONCURRENCY
from sync_world import Hooked, World

LARGE = 5 << 20
REL = "logs/large"


def truth_of(world: World) -> str:
    """The object by which a commit becomes visible."""
    return "_index/logs.json" if world.sharded else ".datastore-index.json"


def uploads(world: World) -> list[str]:
    """The data objects that were written since the last time."""
    return sorted(key for _, key in world.remote.take_writes() if key.startswith("logs/"))


def test_a_large_file_is_not_stored_over_what_somebody_is_about_to_publish(plain: World) -> None:
    """Their object stays until their index names it, our file waits with its mark, and then both are a conflict."""
    one, other = plain.client(), plain.client()
    other.write(REL, b"t" * LARGE)
    prepared, done = prepare_push(other.ds)
    one.write(REL, b"o" * LARGE)
    waiting = one.push()
    assert waiting.uploaded == []
    assert "somebody is storing" in waiting.findings[0]
    assert one.is_dirty
    commit_push(other.ds, prepared, done)
    assert [conflict.rel for conflict in one.push().conflicts] == [REL]
    assert plain.get(REL) == b"t" * LARGE
    plain.check()


@pytest.mark.parametrize("is_new", [True, False])
def test_a_large_file_takes_only_the_place_of_what_was_seen(plain: World, *, is_new: bool) -> None:
    """Whoever stores the same path while ours is on its way keeps it, whether there was an object before or not."""
    hooked = Hooked(plain.remote)
    one = plain.client(hooked)
    if not is_new:
        one.write(REL, b"a" * LARGE)
        one.push()
    one.write(REL, b"o" * (LARGE + 1))
    hooked.at("put_stream_if", REL, lambda: plain.memory.put(REL, b"theirs"))
    assert "somebody is storing" in one.push().findings[0]
    assert plain.get(REL) == b"theirs"
    assert one.is_dirty


def test_a_large_object_that_is_there_already_is_not_sent_again(plain: World) -> None:
    """After a crash that left no record the bytes tell; other bytes of the same size are not taken for ours."""
    plain.memory.put(REL, b"o" * LARGE)
    one = plain.client()
    one.write(REL, b"o" * LARGE)
    one.push()
    assert uploads(plain) == []
    plain.check()
    plain.memory.put("logs/other", b"x" * LARGE)
    one.write("logs/other", b"o" * LARGE)
    assert "somebody is storing" in one.push().findings[0]


def test_a_stopped_push_goes_on(plain: World) -> None:
    """What was stored before the time was up is found by a HEAD, and only the rest is sent."""
    hooked = Hooked(plain.remote)
    one = plain.client(hooked)
    one.ds = replace(one.ds, sync=replace(one.ds.sync, push_concurrency=1))
    rels = [f"logs/{number}" for number in range(5)]
    for rel in rels:
        one.write(rel, rel)
    one.write(REL, b"o" * LARGE)
    hooked.fail("put_if", "logs/3")
    with pytest.raises(RemoteError, match="told to"):
        one.push()
    assert uploads(plain) == rels[:3]
    assert one.push().uploaded == [*rels, REL]
    assert uploads(plain) == [*rels[3:], REL]
    plain.check()
    hooked.fail("put_if", truth_of(plain))
    one.write("logs/new", "new")
    one.write(REL, b"n" * LARGE)
    with pytest.raises(RemoteError, match="told to"):
        one.push()
    assert uploads(plain) == [REL, "logs/new"]
    one.push()
    assert uploads(plain) == []
    assert one.with_state(lambda state: state.facts_below("stored/")) == {}
    plain.check()


@pytest.mark.parametrize("rel", ["logs/small", REL])
def test_what_a_stopped_push_stored_may_be_replaced_by_a_newer_version(plain: World, rel: str) -> None:
    """A file that changed since is sent over our own object at once; somebody else's object is not taken for ours."""
    size = LARGE if rel == REL else 10
    hooked = Hooked(plain.remote)
    one = plain.client(hooked)
    one.write(rel, b"1" * size)
    hooked.fail("put_if", truth_of(plain))
    with pytest.raises(RemoteError, match="told to"):
        one.push()
    one.write(rel, b"2" * size)
    assert one.push().uploaded == [rel]
    plain.check()
    one.write(rel, b"3" * size)
    hooked.fail("put_if", truth_of(plain))
    with pytest.raises(RemoteError, match="told to"):
        one.push()
    plain.memory.put(rel, b"theirs")
    assert "somebody is storing" in one.on(plain.remote).push().findings[0]
    assert plain.get(rel) == b"theirs"


@pytest.mark.parametrize(("sizes", "short"), [([], True), ([100] * 9, True), ([100] * 9 + [10 << 20], False)])
def test_threads_stay_together_for_small_files_only(sizes: list[int], *, short: bool) -> None:
    """Large files are hashed outside of the interpreter, on as many processors as there are."""
    assert are_short(sum(sizes), len(sizes)) == short


def test_small_files_are_moved_many_at_once(plain: World) -> None:
    """All of them are under way before any is done, up and down: most of their time is waiting."""
    hooked, names = Hooked(plain.remote), [f"logs/{number}" for number in range(SHORT_CONCURRENCY)]
    together = threading.Barrier(SHORT_CONCURRENCY, timeout=30)
    hooked.at("put_if", "logs/*", together.wait, times=SHORT_CONCURRENCY)
    hooked.at("get_stream", "logs/*", together.wait, times=SHORT_CONCURRENCY)
    one, other = plain.client(hooked), plain.client(hooked)
    for rel in names:
        one.write(rel, b"small")
    assert sorted(one.push().uploaded) == sorted(names)
    other.pull()
    assert {other.read(rel) for rel in names} == {b"small"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", (128, 25, 128, 50)),
        ("    pushConcurrency: 25\n", (25, 25, 128, 50)),
        ("    pullConcurrency: 3\n", (128, 25, 3, 3)),
    ],
)
def test_what_the_settings_say_is_the_most(repo: Path, tmp_path: Path, said: str, expected: tuple[int, ...]) -> None:
    """Also when it is the number that would hold for large files anyway."""
    (repo / ".swamp.yaml").write_text(
        'swampVersion: "1"\nrepoId: "00000000-0000-4000-8000-000000000001"\ndatastore:\n'
        f'  type: "@mire/file-datastore"\n  config:\n    path: "{tmp_path}/remote"\n{said}'
    )
    with mire.open(repo) as store:
        sync = store.datastore.sync
        found = [call(are_short=short) for call in (sync.pushes_at_once, sync.pulls_at_once) for short in (True, False)]
    assert tuple(found) == expected
