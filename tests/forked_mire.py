"""The command `mire` for tests that run hundreds of it: forked from a process that has imported everything.

Each is a process of its own, with arguments, directory, environment, streams and exit code like any other. What it
does not show is how a command starts: that is shown by the tests of processes and by the README, with the real one.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_SERVER = Path(__file__).parent / "preloaded/mire_server.py"

_COMMAND = """#!{python} -IS
import _socket, marshal, posix, sys
from array import array
server = _socket.socket(_socket.AF_UNIX)
server.connect({address!r})
request = marshal.dumps((sys.argv[1:], posix.getcwd(), dict(posix.environ)))
server.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [0, 1, 2]))])
posix._exit((server.recv(1) or b"\\xff")[0])
"""
"""What is called `mire`: only modules that are part of the interpreter, which takes a few milliseconds to start."""


@pytest.fixture(scope="session")
def forked_mire() -> Iterator[Path]:
    """A directory for the front of a PATH, with a `mire` that starts at once."""
    with tempfile.TemporaryDirectory(prefix="mire-") as made:
        address, command = Path(made, "socket"), Path(made, "mire")
        command.write_text(_COMMAND.format(python=sys.executable, address=str(address)), encoding="utf-8")
        command.chmod(0o755)
        environ = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        with subprocess.Popen(
            [sys.executable, str(_SERVER), str(address)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
        ) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield Path(made)
