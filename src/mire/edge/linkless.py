"""Opening a file that no link leads to, with one call of the system instead of a look at every directory on the way.

Owns: `openat2` of Linux, which Python does not have, and the way without it.
Must not know: what is opened.
Keeps: only a regular file inside its boundary is opened. What the short way opens has no symbolic link anywhere in its
path, not even one made meanwhile; whatever it does not open is left to the long way, which tells why.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable
from typing import Final

from mire.edge import files

_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A pipe in the place of a file must not make us wait for somebody to write to it."""
_OPENAT2: Final = 437
"""The same number on all processors."""
_AT_FDCWD: Final = -100
_NO_SYMLINKS: Final = 0x04
_FEW: Final = 32
"""So many files are opened the long way first: it takes about as long as loading what the short one needs."""


class Opener:
    """The short way, once it pays."""

    def __init__(self, few: int = _FEW) -> None:
        self._left = few if sys.platform == "linux" else sys.maxsize
        self._call: Callable[[bytes], int] | None = None

    def open(self, path: str) -> int | None:
        """The file, open for reading, or None when this cannot tell."""
        call = self._call
        if call is None:
            self._left -= 1
            if self._left >= 0:
                return None
            call = self._call = _bound()
        fd = call(os.fsencode(path))
        return fd if fd >= 0 else None


_OPENER: Final = Opener()


def open_regular(path: str, boundary: str, opener: Opener = _OPENER) -> tuple[int, os.stat_result] | None:
    """The regular file at a path, open for reading, and what is known of it; None when there is none."""
    fd = opener.open(path)
    if fd is None:
        files.check_inside(path, boundary)
        try:
            fd = os.open(path, _FLAGS)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            raise files.error_of(error, path) from error
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode):
        return fd, status
    os.close(fd)
    return None


def _bound() -> Callable[[bytes], int]:
    import ctypes  # noqa: PLC0415 - it takes milliseconds, which a command that reads a few files can do without

    class How(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    syscall = ctypes.CDLL(None).syscall
    syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
    syscall.restype = ctypes.c_long
    how = How(_FLAGS, 0, _NO_SYMLINKS)
    place, size = ctypes.byref(how), ctypes.sizeof(how)

    def call(path: bytes) -> int:
        fd: int = syscall(_OPENAT2, _AT_FDCWD, path, place, size)
        return fd

    return call
