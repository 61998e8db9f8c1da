"""Whose private state a cache has, without opening it for use: that would bind it anew.

Owns: reading single facts of a state file.
Must not know: what else is in it.
Keeps: nothing is written; a file that cannot be read belongs to nobody.
"""

import sqlite3
from contextlib import closing
from urllib.parse import quote

from mire.edge.state import state_path


def bound_to(cache: str) -> str | None:
    """The remote and namespace that the state of a cache is about; None when there is none, or it is damaged."""
    try:
        with closing(sqlite3.connect(f"file:{quote(state_path(cache))}?mode=ro", uri=True)) as connection:
            row = connection.execute("SELECT value FROM meta WHERE key='identity'").fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])


def has_marks(cache: str) -> bool:
    """Whether the state of a cache has marks; True when that cannot be told."""
    try:
        with closing(sqlite3.connect(f"file:{quote(state_path(cache))}?mode=ro", uri=True)) as connection:
            bulk = connection.execute("SELECT value FROM meta WHERE key='bulk'").fetchone()
            return bool(bulk and bulk[0]) or connection.execute("SELECT 1 FROM mark LIMIT 1").fetchone() is not None
    except sqlite3.Error:
        return True
