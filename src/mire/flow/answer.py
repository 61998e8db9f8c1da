"""An answer: rows that are read when they are asked for.

Owns: running a query once or row by row, and handing its rows to other packages.
Must not know: how rows are found.
Keeps: what was asked is checked before there is an answer; iterating holds one row at a time.
"""

import importlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mire.errors import ConfigError


@dataclass(slots=True)
class Findings:
    """What a run of a query tells besides its rows; complete when the run is."""

    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    is_limited: bool = False
    cursor: str | None = None


class Answer:
    """The rows of a query. Iterating reads them one by one, anew each time; the rest reads them once and keeps them."""

    def __init__(self, run: Callable[[Findings], Iterator[Any]]) -> None:
        self._run = run
        self._rows: list[Any] | None = None
        self._findings = Findings()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows) if self._rows is not None else self._run(Findings())

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index]

    @property
    def rows(self) -> list[Any]:
        """All rows, in memory: records, or what was selected."""
        if self._rows is None:
            findings = Findings()
            self._rows = list(self._run(findings))
            self._findings = findings
        return self._rows

    @property
    def problems(self) -> list[str]:
        """Rows that could not be judged, and why (the first twenty)."""
        return self._all().problems

    @property
    def notices(self) -> list[str]:
        """What had to be done to answer that is worth telling."""
        return self._all().notices

    @property
    def is_limited(self) -> bool:
        """Whether there are more rows than the limit let through."""
        return self._all().is_limited

    @property
    def cursor(self) -> str | None:
        """What to ask with for the rows after these; None when these are the last."""
        return self._all().cursor

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table` (needs pyarrow); maps and parsed content become JSON text."""
        return _needed("pyarrow").Table.from_pylist([_flat(row) for row in self.rows])

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame` (needs pandas)."""
        return _needed("pandas").DataFrame.from_records([_flat(row) for row in self.rows])

    def _all(self) -> Findings:
        self.rows  # noqa: B018 - a run is complete when its rows are
        return self._findings


def _needed(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise ConfigError(f"this needs the package {package}: install it beside mire", kind="missing_package") from None


def _flat(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        return {"value": row}
    return {
        key: json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
        for key, value in row.items()
    }
