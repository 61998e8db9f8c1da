"""Jobs that end when their time is up.

Owns: the thread that cancels them.
Must not know: what they do, what is said then.
Keeps: only jobs of the block are cancelled, whatever else the session does; a block that was cancelled has failed, one
that ended in the same moment has not.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from mire.edge import clock
from mire.errors import MireError
from mire.pipeline.session import is_connected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AGAIN_S: Final = 0.5


@contextmanager
def limited(spark: "SparkSession", left_s: float, late: Callable[[], MireError]) -> Iterator[None]:
    """Cancel the jobs of this block after so many seconds; `late` makes the error it then ends with."""
    if left_s > threading.TIMEOUT_MAX:
        yield
        return
    if left_s <= 0:
        raise late()
    add, cancel, remove = _tags_of(spark)
    tag, is_over, is_done = f"mire-{clock.new_uuid()}", threading.Event(), threading.Event()

    def watch() -> None:
        wait_s = left_s
        # Again and again: what is not a job yet cannot be cancelled, and becomes one.
        while not is_done.wait(wait_s):
            is_over.set()
            wait_s = _AGAIN_S
            with suppress(Exception):  # Spark itself may have ended
                cancel(tag)

    thread = threading.Thread(target=watch, name="mire-limit", daemon=True)
    add(tag)
    thread.start()
    try:
        yield
    except Exception as error:
        if is_over.is_set():
            raise late() from error
        raise
    finally:
        is_done.set()
        thread.join()
        remove(tag)


def _tags_of(spark: Any) -> tuple[Callable[[str], object], ...]:
    """How jobs are marked, cancelled by their mark, and no longer marked."""
    if is_connected(spark):
        return spark.addTag, spark.interruptTag, spark.removeTag
    context = spark.sparkContext
    # Tags of a session do not reach the jobs of tables that come as Arrow; those of its context do.
    return context.addJobTag, context.cancelJobsWithTag, context.removeJobTag
