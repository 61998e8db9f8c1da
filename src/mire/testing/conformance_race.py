"""Checks of what happens at the same time, and of time itself.

Owns: races for one object, and the store's clock.
Must not know: pytest, which backend is checked.
Keeps: each function is one check with a name of its own, run in an empty place by `check_remote`.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from mire.edge.remote import Absent, Matches, Remote, Stored
from mire.testing.conformance_lock import expect

RACERS: Final = 8
_CLOCKS_MS = 5_000


def check_racing_creators(remote: Remote, again: Remote) -> None:
    """Of many that create one object at the same time exactly one does."""
    for number in range(3):
        outcomes = _race(partial(_create, (remote, again), f"race-{number}"))
        winners = [racer for racer, outcome in outcomes.items() if isinstance(outcome, Stored)]
        expect("racing creators", holds=len(winners) == 1, what=f"the winners were {winners} of {outcomes}")
        data = again.get(f"race-{number}").data
        expect("racing creators", holds=data == b"%d" % winners[0], what=f"{winners[0]} won and {data!r} is stored")


def _create(handles: tuple[Remote, Remote], key: str, racer: int) -> object:
    return handles[racer % 2].put_if(key, b"%d" % racer, Absent())


def check_racing_updaters(remote: Remote, again: Remote) -> None:
    """Of many that replace one version at the same time exactly one does."""
    if not remote.properties.conditional_put:
        return
    old = remote.put("race", b"old").fingerprint
    outcomes = _race(lambda racer: (remote, again)[racer % 2].put_if("race", b"%d" % racer, Matches(old)))
    winners = [racer for racer, outcome in outcomes.items() if isinstance(outcome, Stored)]
    expect("racing updaters", holds=len(winners) == 1, what=f"the winners were {winners} of {outcomes}")
    data = again.get("race").data
    expect("racing updaters", holds=data == b"%d" % winners[0], what=f"{winners[0]} won and {data!r} is stored")


def _race(call: Callable[[int], object]) -> dict[int, object]:
    outcomes: dict[int, object] = {}
    gate = threading.Barrier(RACERS)

    def run(racer: int) -> None:
        gate.wait()
        try:
            outcomes[racer] = call(racer)
        except Exception as error:  # noqa: BLE001 - shown with the outcomes
            outcomes[racer] = error

    threads = [threading.Thread(target=run, args=(racer,)) for racer in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def check_server_time(remote: Remote, again: Remote) -> None:
    """The clock the store tells is the one it stamps objects with, and does not go back."""
    before = remote.server_time_ms()
    remote.put("stamped", b"x")
    stamp, after = again.head("stamped").modified_ms, again.server_time_ms()
    expect("server time", holds=before <= after, what=f"it went from {before} to {after}")
    holds = before - _CLOCKS_MS <= stamp <= after + _CLOCKS_MS
    expect("server time", holds=holds, what=f"an object stored between {before} and {after} is stamped {stamp}")


CHECKS: Final = (check_racing_creators, check_racing_updaters, check_server_time)
