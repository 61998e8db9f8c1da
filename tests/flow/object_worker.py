"""A process that takes and gives back locks on an object store when told to; run as a script by the lock tests.

Usage: object_worker.py URL HOSTNAME. Reads one JSON command a line, answers one JSON line.
"""

import json
import sys
import threading
from contextlib import ExitStack
from typing import Any

from mire.edge.lockobject import ObjectLocks
from mire.edge.objectstore import open_s3
from mire.edge.remote import Remote
from mire.errors import LockTimeoutError, MireError
from mire.flow.acquire import Deadline, acquire
from mire.flow.datastore import Datastore
from mire.flow.lock import Hold, hold_models
from mire.model.backend import S3Settings
from mire.model.lease import TTL_MS
from mire.model.names import SOLO
from mire.testing.conformance_lock import MODEL, lock_datastore
from mire.wire.layout import model_lock


def race(ds: Datastore, threads: int) -> int:
    """How many of the threads got the lock; the winner keeps it until the next line of input."""
    start, tried = threading.Barrier(threads), threading.Barrier(threads + 1)
    end = threading.Event()
    won: list[int] = []
    trouble: list[str] = []

    def racer(number: int) -> None:
        with ExitStack() as stack:
            start.wait()
            try:
                acquire(ds, model_lock(SOLO, MODEL), Deadline(0), (1, 1), TTL_MS, stack)
                won.append(number)
            except LockTimeoutError:
                pass
            except Exception as error:  # noqa: BLE001 - told to the test: nobody waits for whoever failed
                trouble.append(repr(error))
            tried.wait()
            end.wait()

    racers = [threading.Thread(target=racer, args=(number,)) for number in range(threads)]
    for thread in racers:
        thread.start()
    tried.wait()
    print(json.dumps({"ok": not trouble, "won": len(won), "trouble": trouble}), flush=True)  # noqa: T201 - the protocol
    sys.stdin.readline()
    end.set()
    for thread in racers:
        thread.join()
    return len(won)


def count(ds: Datastore, remote: Remote, rounds: int) -> None:
    """Add to one number, reading and writing it without care, inside the lock."""
    for _ in range(rounds):
        with hold_models(ds, [MODEL]):
            remote.put("number", str(int(remote.get("number").data) + 1).encode())


def main(url: str, hostname: str) -> None:
    """Serve commands until standard input ends."""
    remote = open_s3(S3Settings(bucket="b", endpoint=url, force_path_style=True))
    ds = lock_datastore(ObjectLocks(remote), hostname=hostname)
    held = ExitStack()
    hold: Hold | None = None
    while line := sys.stdin.readline():
        command: dict[str, Any] = json.loads(line)
        answer: dict[str, Any] = {"ok": True}
        try:
            match command.pop("do"):
                case "hold":
                    hold = held.enter_context(hold_models(ds, [MODEL], ttl_ms=command["ttl"]))
                case "commit":
                    assert hold is not None
                    hold.check()
                    remote.put("commit", hostname.encode())
                case "release":
                    finished, held = held, ExitStack()
                    finished.close()
                case "race":
                    race(ds, command["threads"])
                case "count":
                    count(ds, remote, command["rounds"])
                case unknown:
                    raise AssertionError(unknown)
        except MireError as error:
            answer = {"ok": False, **error.document()}
        print(json.dumps(answer), flush=True)  # noqa: T201 - the protocol


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
