"""How far the jobs of a session are.

Owns: a thread that asks Spark now and then.
Must not know: how progress is shown.
Keeps: it ends with the block, and whatever goes wrong in it concerns nobody.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY_S: Final = 0.5


@contextmanager
def watched(spark: "SparkSession", show: Callable[[str], None]) -> Iterator[None]:
    """Tell how many tasks of the stages under way are done, for as long as the block runs."""
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


def _state_of(spark: "SparkSession") -> str | None:
    """The stages under way in a few words; None when there are none, or nobody can tell."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    except Exception:  # noqa: BLE001 - a Connect session has no tracker; a session that stops answers anything
        return None
    known = [stage for stage in stages if stage is not None]
    if not known:
        return None
    done, all_of_them = sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)
    return f"spark: {done} of {all_of_them} tasks"
