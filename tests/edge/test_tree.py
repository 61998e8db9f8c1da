"""Looking at a tree: everything in order, links never followed, and what could not be looked at is told."""

import hashlib
import os
import random
from pathlib import Path

import pytest

from mire.edge.tree import Tree, hash_file
from mire.edge.walk import identity_at
from mire.errors import InputError, NotFoundError
from mire.model.row import FileIdentity
from mire.wire.relpath import check_rel


def tree_of(root: Path) -> Tree:
    """A look that skips what ends in `.lock`."""
    return Tree(str(root), lambda path: path.endswith(".lock"), check_rel)


def fill(root: Path, *rels: str) -> None:
    """Files with their own path as content."""
    for rel in rels:
        (root / rel).parent.mkdir(parents=True, exist_ok=True)
        (root / rel).write_text(rel)


def found(tree: Tree, top: str = "") -> list[str]:
    """The paths a look gives out."""
    return [path for path, _ in tree.files(top)]


def told(tree: Tree) -> list[tuple[str, str]]:
    """The troubles, by path."""
    return [(each.path, each.kind) for each in tree.troubles]


def bury(root: Path) -> str:
    """A directory so deep that its path is too long to be listed, which no rights can help; its path."""
    rel, name = "", "d" * 50
    fd = os.open(root, os.O_RDONLY)
    while len(os.fsencode(root)) + len(rel) < 4_096:
        os.mkdir(name, dir_fd=fd)
        inner = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd, rel = inner, f"{rel}/{name}".lstrip("/")
    os.close(os.open("raw", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    return rel


def test_files_come_in_the_order_of_their_paths(tmp_path: Path) -> None:
    """The order is that of the whole paths, which is not that of a walk directory by directory."""
    names, chance = ["a", "a-b", "a.c", "a0", "b", "é", "z"], random.Random(3)  # noqa: S311 - repeatable
    rels = {"/".join(chance.choices(names, k=chance.randint(1, 4))) + ".f" for _ in range(200)}
    fill(tmp_path, *rels)
    tree = tree_of(tmp_path)
    assert found(tree) == sorted(rels)
    identities = [FileIdentity(*numbers) for _, numbers in tree.files()]
    assert identities == [identity_at(str(tmp_path / rel)) for rel in sorted(rels)]
    assert tree.troubles == []


def test_a_top_is_a_file_a_directory_or_nothing(tmp_path: Path) -> None:
    """A file gives itself, a directory what is below, and a path with nothing under it nothing, without trouble."""
    fill(tmp_path, "data/a/1", "data/a/2", "data/ab", "data/x.lock")
    tree = tree_of(tmp_path)
    assert found(tree, "data/a") == ["data/a/1", "data/a/2"]
    assert found(tree, "data/ab") == ["data/ab"]
    assert found(tree, "data/none/deep") == found(tree, "data/ab/below-a-file") == found(tree, "data/x.lock") == []
    assert tree.troubles == []
    assert tree.is_absent("data/none")
    assert tree.is_absent("data/ab/below-a-file")
    assert not tree.is_absent("data/a")


def test_links_are_told_and_not_followed(tmp_path: Path) -> None:
    """Links to a file, a directory, nothing or themselves, listed or on the way to a top: a trouble each."""
    root, outside = tmp_path / "cache", tmp_path / "outside"
    fill(outside, "secret")
    fill(root, "data/real")
    for name, target in {"file": "real", "dir": outside, "dangling": "nowhere", "loop": "loop"}.items():
        (root / "data" / name).symlink_to(target)
    tree = tree_of(root)
    assert found(tree) == ["data/real"]
    assert sorted(told(tree)) == [(f"data/{name}", "link") for name in ("dangling", "dir", "file", "loop")]
    tree = tree_of(root)
    assert found(tree, "data/dir/secret") == found(tree, "data/dangling") == []
    assert told(tree) == [("data/dir", "link"), ("data/dangling", "link")]
    assert not tree.is_absent("data/dir/gone")
    assert not tree.is_absent("data/dangling")


def test_the_root_may_be_a_link(tmp_path: Path) -> None:
    """Where the cache is was configured; only what is inside is not to be followed."""
    fill(tmp_path / "real", "data/a")
    (tmp_path / "link").symlink_to("real")
    assert found(tree_of(tmp_path / "link")) == ["data/a"]


def test_a_root_that_is_gone_proves_nothing(tmp_path: Path) -> None:
    """A cache that is not mounted has no files, and none of them is absent."""
    tree = tree_of(tmp_path / "unmounted")
    assert found(tree) == found(tree, "data/a") == []
    assert {kind for _, kind in told(tree)} == {"unreadable"}
    assert not tree.is_absent("data/a")


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    """A pipe, a name that is not UTF-8, a backslash: skipped by name, and the rest comes."""
    fill(tmp_path, "data/a", "data/z")
    os.mkfifo(tmp_path / "data/pipe")
    (tmp_path / "data/b\\c").touch()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/data/\xe9")).touch()
    tree = tree_of(tmp_path)
    assert found(tree) == ["data/a", "data/z"]
    assert sorted(told(tree)) == [("data/b\\c", "name"), ("data/pipe", "special"), ("data/\udce9", "name")]
    assert found(tree, "data/pipe") == []


def test_a_file_that_vanishes_costs_only_itself(tmp_path: Path) -> None:
    """Between the listing and the look a file goes away: that is told, and everything else is given out."""
    fill(tmp_path, "data/a", "data/b", "data/c")
    tree = tree_of(tmp_path)
    looking = tree.files()
    assert next(looking)[0] == "data/a"
    (tmp_path / "data/b").unlink()
    assert [path for path, _ in looking] == ["data/c"]
    assert told(tree) == [("data/b", "vanished")]


def test_a_directory_that_cannot_be_listed_costs_only_itself(tmp_path: Path) -> None:
    """The rest is given out, in order, and nothing below that directory is told to be absent."""
    fill(tmp_path, "a/1", "z/1")
    deep = bury(tmp_path)
    tree = Tree(str(tmp_path), lambda _: False)
    assert found(tree) == ["a/1", "z/1"]
    (trouble,) = tree.troubles
    assert trouble.kind == "unreadable"
    assert deep.startswith(trouble.path)
    assert not tree.is_absent(f"{deep}/raw")


def test_a_hash_comes_with_the_identity_of_what_was_read(tmp_path: Path) -> None:
    """The content of a file, and which file it was."""
    (tmp_path / "a").write_bytes(b"x" * 300_000)
    hashed = hash_file(str(tmp_path / "a"))
    assert (hashed.sha256, hashed.file) == (
        hashlib.sha256(b"x" * 300_000).hexdigest(),
        identity_at(str(tmp_path / "a")),
    )


def test_only_regular_files_are_hashed(tmp_path: Path) -> None:
    """A link is not followed, a pipe is not waited for, and what is missing is not there."""
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(InputError):
            hash_file(str(tmp_path / name))
    with pytest.raises(NotFoundError):
        hash_file(str(tmp_path / "none"))
