"""Files on their way in: placed many at a time, and durable when all directories were synced."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from mire.edge import staging
from mire.errors import MireError
from mire.model.names import PRIVATE_PREFIX


def test_every_directory_with_a_new_name_is_told(tmp_path: Path) -> None:
    """Placing a file tells its directory and those in which directories were made: syncing them makes all durable."""
    first, _ = staging.stage(str(tmp_path), [b"one"])
    second, _ = staging.stage(str(tmp_path), [b"two"])
    told = staging.put_in_place(first, str(tmp_path / "a/b/c/file"))
    assert set(told) == {str(tmp_path / place) for place in ("a/b/c", "a/b", "a", "")}
    assert staging.put_in_place(second, str(tmp_path / "a/b/c/other")) == [str(tmp_path / "a/b/c")]
    assert (tmp_path / "a/b/c/file").read_bytes() == b"one"
    staging.sync_dirs(told)


def test_a_directory_of_ones_own_goes_with_what_is_left_in_it(tmp_path: Path) -> None:
    """Files that others staged and nobody took are gone with the block; of one who died they go after a day."""
    with staging.open_own(str(tmp_path)) as own:
        taken, _ = staging.stage(own, [b"taken"])
        left, _ = staging.stage(own, [b"left"])
        staging.put_in_place(taken, str(tmp_path / "place"))
    assert [path.name for path in tmp_path.iterdir()] == ["place"]
    assert not os.path.exists(left)
    fresh, old = tmp_path / os.path.basename(own), tmp_path / f"{PRIVATE_PREFIX}-old.tmp"
    for each in (fresh, old):
        each.mkdir()
        (each / "file").write_text("x")
    before = time.time() - 2 * 86_400
    os.utime(old, (before, before))
    staging.sweep(str(tmp_path))
    assert (fresh.exists(), old.exists()) == (True, False)


def test_nobody_stages_into_a_directory_that_is_going(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that still stages when the directory goes fails, and leaves nothing: not even right before the last step."""
    refused, really_remove = [], os.rmdir

    def remove(*args: Any, **kwargs: Any) -> None:
        with pytest.raises(MireError) as caught:
            staging.stage(own, [b"late"])
        refused.append(caught.value)
        really_remove(*args, **kwargs)

    with staging.open_own(str(tmp_path)) as own:
        staging.stage(own, [b"left"])
        monkeypatch.setattr(os, "rmdir", remove)
    assert len(refused) == 1
    assert list(tmp_path.iterdir()) == []
