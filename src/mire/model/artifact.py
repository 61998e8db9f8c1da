"""An artifact version: who owns it, what it is, and what the store knows about the name it stands under.

Owns: `Owner`, `Metadata`, `NameState`.
Must not know: YAML, paths, files.
Keeps: unknown members of a newer writer travel with the noun, so a read-modify-write loses nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mire.errors import InputError, shown
from mire.model.instant import Instant
from mire.model.lifetime import Lifetime, VersionPolicy
from mire.model.names import DataName, ModelId, ModelType, Uuid, Version

OWNER_TYPES: Final = ("model-method", "workflow-step", "manual")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The producer of a name. Two owners are the same when type and ref are equal."""

    owner_type: str
    owner_ref: str
    definition_hash: str | None = None
    workflow_id: Uuid | None = None
    workflow_run_id: Uuid | None = None
    workflow_name: str | None = None
    job_name: str | None = None
    step_name: str | None = None
    source: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def is_same_producer(self, other: "Owner") -> bool:
        """Whether both may write the same name; the definition hash is not compared."""
        return (self.owner_type, self.owner_ref) == (other.owner_type, other.owner_ref)

    def __str__(self) -> str:
        return f"{self.owner_type}:{self.owner_ref}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What is known about one version of one name."""

    id: Uuid
    name: DataName
    version: Version
    content_type: str
    lifetime: Lifetime
    version_policy: VersionPolicy
    streaming: bool
    tags: Mapping[str, str]
    owner: Owner
    created_at: Instant
    size_bytes: int | None = None
    checksum: str | None = None
    is_deleted: bool = False
    renamed_to: DataName | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_active(self) -> bool:
        """Whether the version is data, not a tombstone or a deletion marker."""
        return not self.is_deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRef:
    """One model instance: a normalized type and an id."""

    model_type: ModelType
    model_id: ModelId

    def __str__(self) -> str:
        return f"{self.model_type}/{self.model_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Highest:
    """The highest number ever given out when its directory is gone; `floor`: all up to here were deleted.

    The floor counts only where there is no `latest`.
    """

    number: int
    floor: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NameState:
    """What a look into a name's directory showed; `numbers` are its version directories, finished or not."""

    numbers: tuple[int, ...] = ()
    taken: int = 0
    marker: int | None = None
    highest: Highest = Highest(number=0)


def parse_owner(text: str) -> Owner:
    """An owner from `TYPE:REF`, as the command line writes it."""
    owner_type, colon, owner_ref = text.partition(":")
    if not colon or not owner_ref.strip() or owner_type not in OWNER_TYPES:
        raise InputError(
            f"owner {shown(text)} is invalid: write TYPE:REF with TYPE one of {', '.join(OWNER_TYPES)}",
            kind="bad_owner",
            value=shown(text),
        )
    return Owner(owner_type=owner_type, owner_ref=owner_ref)
