"""Calls for other processes to make: in a module that they can import."""

import os
import signal
import sys
import threading


def double(number: int) -> int:
    """Twice a number."""
    sys.stdout.write("this is no answer\n")
    sys.stdout.flush()
    return number * 2


def process_id() -> int:
    """The process this is called in."""
    return os.getpid()


def fail(text: str) -> None:
    """Raise."""
    raise LookupError(text)


def die_elsewhere(here: int) -> int:
    """End the process, unless it is this one."""
    if os.getpid() != here:
        os.kill(os.getpid(), signal.SIGKILL)
    return here


def cannot_be_sent() -> object:
    """A value that no pipe takes."""
    return threading.Lock()
