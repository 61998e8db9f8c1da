"""Driver and workers run one release: what a worker is compared with.

Owns: which Python, mire and packages this process has, and the error of two that differ.
Must not know: Spark.
Keeps: no task of another release writes anything: it is refused before its first row.
"""

import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Final

from mire.errors import ConfigError
from mire.model.release import VERSION

_SPARK: Final = "pyspark"
_PACKAGES: Final = (_SPARK, "pyarrow", "obstore")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What must be the same on the driver and on every worker."""

    mire: str
    python: str
    packages: tuple[tuple[str, str], ...] = ()
    """Those that move bytes and rows, and their versions."""

    def besides(self, other: "Release") -> str:
        """Its packages that the other one has not, for a message."""
        found = [f"{name} {version}" for name, version in self.packages if (name, version) not in other.packages]
        return f" with {', '.join(found)}" if found else ""


@cache
def this_release() -> Release:
    """That of this process."""
    return Release(
        mire=VERSION,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        packages=tuple((name, _version_of(name)) for name in _PACKAGES),
    )


def _version_of(name: str) -> str:
    if name == _SPARK:
        # What is imported counts: a worker may have the one of its cluster, which is no installed package. Its releases
        # with the same two numbers work together.
        return ".".join(str(getattr(sys.modules.get(name), "__version__", "?")).split(".")[:2])
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "?"


def check_release(driver: Release) -> None:
    """Refuse to work for a driver of another release."""
    ours = this_release()
    if ours != driver:
        raise ConfigError(
            f"the driver runs mire {driver.mire} on Python {driver.python}{driver.besides(ours)}, a worker runs mire"
            f" {ours.mire} on Python {ours.python}{ours.besides(driver)}: install the same on both",
            kind="version_mismatch",
        )
