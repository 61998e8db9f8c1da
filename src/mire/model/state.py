"""What a cache knows about itself, in the form all clients of the cache share.

Owns: `Sidecar`.
Must not know: JSON, how a member is spelled, what a mark leads to.
Keeps: unknown members of a newer writer travel with the noun.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

FingerprintKind = Literal["etag", "generation"]
ETAG: Final[FingerprintKind] = "etag"
GENERATION: Final[FingerprintKind] = "generation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """The state file of a cache; version 1 knows no more than whether anything is dirty."""

    version: Literal[1, 2] = 2
    kind: FingerprintKind
    """What the fingerprint is; a sidecar of one kind says nothing to a store of the other."""
    fingerprint: str = ""
    last_verified_at: str = ""
    local_dirty: bool = False
    dirty_paths: tuple[str, ...] = ()
    """Relative to the cache, the namespace included."""
    bulk_invalidated: bool = False
    lazy_pull_active: bool = False
    dirty_paths_overflowed: bool | None = None
    last_catalog_hash: str | None = None
    data_key_migrated: bool | None = None
    control_plane_keys_migrated: bool | None = None
    commit_seq: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
