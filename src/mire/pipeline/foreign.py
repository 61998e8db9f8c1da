"""What Spark raises, as errors of ours.

Owns: the one place where a failure of Spark gets a name.
Must not know: what a job does.
Keeps: an error that a task raised on purpose arrives on the driver as what it was; anything else says what Spark said.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import Final

from mire import errors
from mire.errors import ConfigError, MireError, RemoteError

_OURS: Final = re.compile(r"mire\.errors\.(\w+): (.+)")
_NO_MODULE: Final = re.compile(r"ModuleNotFoundError: No module named '(mire|pyarrow|obstore)[\w.]*'")
_PYTHONS: Final = re.compile(r"Python in worker has different version[: ]+\(?'?([\d., ']+?)'?\)?(?: |,)")
_LAST: Final = re.compile(r"^(\w[\w.]*(?:Error|Exception)(?:: .*)?)$", re.MULTILINE)
_SAID_MAX: Final = 300


@contextlib.contextmanager
def spark_errors(what: str) -> Iterator[None]:
    """Errors of Spark inside the block, as errors of ours; `what` is the work that they end."""
    try:
        yield
    except MireError:
        raise
    except Exception as error:
        found = _named(str(error), what) if _is_foreign(error) else None
        if found is None:
            raise
        raise found from error


def _is_foreign(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j", "grpc")


def _named(text: str, what: str) -> MireError:
    ours = _OURS.findall(text)
    if ours:
        name, message = ours[-1]
        made = getattr(errors, name, RemoteError)
        return made(message) if issubclass(made, MireError) else RemoteError(message)
    missing = _NO_MODULE.search(text)
    if missing is not None:
        return ConfigError(
            f"{what} needs {missing[1]} on every worker, and one has none: install the same 'mire[spark]' there",
            kind="no_package",
        )
    if "PYTHON_VERSION_MISMATCH" in text or _PYTHONS.search(text):
        return ConfigError(
            f"{what}: driver and workers run different Pythons: set PYSPARK_PYTHON to the same version on both",
            kind="version_mismatch",
        )
    said = _LAST.findall(text) or [text]
    return RemoteError(
        f"{what} failed in Spark: {' '.join(said[-1].split())[:_SAID_MAX]}; nothing was committed; MIRE_SPARK_LOG=info"
        " shows more",
        kind="spark",
    )
