"""What of a catalog others see, and when a directory is published again."""

from typing import Any

import pytest

from mire.model.row import COLUMNS, NAMES, RowValues
from mire.plan.publish import CHEAP_MS, is_due, published_rows


def row(version: int, *, latest: bool = False, lifecycle: str = "active") -> RowValues:
    """A row."""
    values: dict[str, Any] = {column: "" if kind == "TEXT" else 0 for column, kind in COLUMNS}
    values |= {"version": version, "is_latest": int(latest), "lifecycle": lifecycle}
    return tuple(values[column] for column in NAMES)


def test_deleted_versions_are_not_published() -> None:
    """The published form cannot say that a version is a deletion, so it must not be there."""
    rows = [row(1), row(2, lifecycle="deleted"), row(3, latest=True)]
    assert published_rows(rows) == [rows[0], rows[2]]


def test_a_name_whose_latest_version_is_a_deletion_is_not_published_at_all() -> None:
    """Tombstones of renames and deletion markers end what others see of a name."""
    assert published_rows([row(1), row(2, latest=True, lifecycle="deleted")]) == []


@pytest.mark.parametrize(
    ("cost_ms", "age_ms", "due"),
    [
        (0, 0, True),
        (CHEAP_MS, 0, True),
        (CHEAP_MS + 1, 0, False),
        (1000, 19_999, False),
        (1000, 20_000, True),
        (1000, -1, True),  # a clock that was set back must not silence us for ever
    ],
)
def test_publishing_takes_a_twentieth_of_the_time_at_most(cost_ms: float, age_ms: float, *, due: bool) -> None:
    """Cheap ones happen at once."""
    assert is_due(cost_ms, age_ms) is due
