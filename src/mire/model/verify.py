"""What a verification finds, as values.

Owns: `Finding` (one thing that is not as it should be) and `Verified` (all of them, with the numbers).
Must not know: how anything is looked at, how it is shown.
"""

from dataclasses import dataclass, field
from typing import Literal

FindingKind = Literal[
    "changed_unmarked",
    "lost",
    "untracked",
    "checksum",
    "metadata",
    "bad_entry",
    "dangling",
    "unlisted",
    "object_differs",
    "object_hash",
    "orphan",
    "marker",
    "list_unreadable",
    "shard_missing",
    "shard_unreadable",
    "shard_unlisted",
    "partition_differs",
    "unreadable",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be, and what to do about it."""

    kind: FindingKind
    path: str
    message: str
    remedy: str
    is_damage: bool = True


@dataclass(slots=True, kw_only=True)
class Verified:
    """What was looked at, and what was found."""

    entries: int = 0
    """What the index lists."""
    here: int = 0
    """Files of the cache, read and compared."""
    size_bytes: int = 0
    unhydrated: int = 0
    unhydrated_bytes: int = 0
    dirty: int = 0
    """Changed here, marked, not pushed."""
    behind: int = 0
    """Changed at the remote since the last pull."""
    objects: int = 0
    """Objects that were looked for at the remote."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_damaged(self) -> bool:
        """Whether something is wrong, and not only noteworthy."""
        return any(finding.is_damage for finding in self.findings)
