"""A process that takes and gives back locks when told to; run as a script by the lock tests.

Usage: lock_worker.py REPO HOSTNAME. Reads one JSON command a line, answers one JSON line.
"""

import json
import os
import sys
from contextlib import ExitStack
from typing import Any

import mire
from mire.errors import MireError
from mire.flow.lock import Hold, hold_global, hold_models
from mire.model.lease import Host


def main(repo: str, hostname: str) -> None:
    """Serve commands until standard input ends."""
    host = Host(hostname=hostname, pid=os.getpid(), user="tester")
    store = mire.open(repo, host=host, lock_timeout=30)
    held = ExitStack()
    hold: Hold | None = None
    for line in sys.stdin:
        command: dict[str, Any] = json.loads(line)
        answer: dict[str, Any] = {"ok": True}
        try:
            match command.pop("do"):
                case "hold":
                    model = store.model("svc", command["id"]).ref
                    context = hold_models(store.datastore, [model], ttl_ms=command["ttl"], wait_ms=command.get("wait"))
                    hold = held.enter_context(context)
                case "hold-global":
                    hold = held.enter_context(hold_global(store.datastore, ttl_ms=command["ttl"]))
                case "check":
                    assert hold is not None
                    hold.check()
                case "release":
                    finished, held = held, ExitStack()
                    finished.close()
                case "put":
                    model_api = store.model("svc", command["id"])
                    answer["versions"] = [
                        model_api.put("state", {"by": hostname, "n": n}).version for n in range(command["count"])
                    ]
                case unknown:
                    raise AssertionError(unknown)
        except MireError as error:
            answer = {"ok": False, **error.document()}
        print(json.dumps(answer), flush=True)  # noqa: T201 - the protocol


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
