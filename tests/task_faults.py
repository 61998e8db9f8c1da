"""Faults of Spark's tasks: put around whatever a job runs in Python, by attempt and partition.

What tasks run is made inside functions here: workers do not have this module, and get it by value.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from pyspark.sql import GroupedData
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.types import StructType

Fault = Literal["fail", "disturb", "wait"]
"""Of the tasks that matter
`fail`: every attempt does its work, and then raises.
`disturb`: one waits until another attempt of it is done, so that both of them did everything; one fails half-way, is
then killed with all its work done, and succeeds only after that, and so does one that writes files.
`wait`: each says that it is there (a file `waiting`), and waits to be cancelled.
"""

WAIT_S = 20
"""Nothing takes this long: it only turns a hang into a failure."""
TWICE = "twice"
WAITING = "waiting"


@contextlib.contextmanager
def faulty_tasks(
    fault: Fault, stage: StructType, flags: Path, *, slow_stage: StructType | None = None
) -> Iterator[None]:
    """Let tasks misbehave; those matter that fill tables of the schema `stage`. `flags` is for their notes.

    `slow_stage` is for the one that is run twice, where the others fill a table that is kept: another attempt would
    find there what it is to do again.
    """
    slow = slow_stage or stage
    really_map, really_group = DataFrame.mapInArrow, GroupedData.applyInArrow
    really_write: Any = DataFrame.write

    def map_in_arrow(self: Any, func: Any, schema: Any, *rest: Any) -> Any:
        is_main, is_slow = schema == stage, schema == slow
        work = _faulty(func, fault, str(flags), is_main=is_main, is_slow=is_slow) if is_main or is_slow else func
        return really_map(self, work, schema, *rest)

    def apply_in_arrow(self: Any, func: Any, schema: Any) -> Any:
        return really_group(self, _faulty_group(func, fault, str(flags)), schema)

    def write(self: Any) -> Any:
        # What writes files is Java: a step of ours in the same task lets it fail.
        same = _faulty(lambda batches: batches, fault, str(flags), is_main=False, is_slow=False)
        return really_write.fget(really_map(self, same, self.schema))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataFrame, "mapInArrow", map_in_arrow)
        patch.setattr(GroupedData, "applyInArrow", apply_in_arrow)
        patch.setattr(DataFrame, "write", property(write))
        yield


def _faulty(
    func: Callable[[Any], Any], fault: Fault, flags: str, *, is_main: bool, is_slow: bool
) -> Callable[[Any], Any]:
    role = ("failing" if is_main else None) if is_main or is_slow else "failing-to-write"
    disturbed, wait_for, waiting = _disturbed(func, flags, role, is_slow=is_slow), _waiter(), WAITING

    def work(batches: Any) -> Any:
        import os  # noqa: PLC0415 - in the task

        if fault == "disturb":
            yield from disturbed(batches)
            return
        if fault == "wait" and is_main:
            open(os.path.join(flags, waiting), "w").close()
            wait_for(os.path.join(flags, "never"))
        done = list(func(batches))
        if fault == "fail" and is_main:
            raise RuntimeError("told to fail")
        yield from done

    return work


def _disturbed(func: Callable[[Any], Any], flags: str, role: str | None, *, is_slow: bool) -> Callable[[Any], Any]:
    wait_for, takes, twice = _waiter(), _taker(flags), TWICE

    def work(batches: Any) -> Any:
        import os  # noqa: PLC0415 - in the task
        import signal  # noqa: PLC0415

        from pyspark import TaskContext  # noqa: PLC0415

        context, given = TaskContext.get(), [batch for batch in batches if batch.num_rows]
        assert context is not None
        attempt, was_twice = context.attemptNumber(), os.path.join(flags, twice)
        if given and is_slow and takes("slow"):
            done = list(func(iter(given)))
            if attempt == 0:
                wait_for(was_twice)
            else:
                open(was_twice, "w").close()
            yield from done
        elif given and attempt <= 1 and role is not None and takes(role):
            if attempt == 1:
                list(func(iter(given)))
                os.kill(os.getpid(), signal.SIGKILL)
            yield from func(batch.slice(0, batch.num_rows // 2) for batch in given)
            raise RuntimeError("told to fail once")
        else:
            yield from func(iter(given))

    return work


def _taker(flags: str) -> Callable[[str], bool]:
    """Whether a task has a role: it goes to the first one that asks, and stays with all attempts of it."""

    def takes(role: str) -> bool:
        import os  # noqa: PLC0415 - in the task

        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        assert context is not None
        name, path = f"{context.stageId()}.{context.partitionId()}", os.path.join(flags, role)
        try:
            with open(path, "x") as file:
                file.write(name)
        except FileExistsError:
            with open(path) as file:
                return file.read() == name
        return True

    return takes


def _waiter() -> Callable[[str], None]:
    wait_s = WAIT_S

    def wait_for(path: str) -> None:
        import os  # noqa: PLC0415 - in the task
        import time  # noqa: PLC0415

        until = time.monotonic() + wait_s
        while not os.path.exists(path) and time.monotonic() < until:
            time.sleep(0.02)

    return wait_for


def _faulty_group(func: Callable[[Any], Any], fault: Fault, flags: str) -> Callable[[Any], Any]:
    takes = _taker(flags)

    def work(table: Any) -> Any:
        from pyspark import TaskContext  # noqa: PLC0415 - in the task

        context = TaskContext.get()
        done = func(table)
        if fault == "disturb" and context is not None and takes("grouping") and context.attemptNumber() == 0:
            raise RuntimeError("told to fail once")
        return done

    return work
