"""Taking turns: one process or thread at a time does a thing that may take long.

Owns: waiting for one's turn, by an advisory lock that the kernel releases if its holder dies.
Must not know: what is done.
Keeps: where a file system cannot lock, nobody waits.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from mire.edge import clock
from mire.edge.files import make_dirs, mapped
from mire.errors import RemoteError, shown

_PAUSE_MS = 5.0
_PAUSE_MAX_MS = 100.0
_BUSY = (errno.EAGAIN, errno.EACCES, errno.EINTR)


@contextmanager
def open_turn(path: str, *, wait_ms: float, what: str) -> Iterator[None]:
    """A block that nobody else runs who names the same file; an error says `what` kept us waiting too long."""
    import fcntl  # noqa: PLC0415 - POSIX only, and only needed when something is written

    make_dirs(os.path.dirname(path))
    with mapped(path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        started_ms, pause_ms = clock.monotonic_ms(), _PAUSE_MS
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _BUSY:
                    break
            else:
                break
            if clock.monotonic_ms() - started_ms > wait_ms:
                raise RemoteError(
                    f"{what} for more than {wait_ms / 1000:g} s ({shown(path)} is locked): wait for it, or end it",
                    transient=True,
                    kind="busy_cache",
                    path=path,
                )
            clock.pause(pause_ms)
            pause_ms = min(_PAUSE_MAX_MS, pause_ms * 2)
        yield
    finally:
        os.close(fd)
