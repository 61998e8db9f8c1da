"""What a commit writes into an index it has just read: my changes, each only if its path is as it was when decided.

Owns: the merge, and what is lost to somebody who was faster.
Must not know: objects, attempts, which form the index has.
Keeps: nothing but the named paths changes; an upsert or removal decided on one value never touches another.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mire.model.index import Entry
from mire.model.names import RelPath
from mire.plan.threeway import is_equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a push wants to publish; `expected` is the entry each decision was made on (None: there was none)."""

    upserts: Mapping[RelPath, Entry] = field(default_factory=dict)
    removals: frozenset[RelPath] = frozenset()
    expected: Mapping[RelPath, Entry | None] = field(default_factory=dict)

    @property
    def paths(self) -> frozenset[RelPath]:
        """Every path that is to change."""
        return frozenset(self.upserts) | self.removals

    def only(self, paths: frozenset[RelPath]) -> "Changes":
        """The part about some paths."""
        return Changes(
            # By the few, not through all: a push of many shards takes its part for each of them.
            upserts={rel: self.upserts[rel] for rel in paths if rel in self.upserts},
            removals=self.removals & paths,
            expected={rel: self.expected[rel] for rel in paths if rel in self.expected},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """What is to be written now, and what must not be, because its path has another value by now."""

    upserts: Mapping[RelPath, Entry]
    removals: frozenset[RelPath]
    lost: tuple[RelPath, ...]

    @property
    def is_empty(self) -> bool:
        """Whether the index already says all of it."""
        return not self.upserts and not self.removals


def plan_commit(changes: Changes, current: Callable[[RelPath], Entry | None]) -> Merge:
    """Merge changes into an index; what it already says (a commit whose answer was lost) is not written again."""
    upserts: dict[RelPath, Entry] = {}
    removals: set[RelPath] = set()
    lost: list[RelPath] = []
    for rel in sorted(changes.paths):
        found, wanted = current(rel), changes.upserts.get(rel)
        if is_equal(found, wanted):
            continue
        if not is_equal(found, changes.expected.get(rel)):
            lost.append(rel)
        elif wanted is None:
            removals.add(rel)
        else:
            upserts[rel] = wanted
    return Merge(upserts=upserts, removals=frozenset(removals), lost=tuple(lost))
