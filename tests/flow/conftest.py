"""Worlds for sync tests, in memory as far as a file system can be: what is tested there is order, not the disk."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sync_world import World, fast_directory


@pytest.fixture
def fast_path() -> Iterator[Path]:
    """A directory where syncing costs nothing, if there is one."""
    with fast_directory() as path:
        yield path


@pytest.fixture
def worlds(fast_path: Path) -> Iterator[Callable[..., World]]:
    """Makes worlds, with a directory each."""
    made: list[World] = []

    def make(**options: Any) -> World:
        made.append(World(fast_path / f"world-{len(made)}", **options))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture(params=["v1", "v1-two", "v2", "v2-two"])
def world(request: pytest.FixtureRequest, worlds: Callable[..., World]) -> World:
    """A world whose index is a monolith or shards, and whose clients push in one or two phases."""
    return worlds(sharded=request.param.startswith("v2"), two_phase=request.param.endswith("two"))


@pytest.fixture(params=["v1", "v2"])
def plain(request: pytest.FixtureRequest, worlds: Callable[..., World]) -> World:
    """A world whose index is a monolith or shards, where phases do not matter."""
    return worlds(sharded=request.param == "v2")
