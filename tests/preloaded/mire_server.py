"""The process that commands are forked from, with everything imported that the command line uses; run as a script.

Usage: mire_server.py SOCKET. Whoever connects sends arguments, directory, environment and the three streams, and gets
the exit code when the command has ended. The server ends with its standard input.
"""

import atexit
import gc
import importlib
import marshal
import os
import pkgutil
import select
import signal
import socket
import sys
import threading

import mire.cli.main
import mire.edge
import mire.flow
import mire.plan
import mire.wire

_ALSO = ("cel", "mimetypes", "mire.api", "opentelemetry.trace", "rich.console", "rich.table")
_MOST_BYTES = 1 << 20


def load() -> None:
    """Import what commands import when they run."""
    for package in (mire.cli, mire.edge, mire.flow, mire.plan, mire.wire):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for name in _ALSO:
        importlib.import_module(name)


def serve(listener: socket.socket) -> None:
    """Fork for each that connects; returns in the process that is to be the command."""
    # Nobody waits for those who wait for the commands.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        readable, _, _ = select.select([listener, 0], [], [])
        if 0 in readable:
            os._exit(0)
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            if answer(connection):
                return
        connection.close()


def answer(connection: socket.socket) -> bool:
    """Fork the command and tell how it ended; returns in the command."""
    request, streams, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
    child = os.fork()
    if child == 0:
        connection.close()
        become(*marshal.loads(request), streams)  # noqa: S302 - from the test beside us
        return True
    for stream in (0, *streams):
        os.close(stream)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.send(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def become(arguments: list[str], directory: str, environ: dict[bytes, bytes], streams: list[int]) -> None:
    """Take what makes a process of its own."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(directory)
    os.environb.clear()
    os.environb.update(environ)
    sys.argv = ["mire", *arguments]


def end(code: object) -> None:
    """End as the interpreter does, but for taking every module apart, which takes longer than most commands."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    load()
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.bind(sys.argv[1])
        waiting.listen(16)
        # Said when there is somebody to connect to.
        os.write(1, b"ready\n")
        gc.freeze()
        serve(waiting)
    try:
        mire.cli.main.main()
    except SystemExit as ended:
        end(ended.code)
