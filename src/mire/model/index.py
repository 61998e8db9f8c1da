"""The index: what a remote is said to hold, and the list of the shards that say it.

Owns: `Entry` (one object), `Damaged` (an entry that says nothing usable), `Diff`, `Meta` and its `Proof`.
Must not know: JSON, keys of objects, which partition a path is in.
Keeps: unknown members of a newer writer travel with the noun, so a read-modify-write loses nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One stored object, under its rel_path; times are kept as the text they are compared by."""

    size_bytes: int
    last_modified: str
    local_mtime: str | None = None
    sha256: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    """An entry that breaks the format: it is reported and left alone, the rest of its index counts."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What a newer index says otherwise than an older one, by rel_path, in the order of the index."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """With which monolith the partitions are consistent: its fingerprint, or None when nothing is claimed."""

    monolith: str | None
    shards: Mapping[str, str] = field(default_factory=dict)
    """The fingerprint of each partition that says what this monolith says; one that has another proves nothing."""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """The list of partitions: beside a monolith (version 1, in grouping order) or in its place (version 2, sorted)."""

    version: Literal[1, 2]
    partitions: tuple[str, ...] = ()
    commit_seq: int | None = None
    proof: Proof | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
