"""Moving files and whole directories on one file system.

Owns: durability of a move, and comparing two files.
Must not know: why something is moved.
Keeps: a move is one step; what is named on both sides after a crash is whole on both.
"""

import os
import stat
from contextlib import suppress

from mire.edge import files
from mire.edge.tree import hash_file


def move(source: str, target: str) -> None:
    """Give a file, link or directory another name, durably; nothing may have that name."""
    files.make_dirs(os.path.dirname(target))
    with files.mapped(target):
        os.rename(source, target)
    files.sync_dir(os.path.dirname(target))
    files.sync_dir(os.path.dirname(source))


def is_same(one: str, other: str) -> bool:
    """Whether two names have the same content: regular files with equal bytes, or links with equal targets."""
    with files.mapped(other):
        first, second = os.lstat(one), os.lstat(other)
        if stat.S_ISLNK(first.st_mode) and stat.S_ISLNK(second.st_mode):
            return os.readlink(one) == os.readlink(other)
        if not stat.S_ISREG(first.st_mode) or not stat.S_ISREG(second.st_mode):
            return False
    return first.st_size == second.st_size and hash_file(one).sha256 == hash_file(other).sha256


def list_below(top: str) -> dict[str, int]:
    """Every file and link below a directory, hidden ones too, with its size; raises when anything cannot be listed."""
    found: dict[str, int] = {}
    pending = [""]
    while pending:
        here = pending.pop()
        with files.mapped(os.path.join(top, here)):
            try:
                entries = list(os.scandir(os.path.join(top, here)))
            except FileNotFoundError:
                continue
            for entry in entries:
                rel = f"{here}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{rel}/")
                else:
                    found[rel] = entry.stat(follow_symlinks=False).st_size
    return found


def remove_if_empty(path: str) -> None:
    """Remove a directory that has nothing in it."""
    with suppress(OSError):
        os.rmdir(path)
