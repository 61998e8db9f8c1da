"""An index replaced as a whole: what is in between, and the copy that programs without shards read (`dual: keep`)."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from mire.errors import RemoteError
from mire.flow.place import open_place, shard_key
from mire.flow.reindex import Seen, replace_shards
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.pipeline.view import look_at_index
from mire.wire.partition import partition_of
from mire.wire.shard import encode_shard
from old_clients import old_index
from sync_world import META, MONOLITH, Client, Hooked, World, data, fast_directory


@pytest.fixture
def world() -> Iterator[World]:
    """A sharded store."""
    with fast_directory() as root:
        made = World(root, sharded=True)
        yield made
        made.close()


def keeping(client: Client) -> Client:
    """A client that keeps the monolith."""
    client.ds = replace(client.ds, sync=replace(client.ds.sync, is_monolith_kept=True))
    return client


def reindex(client: Client, wanted: dict[str, Entry]) -> None:
    """Replace the index by these entries."""
    groups: dict[str, dict[RelPath, Entry]] = {}
    for rel, entry in wanted.items():
        groups.setdefault(partition_of(rel) or "", {})[RelPath(rel)] = entry
    with open_place(client.ds) as place:
        view = look_at_index(place.remote)
        seen = Seen(meta=view.meta, meta_tag=view.meta_tag, monolith_tag=view.monolith_tag, shards=view.shards)
        texts = [(name, encode_shard(entries)) for name, entries in groups.items()]
        replace_shards(place, seen, texts, lambda: None)


def hashes(world: World) -> tuple[dict[str, str], dict[str, str | None]]:
    """What a program reads that knows the monolith only, and what the shards say."""
    old = {rel: str(entry["sha256"]) for rel, entry in old_index(world.memory).items()}
    return old, {rel: entry.sha256 for rel, entry in world.index().items()}


def less(world: World, gone: str) -> dict[str, Entry]:
    """The index without one path."""
    return {rel: entry for rel, entry in world.index().items() if rel != gone}


def test_dying_before_the_list_leaves_shards_that_are_complete(world: World) -> None:
    """Shards count as they are written, some new and some old: no cache loses anything by that; again completes it."""
    one, two = world.client(), world.client()
    one.version("m", 1, "1")
    one.version("n", 1, "1")
    one.push()
    two.pull(full=True)
    had, wanted, meta = two.files(), world.index(), world.get(META)
    world.memory.delete(data("m"))
    world.memory.put(shard_key(partition_of(data("m")) or ""), b"{")
    hooked = Hooked(world.remote)
    hooked.fail("put_if", META)
    with pytest.raises(RemoteError):
        reindex(one.on(hooked), wanted)
    assert world.get(META) == meta
    assert world.index() == wanted
    for client in (one.on(world.remote), two, world.client()):
        client.pull(full=True)
    assert (one.files(), two.files()) == (had, had)
    reindex(one.on(world.remote), wanted)
    assert world.get(META) != meta
    assert world.index() == wanted
    two.pull(full=True)
    assert two.files() == had


def test_the_kept_monolith_follows(world: World) -> None:
    """After the index was replaced the copy says what the new shards say; a store without a copy gets none."""
    one = keeping(world.client())
    one.version("m", 1, "1")
    one.version("n", 1, "1")
    one.push()
    reindex(one, less(world, data("m")))
    old, new = hashes(world)
    assert data("m") not in old
    assert old == new
    world.memory.delete(MONOLITH)
    reindex(world.client(), world.index())
    assert world.get(MONOLITH) is None


def test_a_copy_that_was_not_written_is_made_by_whoever_comes_next(world: World) -> None:
    """Dying between the list and the copy leaves an old copy: replacing again, or the next push, brings it in step."""
    one = keeping(world.client())
    one.version("m", 1, "1")
    one.version("n", 1, "1")
    one.push()

    def die() -> None:
        raise KeyboardInterrupt

    again: list[Callable[[Client], object]] = [
        lambda client: reindex(client, world.index()),
        lambda client: (client.version("o", 1, "1"), client.push()),
    ]
    for gone, go_on in zip((data("m"), data("n")), again, strict=True):
        hooked = Hooked(world.remote)
        hooked.at("put_if", MONOLITH, die)
        with pytest.raises(KeyboardInterrupt):
            reindex(one.on(hooked), less(world, gone))
        old, new = hashes(world)
        assert gone in old
        assert gone not in new
        go_on(one.on(world.remote))
        old, new = hashes(world)
        assert old == new
