"""Holds: which versions of a name no retention run may remove, and who said so.

Owns: `NameHold` (one statement) and `Holds` (all of a name).
Must not know: JSON, files, what would be removed.
Keeps: unknown members of a newer writer travel with the noun.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mire.model.instant import Instant
from mire.model.names import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class NameHold:
    """One version that is held, or with `version` None the whole name, later versions included."""

    version: Version | None
    by: str
    at: Instant
    reason: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """What is held of one name; at most one statement for each version and one for the whole."""

    items: tuple[NameHold, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_whole_name(self) -> bool:
        """Whether everything under the name is held."""
        return any(item.version is None for item in self.items)

    @property
    def versions(self) -> tuple[int, ...]:
        """The numbers held one by one, ascending."""
        return tuple(sorted(item.version for item in self.items if item.version is not None))

    def is_held(self, version: int) -> bool:
        """Whether a version may not go."""
        return any(item.version in (None, version) for item in self.items)

    def of(self, version: int | None) -> NameHold | None:
        """The statement about exactly this version, or about the whole name."""
        return next((item for item in self.items if item.version == version), None)

    def with_hold(self, hold: NameHold) -> "Holds":
        """One more statement; it takes the place of an earlier one about the same version."""
        before = self.of(hold.version)
        kept = hold if before is None else replace(hold, extra={**before.extra, **hold.extra})
        return replace(self, items=(*self._without(hold.version), kept))

    def without(self, version: int | None) -> "Holds":
        """One statement less."""
        return replace(self, items=self._without(version))

    def _without(self, version: int | None) -> tuple[NameHold, ...]:
        return tuple(item for item in self.items if item.version != version)


NO_HOLDS: Final = Holds()
