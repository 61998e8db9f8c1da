"""Files on their way in: written whole under a temporary name, and put in place many at a time.

Owns: the temporary names, and syncing a directory once for all that came into it.
Must not know: what a file is, where it came from.
Keeps: a file is under its final name only with all its bytes on disk; after `sync_dirs` the names are there, too.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from mire.edge import clock, pool
from mire.edge.files import Written, make_dirs, mapped, sync_dir, temporary_beside, write_synced
from mire.model.names import PRIVATE_PREFIX

_AT_ONCE = 16
_FORGOTTEN_S = 86_400.0
"""A staged file this old belongs to a process that died: none keeps one so long."""


@contextmanager
def open_own(directory: str) -> Iterator[str]:
    """A directory of one's own inside, which goes with whatever is left in it.

    For files that others stage for us: who is run twice, or dies, stages what nobody takes.
    """
    own = temporary_beside(os.path.join(directory, "_"))
    make_dirs(own)
    try:
        yield own
    finally:
        # Under another name first: an attempt that is still at it finds no place for one more file.
        gone = temporary_beside(own)
        with suppress(OSError):
            os.rename(own, gone)
        shutil.rmtree(gone, ignore_errors=True)


def stage(directory: str, chunks: Iterable[bytes]) -> tuple[str, Written]:
    """Write bytes under a temporary name in a directory, and on disk."""
    temporary = temporary_beside(os.path.join(directory, "_"))
    try:
        return temporary, write_synced(temporary, chunks)
    except BaseException:
        discard(temporary)
        raise


def sweep(directory: str) -> None:
    """Remove what processes that died left here long ago."""
    oldest_s = clock.now_ns() / 1e9 - _FORGOTTEN_S
    with suppress(OSError), os.scandir(directory) as found:
        for entry in found:
            is_ours = entry.name.startswith(f"{PRIVATE_PREFIX}-") and not entry.is_symlink()
            if is_ours and entry.stat(follow_symlinks=False).st_mtime < oldest_s:
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    discard(entry.path)


def put_in_place(temporary: str, path: str) -> list[str]:
    """Give a staged file its name; the directories that have a new name in them now, for `sync_dirs`."""
    directory = os.path.dirname(path)
    made = make_dirs(directory, is_durable=False)
    with mapped(path):
        os.replace(temporary, path)
    return [directory, *map(os.path.dirname, made)]


def sync_dirs(directories: Iterable[str]) -> None:
    """Put the names in some directories on disk."""
    for _ in pool.run(sync_dir, sorted(set(directories)), at_once=_AT_ONCE):
        pass


def discard(temporary: str) -> None:
    """Remove a staged file, if it is still there."""
    with suppress(OSError):
        os.unlink(temporary)
