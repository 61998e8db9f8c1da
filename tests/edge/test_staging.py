"""Files on their way in: placed many at a time, and durable when all directories were synced."""

from pathlib import Path

from mire.edge import staging


def test_every_directory_with_a_new_name_is_told(tmp_path: Path) -> None:
    """Placing a file tells its directory and those in which directories were made: syncing them makes all durable."""
    first, _ = staging.stage(str(tmp_path), [b"one"])
    second, _ = staging.stage(str(tmp_path), [b"two"])
    told = staging.put_in_place(first, str(tmp_path / "a/b/c/file"))
    assert set(told) == {str(tmp_path / place) for place in ("a/b/c", "a/b", "a", "")}
    assert staging.put_in_place(second, str(tmp_path / "a/b/c/other")) == [str(tmp_path / "a/b/c")]
    assert (tmp_path / "a/b/c/file").read_bytes() == b"one"
    staging.sync_dirs(told)
