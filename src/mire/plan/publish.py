"""What of a catalog is published, and when a directory is worth publishing again.

Owns: the two rules.
Must not know: where rows are, how they are written.
Keeps: what its name no longer shows is not shown to others: deleted versions, and names that were renamed or deleted.
"""

from collections.abc import Iterable
from typing import Final

from mire.model.row import NAMES, RowValues

CHEAP_MS: Final = 50.0
_SHARE: Final = 20
_LATEST: Final = NAMES.index("is_latest")
_LIFECYCLE: Final = NAMES.index("lifecycle")


def published_rows(rows: Iterable[RowValues]) -> list[RowValues]:
    """Those rows of one name that others see; the published form cannot say that a version is a deletion."""
    found = list(rows)
    if any(row[_LATEST] and row[_LIFECYCLE] != "active" for row in found):
        return []
    return [row for row in found if row[_LIFECYCLE] == "active"]


def is_due(cost_ms: float, age_ms: float) -> bool:
    """Whether to publish again after a write: at once while it is cheap, else for a twentieth of the time at most."""
    return cost_ms <= CHEAP_MS or age_ms < 0 or age_ms >= cost_ms * _SHARE
