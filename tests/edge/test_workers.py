"""Other processes that work for this one."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mire.edge.workers import Workers
from worker_calls import cannot_be_sent, die_elsewhere, double, fail, process_id


@pytest.fixture
def workers() -> Workers:
    """Two processes."""
    return Workers(2)


def test_calls_are_made_elsewhere(workers: Workers) -> None:
    """Results come back, whatever a call prints, from at most as many processes as were asked for."""
    try:
        assert [workers.submit(double, number).result() for number in range(5)] == [0, 2, 4, 6, 8]
        pids = {workers.submit(process_id).result() for _ in range(6)}
    finally:
        workers.close()
    assert os.getpid() not in pids
    assert len(pids) <= 2


def test_an_error_is_raised_here(workers: Workers) -> None:
    """What a call raises, its result raises; the process goes on."""
    try:
        with pytest.raises(LookupError, match="nowhere"):
            workers.submit(fail, "nowhere").result()
        assert workers.submit(double, 4).result() == 8
    finally:
        workers.close()


def test_a_process_that_dies_is_no_loss(workers: Workers) -> None:
    """A call whose process was killed is made here, and the next ones have a new process."""
    try:
        assert workers.submit(die_elsewhere, os.getpid()).result() == os.getpid()
        assert workers.submit(process_id).result() != os.getpid()
    finally:
        workers.close()


def test_a_result_that_cannot_be_sent_is_an_error(workers: Workers) -> None:
    """It is told, not waited for."""
    try:
        with pytest.raises(TypeError, match="pickle"):
            workers.submit(cannot_be_sent).result()
    finally:
        workers.close()


def test_closing_gives_up_what_nobody_waits_for(workers: Workers) -> None:
    """No process is left, whatever was still to be done."""
    pid = workers.submit(process_id).result()
    for number in range(50):
        workers.submit(double, number)
    workers.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


SCRIPT = """
import os, signal, sys
from mire.edge.workers import Workers
print("main", flush=True)
print("worker", Workers(1).submit(os.getpid).result(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_they_end_with_whoever_started_them(tmp_path: Path) -> None:
    """A program without a guard around its main part is run once; killed, it leaves no process behind."""
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    # A worker inherits stderr: reading it to its end waits for the end of the worker.
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    first, second = done.stdout.splitlines()
    assert (first, second.split()[0]) == ("main", "worker")
    try:
        worker = os.pidfd_open(int(second.split()[1]))
    except ProcessLookupError:
        return  # ended, and nobody remembers it
    assert select.select([worker], [], [], 60)[0] == [worker]  # readable when it has ended
