"""Dies before every step of one verb in a cache and compares marks with changed bytes; run as a script.

Usage: mark_crash.py SCENARIO DIRECTORY. Prints the number of deaths, or fails with what was not marked. A step is a
file operation or a statement of the journal.
"""

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import mire
from mire.api import Store
from mire.edge.objectstore import open_memory
from mire.edge.state import close_states
from mire.errors import MireError
from mire.flow.mark import acknowledge, pending_marks
from mire.testing import crash
from mire.wire.relpath import is_internal

OTHER = "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603"
Work = Callable[[mire.Store], object]


def base(store: mire.Store) -> None:
    """Two versions of one name, and a streaming log."""
    model = model_of(store)
    model.put("state", "a")
    model.put("state", "b")
    model.put("log", "one\n", streaming=True)


def model_of(store: mire.Store) -> mire.Model:
    """The model all scenarios write."""
    return store.model("svc", "web-1")


SCENARIOS: dict[str, Work] = {
    "put": lambda store: model_of(store).put("state", "c"),
    "put-new-name": lambda store: model_of(store).put("fresh", "x"),
    "append": lambda store: model_of(store).append("log", "two\n"),
    "delete-latest": lambda store: model_of(store).delete("state", 2),
    "delete-name": lambda store: model_of(store).delete("state"),
    "rename": lambda store: model_of(store).rename("state", "status"),
    "hold": lambda store: model_of(store).hold_back("state"),
    "output": lambda store: store.outputs.start("svc", OTHER, "deploy"),
}


def open_store(top: Path) -> mire.Store:
    """The store, as a new process finds it."""
    ds = mire.open(top / "repo", datastore=f"filesystem:{top / 'cache'}").datastore
    return Store(replace(ds, remote=open_memory()))


def files_of(cache: Path) -> dict[str, bytes]:
    """The synced files."""
    found = (path for path in cache.rglob("*") if path.is_file())
    rels = ((str(path.relative_to(cache)), path) for path in found)
    return {rel: path.read_bytes() for rel, path in rels if not is_internal(rel)}


def die_before(step: int) -> None:
    """Kill this process just before its `step`-th file operation or statement."""
    left = step

    def hook(_frame: Any, event: str, function: Any) -> None:
        nonlocal left
        owner = getattr(function, "__self__", None)
        is_statement = isinstance(owner, sqlite3.Connection) and function.__name__ in ("execute", "executemany")
        if event == "c_call" and (is_statement or crash._is_file_operation(function)):
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(hook)


def survives(work: Callable[[], object], step: int) -> bool:
    """Run something in a child that dies before a step; whether it finished first."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            die_before(step)
            work()
            code = 0
        finally:
            sys.setprofile(None)
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), f"the verb failed by itself before step {step}"
    return code == 0


def check(top: Path, before: dict[str, bytes], step: int) -> None:
    """Every file whose bytes differ is covered by a mark, and no mark waits for the dead."""
    after = files_of(top / "cache")
    touched = {rel for rel in before.keys() | after.keys() if before.get(rel) != after.get(rel)}
    found = pending_marks(open_store(top).datastore)
    marks = {mark.path for mark in found.records}
    lost = [rel for rel in touched if not any(rel == path or rel.startswith(f"{path}/") for path in marks)]
    assert found.is_known, f"step {step}: the journal is lost"
    assert not lost, f"step {step}: {lost} changed without a mark, marked are {sorted(marks)}"
    assert not any(mark.is_open for mark in found.records), f"step {step}: somebody waits for the dead"


def main(scenario: str, top: Path) -> None:
    """Die before each step in turn."""
    work, clean = SCENARIOS[scenario], top / "clean"
    (clean / "repo").mkdir(parents=True)
    (clean / "cache").mkdir()
    store = open_store(clean)
    base(store)
    found = pending_marks(store.datastore)
    acknowledge(store.datastore, found, [mark.path for mark in found.records], is_bulk=True)
    close_states()
    for step in range(1, 2_000):
        place = top / "run"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(clean, place)
        before = files_of(place / "cache")
        if survives(lambda: work(open_store(place)), step):  # noqa: B023 - called at once
            sys.stdout.write(str(step - 1))
            return
        check(place, before, step)
        # Whoever comes next settles what the dead one left, and marks that too.
        with suppress(MireError):
            model_of(open_store(place)).get("state")
        check(place, before, step)
        close_states()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
