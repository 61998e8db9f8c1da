"""Many processes racing for one lock; run as a script. Prints one JSON document of what happened.

Usage: lock_race.py fresh|stale|counter REPO PROCESSES ROUNDS
"""

import json
import os
import sys
from pathlib import Path

import mire
from mire.errors import LockTimeoutError
from mire.flow.lock import hold_models
from mire.model.artifact import ModelRef


def racer(repo: str, model: ModelRef, start: int, finish: int, report: int) -> None:
    """Wait for the start, try once, and keep the lock until everybody has tried."""
    store = mire.open(repo)
    os.read(start, 1)
    try:
        with hold_models(store.datastore, [model], wait_ms=0):
            os.write(report, b"w")
            os.read(finish, 1)
    except LockTimeoutError:
        os.write(report, b"l")


def race(repo: str, processes: int, *, is_stale: bool) -> dict[str, int]:
    """One round: who won, who lost."""
    model = mire.open(repo).model("svc", "web-1").ref
    lock = Path(repo, ".swamp/data/svc/web-1/.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    if is_stale:
        lock.write_text('{"holder": "gone@far", "hostname": "far", "pid": 1, "ttlMs": 1000, "nonce": "n"}')
        os.utime(lock, (1, 1))
    (start_r, start_w), (finish_r, finish_w), (report_r, report_w) = os.pipe(), os.pipe(), os.pipe()
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            os.close(start_w)
            os.close(finish_w)
            os.close(report_r)
            try:
                racer(repo, model, start_r, finish_r, report_w)
            finally:
                os._exit(0)
        children.append(child)
    os.close(start_w)  # everybody's read of the start pipe ends now
    os.close(report_w)  # ours: when everybody's is closed, nobody is left to report
    tries = b""
    while len(tries) < processes and (told := os.read(report_r, processes)):
        tries += told
    os.close(finish_w)
    for child in children:
        os.waitpid(child, 0)
    for fd in (start_r, finish_r, report_r):
        os.close(fd)
    return {"won": tries.count(b"w"), "lost": tries.count(b"l"), "left": int(lock.exists())}


def count(repo: str, processes: int, rounds: int) -> dict[str, int]:
    """Everybody adds to one number, reading and writing it without care, inside the lock."""
    number = Path(repo, "number")
    number.write_text("0")
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                store = mire.open(repo, lock_timeout=120)
                for _ in range(rounds):
                    with store.model("svc", "web-1").hold():
                        number.write_text(str(int(number.read_text()) + 1))
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    return {"number": int(number.read_text()), "failed": failed}


def main(kind: str, repo: str, processes: int, rounds: int) -> None:
    """Run and report."""
    mire.open(repo).model("svc", "web-0").put("state", {})
    if kind == "counter":
        print(json.dumps(count(repo, processes, rounds)))  # noqa: T201 - the result
    else:
        results = [race(repo, processes, is_stale=kind == "stale") for _ in range(rounds)]
        print(json.dumps(results))  # noqa: T201 - the result


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
