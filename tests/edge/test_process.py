"""The process tells its children which locks it holds, and puts the environment back."""

import os
import subprocess
import sys

import pytest

from mire.edge import process
from mire.plan.lock import ancestry_environ, parse_ancestry


def test_children_learn_of_all_locks_and_only_while_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nonces come and go with the locks; what was inherited is added to and then restored."""
    monkeypatch.setenv("SWAMP_LOCK_HOLDER_PID", "41")
    monkeypatch.setenv("SWAMP_LOCK_HOLDER_TOKENS", "41:parent")
    before = {name: value for name, value in os.environ.items() if name.startswith("SWAMP_")}
    announced = process.Announced(ancestry_environ)
    announced.add("one")
    announced.add("two")
    child = parse_ancestry(process.environ(), own_pid=1)
    assert child.nonces == {"one", "two", "parent"}
    assert child.pids == {41, os.getpid()}
    announced.remove("one")
    assert parse_ancestry(process.environ(), own_pid=1).nonces == {"two", "parent"}
    announced.remove("two")
    announced.remove("two")
    assert {name: value for name, value in os.environ.items() if name.startswith("SWAMP_")} == before


def test_liveness_of_pids() -> None:
    """We are alive; a process that ended and was waited for is not."""
    assert process.is_alive(os.getpid())
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert not process.is_alive(child.pid)


def test_identity() -> None:
    """We lock as this process on this host."""
    host = process.this_host()
    assert host.pid == os.getpid()
    assert host.holder.endswith(f"@{host.hostname}")


def test_a_zombie_is_not_alive() -> None:
    """A process that ended, but was not waited for, holds nothing any more."""
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read()  # ends with the process
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not process.is_alive(child.pid)
