"""Open catalogs kept for the next use.

Owns: proving before each use that the file is still the one that was left.
Must not know: what is done with a catalog.
Keeps: a connection whose file was replaced or touched by somebody else is closed, and the file is opened and examined
anew.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from mire.edge.catalog import CatalogFile, open_catalog
from mire.edge.idle import Idle

_idle: Final[Idle[CatalogFile]] = Idle()


@contextmanager
def open_kept(path: str, columns: Sequence[tuple[str, str]]) -> Iterator[CatalogFile]:
    """The catalog at a path, from the idle ones if one can still be believed; kept afterwards unless it failed."""
    found = _idle.take(lambda each: each.path == path, lambda each: each.is_as_left)
    catalog = found or open_catalog(path, columns)
    try:
        yield catalog
    except BaseException:
        catalog.close()
        raise
    if catalog.path is None:
        catalog.close()
        return
    catalog.leave()
    _idle.keep(catalog)


def close_kept(path: str | None = None) -> None:
    """Close the idle connections to a path, or all."""
    _idle.close(lambda catalog: path is None or catalog.path == path)
