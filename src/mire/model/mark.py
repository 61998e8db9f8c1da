"""Marks: what was, or is about to be, changed in the cache and is not pushed yet.

Owns: `Mark`, `Pending` (all of them at one moment), `Ticket` (a write under way).
Must not know: where marks are kept, what a push does with them.
"""

from dataclasses import dataclass
from typing import Literal

MarkKind = Literal["write", "remove", "unknown"]
"""`unknown` is a mark that another program made: it says that something may have changed, not what."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A file or directory, relative to the cache (namespace included), without a final slash."""

    path: str
    kind: MarkKind
    generation: int
    is_open: bool = False
    """Whether its writer lives and is between begin and done: the bytes may be half of what they will be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Every mark that no push has acknowledged, as of one generation; one per path, the newest kind."""

    epoch: str
    """Which journal this is about: generations of another one mean nothing here."""
    generation: int
    records: tuple[Mark, ...]
    is_bulk: bool
    """Something changed and nobody recorded what: look at everything."""
    is_known: bool
    """False: there is no journal of what happened before. Look at everything, and trust no base."""

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to push."""
        return self.is_known and not self.is_bulk and not self.records


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """A write that began: what `done` needs to end it, also when its records are gone by then."""

    epoch: str
    generation: int
    pid: int
    kinds: tuple[tuple[str, MarkKind], ...]
