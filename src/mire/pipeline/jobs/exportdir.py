"""The directory of an export: a commit after the other, each with a note that says what it is.

Owns: the notes, what they say together, and the one step that makes a commit part of the export.
Must not know: what is exported, or why.
Keeps: the files of a commit appear together, by one rename, with their note; what a run that died left never counts.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from pyspark.sql import DataFrame, SparkSession

from mire.edge import clock, files
from mire.edge.turn import open_turn
from mire.errors import FormatError, NotFoundError, shown

Attributes = Literal["json", "variant"]
VERSIONS: Final = "versions"
NOTE: Final = "_mire-export.json"
_STAGING: Final = ".mire-export-"
_LOCK: Final = ".mire-export.lock"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a commit of an export is; or, added up, everything up to one."""

    store: str
    commit: int
    attributes: Attributes
    rows: int
    parts: dict[str, str] = field(default_factory=dict)
    """Parts of the index of which every version is exported, with the fingerprint that each had then."""


def load_past(directory: str) -> Note | None:
    """All notes of an export, added up; None before the first."""
    root = os.path.join(directory, VERSIONS)
    notes = [_load(os.path.join(root, f"commit={commit}", NOTE)) for commit in sorted(_commits(root))]
    if not notes:
        return None
    parts = {name: tag for note in notes for name, tag in note.parts.items()}
    return replace(notes[-1], rows=sum(note.rows for note in notes), parts=parts)


def _commits(root: str) -> Iterator[int]:
    for name in os.listdir(root) if os.path.isdir(root) else ():
        key, _, number = name.partition("=")
        if key == "commit" and number.isdigit():
            yield int(number)


def _load(path: str) -> Note:
    try:
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        if found.pop("version") != _FORMAT:
            raise FormatError(f"{shown(path)} is of a newer mire: upgrade")
        return Note(**found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{shown(path)} cannot be read ({error}): move the directory away, and export anew") from None


@contextmanager
def open_export(directory: str) -> Iterator[None]:
    """A block in which nobody else adds to an export; the directory is made, what dead runs left in it goes."""
    files.make_dirs(os.path.join(directory, VERSIONS))
    lock = os.path.join(directory, _LOCK)
    with open_turn(lock, wait_ms=0.0, what="another export into this directory is at work"):
        for entry in files.list_dir(directory):
            if entry.name.startswith(_STAGING):
                files.remove_tree(os.path.join(directory, entry.name))
        yield


@contextmanager
def open_staging(directory: str) -> Iterator[str]:
    """A place for the files of a commit, which goes unless it was made part of the export: it may fill a disk."""
    staging = os.path.join(directory, f"{_STAGING}{clock.new_uuid()}")
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def publish(directory: str, staging: str, note: Note) -> None:
    """Make a commit part of the export: the note goes in, everything is on disk, one rename."""
    text = json.dumps({"version": _FORMAT, **asdict(note)})
    files.write_file(os.path.join(staging, NOTE), [text.encode()])
    root = os.path.join(directory, VERSIONS)
    with files.mapped(directory):
        for where, _, names in os.walk(staging):
            for name in names:
                with open(os.path.join(where, name), "rb") as file:
                    os.fsync(file.fileno())
            files.sync_dir(where)
        os.rename(staging, os.path.join(root, f"commit={note.commit}"))
    files.sync_dir(root)


def read_rows(spark: SparkSession, directory: str) -> DataFrame:
    """Every row of an export that has some."""
    return spark.read.parquet(os.path.join(directory, VERSIONS))


def read_export(spark: SparkSession, directory: str) -> DataFrame:
    """An export as a table: `commit` says which row of a version is the last one."""
    past = load_past(directory)
    if past is None or not past.rows:
        raise NotFoundError(f"there is no export in {shown(directory)}: 'mire export' makes one")
    return read_rows(spark, directory)
