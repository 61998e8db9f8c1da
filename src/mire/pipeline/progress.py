"""How far the jobs of a session are.

Owns: a thread that asks Spark now and then, or the handler that a Connect server tells; what is done without Spark.
Must not know: how progress is shown.
Keeps: it ends with the block, and whatever goes wrong in it concerns nobody.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mire.pipeline.session import is_connected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY_S: Final = 0.5
Row = TypeVar("Row")


@dataclass(slots=True, eq=False)
class _Count:
    done: int
    total: int


_here: Final[list[_Count]] = []
"""What this process does itself; told by the latest."""


def counted(rows: Iterable[Row], total: int) -> Iterator[Row]:
    """Rows as they come, their number told meanwhile."""
    count = _Count(0, total)
    _here.append(count)
    try:
        for row in rows:
            count.done += 1
            yield row
    finally:
        _here.remove(count)


@contextmanager
def watched(spark: "SparkSession | None", show: Callable[[str], None]) -> Iterator[None]:
    """Tell how much of what is under way is done, for as long as the block runs: tasks, or files without Spark."""
    with _told(spark, show) if spark is not None and is_connected(spark) else _asked(spark, show):
        yield


@contextmanager
def _asked(spark: "SparkSession | None", show: Callable[[str], None]) -> Iterator[None]:
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_EVERY_S):
            text = _state_of(spark)
            if text is not None:
                show(text)

    thread = threading.Thread(target=watch, name="mire-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _told(spark: Any, show: Callable[[str], None]) -> Iterator[None]:
    """The same over Spark Connect, whose server tells by itself, every two seconds."""

    def handle(*, stages: Iterable[Any] | None, done: bool, **_: Any) -> None:
        under_way = [each for each in stages or () if not (done or each.done)]
        text = _text([(each.num_completed_tasks, each.num_tasks) for each in under_way])
        if text is not None:
            with suppress(Exception):  # it is called in the middle of the job
                show(text)

    spark.registerProgressHandler(handle)
    try:
        yield
    finally:
        spark.removeProgressHandler(handle)


def _state_of(spark: "SparkSession | None") -> str | None:
    """The stages under way in a few words; None when there are none, or nobody can tell."""
    for count in _here[-1:]:
        return f"moved: {count.done} of {count.total} files"
    if spark is None:
        return None
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    except Exception:  # noqa: BLE001 - a session that stops answers anything
        return None
    return _text([(stage.numCompletedTasks, stage.numTasks) for stage in stages if stage is not None])


def _text(stages: Sequence[tuple[int, int]]) -> str | None:
    if not stages:
        return None
    return f"spark: {sum(done for done, _ in stages)} of {sum(tasks for _, tasks in stages)} tasks"
