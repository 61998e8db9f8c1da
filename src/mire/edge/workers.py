"""Other Python processes that work for this one.

Owns: starting them, handing out calls, taking results, ending them.
Must not know: what the calls do.
Keeps: they are started, never forked: a fork copies locks that other threads hold (the clients of object stores have
threads, and so may whoever imported us) and can then wait for them for ever. The program's own main module is not run
again in them. They end with us, however we end. A call whose process fails is made here instead.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import IO, TypeVar

Result = TypeVar("Result")

_START = "import sys; sys.path[:] = sys.argv[1:]; from mire.edge.workers import serve; serve()"


class Workers:
    """So many processes, each started with its first call; `close` ends them."""

    def __init__(self, count: int) -> None:
        self._threads = ThreadPoolExecutor(count)
        self._idle: SimpleQueue[subprocess.Popen[bytes] | None] = SimpleQueue()
        for _ in range(count):
            self._idle.put(None)
        self._all: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def submit(self, call: Callable[..., Result], *args: object) -> "Future[Result]":
        """Have a function of a module called elsewhere; an error it raises is raised by the result."""
        return self._threads.submit(self._work, call, args)

    def close(self) -> None:
        """End the processes; calls that nobody waited for are given up."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._is_closed = True
            for process in self._all:
                process.kill()
        self._threads.shutdown(wait=True)
        for process in self._all:
            _end(process)

    def _work(self, call: Callable[..., Result], args: tuple[object, ...]) -> Result:
        process = self._idle.get()
        try:
            process = process or self._start()
            _send(process.stdin, _packed((call, args)))
            is_good, answer = _read(process.stdout)
        except Exception:
            process = None
            if self._is_closed:
                raise
            return call(*args)
        finally:
            self._idle.put(process)
        if not is_good:
            raise answer
        result: Result = answer
        return result

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise CancelledError
            process = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-c", _START, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            self._all.append(process)
        return process


def serve() -> None:
    """Answer calls until there are no more: what a worker process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us, whose end is our end
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a call prints is no answer
    while True:
        try:
            call, args = _read(calls)
        except EOFError:
            return
        try:
            answer = _packed((True, call(*args)))
        except Exception as error:  # noqa: BLE001 - raised again where the call was made
            answer = _packed((False, error))
        _send(answers, answer)


def _packed(message: object) -> bytes:
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def _send(pipe: IO[bytes] | None, message: bytes) -> None:
    assert pipe is not None  # noqa: S101 - opened with the process
    pipe.write(message)
    pipe.flush()


def _read(pipe: IO[bytes] | None) -> tuple:  # type: ignore[type-arg]
    assert pipe is not None  # noqa: S101 - opened with the process
    message: tuple = pickle.load(pipe)  # type: ignore[type-arg]  # noqa: S301 - from our own process
    return message


def _end(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue  # what was not sent is of no use any more
