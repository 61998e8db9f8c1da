"""What the store holds, by text and by size, from the catalog.

Owns: search over names, tags and types; bytes and versions by type, model or name.
Must not know: how it is shown.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from mire.flow.answer import Answer, Findings
from mire.flow.catalog import Progress, fresh
from mire.flow.datastore import Datastore
from mire.flow.query import record_of
from mire.model.row import NAMES

GROUPS: Final = {
    "type": ("model_type",),
    "model": ("model_type", "model_id"),
    "name": ("model_type", "model_id", "name"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One line of a usage report; `key` is as long as what was grouped by."""

    key: tuple[str, ...]
    names: int
    versions: int
    size_bytes: int


def usage(ds: Datastore, by: str, *, workers: int = 1, progress: Progress | None = None) -> list[Usage]:
    """Names, versions and bytes by type, model or name, largest first."""
    columns = ",".join(GROUPS[by])
    sql = (
        f"SELECT sum(is_latest), count(*), sum(size), {columns} FROM version"  # noqa: S608 - our own column names
        f" GROUP BY {columns} ORDER BY sum(size) DESC, {columns}"
    )
    with fresh(ds, workers=workers, progress=progress) as (catalog, _):
        return [
            Usage(key=tuple(key), names=names, versions=versions, size_bytes=size)
            for names, versions, size, *key in catalog.rows(sql)
        ]


def search(ds: Datastore, text: str, limit: int, *, workers: int = 1, progress: Progress | None = None) -> Answer:
    """Latest versions with every word of a text in their type, id, name or tags; case does not matter."""
    words = text.casefold().split()
    hay = "mire_fold(model_type || ' ' || model_id || ' ' || name || ' ' || tags)"
    where = " AND ".join(f"instr({hay}, ?) > 0" for _ in words) or "1"
    sql = (
        f"SELECT {','.join(NAMES)} FROM version WHERE is_latest = 1 AND {where}"  # noqa: S608 - our own text
        " ORDER BY created_at DESC, model_type, model_id, name LIMIT ?"
    )

    def run(findings: Findings) -> Iterator[Any]:
        with fresh(ds, workers=workers, progress=progress) as (catalog, done):
            findings.notices += done.notices
            for count, values in enumerate(catalog.rows(sql, (*words, limit + 1))):
                if count == limit:
                    findings.is_limited = True
                else:
                    yield record_of(values)

    return Answer(run)
