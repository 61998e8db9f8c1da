"""Processes that die between two file operations, for proving that a write leaves the old or the new state.

Owns: running a call in a forked child that is killed (SIGKILL, nothing runs after it) just before its n-th
file operation.
Must not know: what the call does. No code of mire is changed or told: the interpreter's profiling hook sees
every call into the operating system, also in libraries.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

_SYSTEM_CALLS: Final = frozenset(
    (
        *("open", "close", "write", "pwrite", "truncate", "ftruncate", "fsync", "fdatasync", "utime", "chmod"),
        *("mkdir", "rmdir", "unlink", "remove", "rename", "replace", "link", "symlink"),
    )
)
_FILE_METHODS: Final = frozenset(("write", "truncate", "flush", "close", "__exit__"))


def _is_file_operation(function: Any) -> bool:
    module, name = getattr(function, "__module__", None), getattr(function, "__name__", "")
    if module in ("posix", "_io", "io"):
        return name in _SYSTEM_CALLS
    owner = type(getattr(function, "__self__", None))
    return name in _FILE_METHODS and owner.__module__ in ("_io", "io")


def die_before(step: int) -> None:
    """From now on, kill this process just before its `step`-th file operation (counted from 1)."""
    left = step

    def hook(frame: FrameType, event: str, function: Any) -> None:
        nonlocal left
        del frame
        if event == "c_call" and _is_file_operation(function):
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(hook)


def survives(call: Callable[[], object], step: int) -> bool:
    """Run a call in a child that dies before its `step`-th file operation; whether it finished first.

    Call this from a process with one thread: a fork copies only the thread that forks.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            die_before(step)
            call()
            code = 0
        finally:
            sys.setprofile(None)
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    if os.WEXITSTATUS(status) != 0:
        raise AssertionError(f"the call failed by itself before file operation {step}")
    return True


def deaths(
    prepare: Callable[[], None], call: Callable[[], object], *, most: int = 1_000, every: int = 1
) -> Iterator[int]:
    """For each file operation of a call (or every n-th): prepare, die just before it, and yield its number."""
    for step in range(1, most, every):
        prepare()
        if survives(call, step):
            return
        yield step
    raise AssertionError(f"the call has more than {most} file operations")
