"""Who we are on this machine: host, pid, user, the environment, and whether another pid lives.

Owns: identity and environment of the process.
Must not know: what the variables mean.
"""

import functools
import os
import signal
import socket
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from mire.model.lease import Host


def this_host() -> Host:
    """The identity this process locks with."""
    user = os.environ.get("USER") or os.environ.get("USERNAME") or "unknown"
    return Host(hostname=socket.gethostname(), pid=os.getpid(), user=user, space=_pid_space())


@functools.cache
def _pid_space() -> str:
    # Containers may share a hostname and still count pids from 1, each for itself.
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            boot = file.read()
        return f"{zlib.crc32(boot + str(os.stat('/proc/self/ns/pid').st_ino).encode()):08x}"
    except OSError:
        return ""


def environ() -> Mapping[str, str]:
    """The environment as it is now."""
    while True:
        try:
            return dict(os.environ)
        except KeyError:
            # Another thread gave back its last lock, and took away a variable between its name and its value.
            continue


def is_alive(pid: int) -> bool:
    """Whether a process of this host exists; no signal is sent."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    # A process that ended but was not waited for still has its pid. Where /proc is missing it counts as alive.
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:
        return False


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold back the signals that end a command, so that what is taken inside is also put down for release."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Announced:
    """Nonces of the locks this process holds, kept in the environment for the children it starts."""

    def __init__(self, variables_of: Callable[[Mapping[str, str], int, tuple[str, ...]], dict[str, str]]) -> None:
        self._variables_of = variables_of
        self._mutex = threading.Lock()
        self._nonces: list[str] = []
        self._inherited: dict[str, str] | None = None
        self._pid = os.getpid()

    def add(self, nonce: str) -> None:
        """Tell children about one more lock."""
        with self._mutex:
            self._forget_after_fork()
            if self._inherited is None:
                self._inherited = dict(os.environ)
            self._nonces.append(nonce)
            self._write()

    def remove(self, nonce: str) -> None:
        """Stop telling children about a lock; the last one restores what was inherited."""
        with self._mutex:
            self._forget_after_fork()
            if nonce in self._nonces:
                self._nonces.remove(nonce)
                self._write()

    def _forget_after_fork(self) -> None:
        if self._pid != os.getpid():
            self._pid, self._nonces, self._inherited = os.getpid(), [], None

    def _write(self) -> None:
        inherited = self._inherited or {}
        wanted = self._variables_of(inherited, os.getpid(), tuple(self._nonces))
        for name, value in wanted.items():
            if self._nonces:
                os.environ[name] = value
            elif name in inherited:
                os.environ[name] = inherited[name]
            else:
                os.environ.pop(name, None)
        if not self._nonces:
            self._inherited = None
