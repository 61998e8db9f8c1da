"""Looking at a file system from close by: whether its locks lock, and what its clock shows.

Owns: the system calls of the two questions.
Must not know: who asks, or what an answer means.
"""

import fcntl
import os

from mire.edge.files import create_opener, mapped


def is_flock_exclusive(path: str) -> bool:
    """Whether a lock on a file keeps a second opener of it out, and lets him in when it is given back."""
    with mapped(path), open(path, "wb", opener=create_opener) as one, open(path, "wb", opener=create_opener) as two:
        fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _takes(two.fileno()):
            return False
        fcntl.flock(one, fcntl.LOCK_UN)
        return _takes(two.fileno())


def _takes(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def stamp_ms(path: str) -> float:
    """When the clock that stamps files says that a file was last written."""
    with mapped(path):
        return os.stat(path).st_mtime_ns / 1e6
