"""Driver and workers run one release: what a worker is compared with.

Owns: which Python and which mire this process is, and the error of two that differ.
Must not know: Spark.
Keeps: no task of another release writes anything: it is refused before its first row.
"""

import sys
from dataclasses import dataclass

from mire.errors import ConfigError
from mire.model.release import VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What must be the same on the driver and on every worker."""

    mire: str
    python: str


def this_release() -> Release:
    """That of this process."""
    return Release(mire=VERSION, python=f"{sys.version_info.major}.{sys.version_info.minor}")


def check_release(driver: Release) -> None:
    """Refuse to work for a driver of another release."""
    ours = this_release()
    if ours != driver:
        raise ConfigError(
            f"the driver runs mire {driver.mire} on Python {driver.python}, a worker runs mire {ours.mire} on Python"
            f" {ours.python}: install the same on both",
            kind="version_mismatch",
        )
