"""A small disk for tests of what happens when one is full."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a disk of 2 MB at a name below the directory of the test."""
    mounted: list[Path] = []

    def mount(name: str) -> Path:
        place = tmp_path / name
        place.mkdir()
        if os.geteuid() != 0 or _run("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)) != 0:
            pytest.skip("a small file system is mounted for this, which needs the rights of root")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        _run("umount", "--lazy", str(place))


def _run(*arguments: str) -> int:
    return subprocess.run(arguments, capture_output=True, check=False).returncode


def fill_up(disk: Path, left_bytes: int) -> Path:
    """A file that leaves only so much of a disk."""
    found = os.statvfs(disk)
    path = disk / "filler"
    path.write_bytes(bytes(found.f_bavail * found.f_frsize - left_bytes))
    return path
