"""Moving a tenant's files from one part of a store to another: what moves, what is there already, what collides.

Owns: the decision for every path, and the numbers that are shown before and after.
Must not know: whether paths are files or objects, how anything is moved.
Keeps: a path with other content at its target is never moved; what is the same on both sides loses its source only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mire.errors import ConflictError, shown

_PAIRS_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one directory of a datastore contributes."""

    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """What is to be done with every path; each is in one of the three."""

    moves: Mapping[str, int]
    """Paths that move, with their sizes."""
    duplicates: Mapping[str, int]
    """Paths whose bytes are at the target already."""
    collisions: tuple[str, ...]

    @property
    def shares(self) -> dict[str, Share]:
        """The numbers by directory: a duplicate counts, since it leaves its place, too."""
        found: dict[str, Share] = {}
        for rel, size in (*self.moves.items(), *self.duplicates.items()):
            top = rel.partition("/")[0]
            before = found.get(top, Share(files=0, size_bytes=0))
            found[top] = Share(files=before.files + 1, size_bytes=before.size_bytes + size)
        return dict(sorted(found.items()))


def plan_relocation(found: Mapping[str, int], at_target: Mapping[str, bool]) -> Relocation:
    """Decide for every path that was found by what is at its target: nothing (not named), the same, or other bytes."""
    collisions = tuple(sorted(rel for rel in found if at_target.get(rel) is False))
    return Relocation(
        moves={rel: size for rel, size in found.items() if rel not in at_target},
        duplicates={rel: size for rel, size in found.items() if at_target.get(rel) is True},
        collisions=collisions,
    )


def collision_error(rels: Iterable[str], source: str, target: str) -> ConflictError:
    """What is told when two tenants' files would become one: both places of each, before anything was moved."""
    pairs = [(f"{source}{rel}", f"{target}{rel}") for rel in rels]
    told = "; ".join(f"{shown(one)} and {shown(other)}" for one, other in pairs[:_PAIRS_SHOWN])
    more = len(pairs) - _PAIRS_SHOWN
    return ConflictError(
        f"{len(pairs)} cannot be moved, since both places have a file with different content: {told}"
        f"{f' and {more} more' if more > 0 else ''}; nothing was moved: remove or rename one of each pair, then try"
        " again",
        kind="namespace_collision",
        pairs=[list(pair) for pair in pairs],
    )
