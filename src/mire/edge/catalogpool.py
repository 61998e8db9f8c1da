"""Open catalogs kept for the next use: opening one costs more than a lookup in it.

Owns: which connections are idle, and proving before each use that the file is still the one that was left.
Must not know: what is done with a catalog.
Keeps: a connection is used by one caller at a time and never by a forked child; one whose file was replaced or
touched by somebody else is closed, and the file is opened and examined anew.
"""

import atexit
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mire.edge.catalog import CatalogFile, open_catalog

_IDLE_MAX = 8
_guard = threading.Lock()
_idle: list[CatalogFile] = []
_owner_pid = os.getpid()


@contextmanager
def open_kept(path: str, columns: Sequence[tuple[str, str]]) -> Iterator[CatalogFile]:
    """The catalog at a path, from the idle ones if one can still be believed; kept afterwards unless it failed."""
    catalog = _taken(path) or open_catalog(path, columns)
    try:
        yield catalog
    except BaseException:
        catalog.close()
        raise
    _keep(catalog)


def close_kept(path: str | None = None) -> None:
    """Close the idle connections to a path, or all."""
    with _guard:
        _forget_inherited()
        chosen = [catalog for catalog in _idle if path is None or catalog.path == path]
        _idle[:] = [catalog for catalog in _idle if catalog not in chosen]
    for catalog in chosen:
        catalog.close()


def _taken(path: str) -> CatalogFile | None:
    while True:
        with _guard:
            _forget_inherited()
            found = next((catalog for catalog in reversed(_idle) if catalog.path == path), None)
            if found is None:
                return None
            _idle.remove(found)
        if found.is_as_left:
            return found
        found.close()


def _keep(catalog: CatalogFile) -> None:
    if catalog.path is None:
        catalog.close()
        return
    catalog.leave()
    with _guard:
        _forget_inherited()
        _idle.append(catalog)
        surplus = _idle[:-_IDLE_MAX]
        del _idle[:-_IDLE_MAX]
    for each in surplus:
        each.close()


def _forget_inherited() -> None:
    global _owner_pid  # noqa: PLW0603 - the one fact about this process
    if _owner_pid != os.getpid():
        # A child must not even close its parent's connections: that would drop the parent's locks on the file.
        _inherited.extend(_idle)
        _idle.clear()
        _owner_pid = os.getpid()


_inherited: list[CatalogFile] = []
atexit.register(close_kept)
