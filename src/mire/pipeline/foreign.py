"""What Spark raises, as errors of ours.

Owns: the one place where a failure of Spark gets a name.
Must not know: what a job does.
Keeps: an error that a task raised on purpose arrives on the driver as what it was; anything else says what Spark said.
"""

import contextlib
import re
import traceback
from collections.abc import Iterator
from typing import Final

from mire import errors
from mire.errors import ConfigError, MireError, RemoteError, shown
from mire.model.release import VERSION

_OURS: Final = re.compile(r"mire\.errors\.(\w+): (.+)(?:\n\[kind: (\w+)\])?")
_NO_MODULE: Final = re.compile(r"ModuleNotFoundError: No module named '(\w+)((?:\.\w+)*)'")
_NO_NAME: Final = re.compile(r"(?:AttributeError: .*|ImportError: cannot import name .*)\bmire\.")
_NO_PYTHON: Final = re.compile(r"Cannot run program \"(.+?)\"")
_PYTHONS: Final = re.compile(r"Python in worker has different version[: ]+\(?'?([\d., ']+?)'?\)?(?: |,)")
_LAST: Final = re.compile(r"^(\w[\w.]*(?:Error|Exception)(?:: .*)?)$", re.MULTILINE)
_JAVA: Final = re.compile(r"^(?:Caused by)?: (\w[\w.$]*(?:Error|Exception)(?:: .*)?)$", re.MULTILINE)
_CANCELLED: Final = re.compile(r"SPARK_JOB_CANCELLED|Job \d+ cancelled|OPERATION_CANCELED")
_FULL: Final = "No space left on device"
_SAID_MAX: Final = 300


@contextlib.contextmanager
def spark_errors(what: str) -> Iterator[None]:
    """Errors of Spark inside the block, as errors of ours; `what` is the work that they end."""
    try:
        yield
    except MireError:
        raise
    except Exception as error:
        if _is_unanswered(error):
            raise RemoteError(
                f"{what}: the Java that Spark runs in has ended (killed, perhaps for want of memory): nothing was"
                " committed; run again, or let it use less (spark.driver.memory in spark-defaults.conf)",
                kind="spark",
            ) from error
        if _is_foreign(error):
            raise _named(str(error), what) from error
        raise


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Around the work of a task: of an error the driver gets only the text, so that has its kind as well."""
    try:
        yield
    except MireError as error:
        error.add_note(f"[kind: {error.kind}]")
        raise


def _is_unanswered(error: BaseException | None) -> bool:
    """Whether this is what Spark's own code meets when its Java is gone: errors of a connection, not of Spark."""
    if error is None:
        return False
    if type(error).__name__ == "Py4JNetworkError":
        return True
    if isinstance(error, OSError | EOFError):
        frames = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
        return any(_package_of(name) in ("pyspark", "py4j") for name in frames)
    # Of a call that got no answer the bridge tells only which one it was.
    return type(error).__name__ == "Py4JError" and _is_unanswered(error.__context__)


def _is_foreign(error: Exception) -> bool:
    return _package_of(type(error).__module__) in ("pyspark", "py4j", "grpc")


def _package_of(module: str) -> str:
    return module.partition(".")[0]


def _named(text: str, what: str) -> MireError:
    ours = _OURS.findall(text)
    if ours:
        name, message, kind = ours[-1]
        made = getattr(errors, name, RemoteError)
        made = made if issubclass(made, MireError) else RemoteError
        return made(message, kind=kind) if kind else made(message)
    found = _environment_error(text, what)
    if found is not None:
        return found
    if _CANCELLED.search(text):
        return RemoteError(f"{what} was cancelled in Spark: nothing was committed; run again", kind="cancelled")
    if _FULL in text:
        return RemoteError(
            f"{what} found no space left on a disk, of the target or of Spark's own files (SPARK_LOCAL_DIRS moves"
            " those): nothing was committed; free some, and run again",
            kind="full",
        )
    said = _LAST.findall(text) or _JAVA.findall(text) or [text]
    return RemoteError(
        f"{what} failed in Spark: {' '.join(said[-1].split())[:_SAID_MAX]}; nothing was committed; MIRE_SPARK_LOG=info"
        " shows more",
        kind="spark",
    )


def _environment_error(text: str, what: str) -> ConfigError | None:
    """What is wrong with the Python of a worker, if that is it."""
    missing, no_python = _NO_MODULE.search(text), _NO_PYTHON.search(text)
    if _NO_NAME.search(text) or (missing is not None and missing[1] == "mire" and missing[2]):
        return ConfigError(
            f"{what}: a worker has another mire than the driver, which is {VERSION}: install the same on both",
            kind="version_mismatch",
        )
    if missing is not None:
        return ConfigError(
            f"{what} needs {missing[1]} on every worker, and one has none: install the same 'mire[spark]' there",
            kind="no_package",
        )
    if no_python is not None:
        return ConfigError(
            f"{what} needs a Python on every worker, and one has no {shown(no_python[1])}: set PYSPARK_PYTHON to one"
            " that has 'mire[spark]'",
            kind="no_package",
        )
    if "PYTHON_VERSION_MISMATCH" in text or _PYTHONS.search(text):
        return ConfigError(
            f"{what}: driver and workers run different Pythons: set PYSPARK_PYTHON to the same version on both",
            kind="version_mismatch",
        )
    return None
