"""What a push is about to say in the index, on record in case it dies before it knows that it was said.

Owns: those records; of what was stored, the records of that serve.
Must not know: how the index is written, what is decided about a path.
Keeps: what we said ourselves is not taken for somebody else's change, however a push ended.
"""

from collections.abc import Iterable
from typing import Final

from mire.flow.place import Place
from mire.flow.unpublished import are_unpublished, forget_unpublished, unpublished_member, unpublished_paths
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.wire.entry import encode_member

_SAID: Final = "said/"
_REMOVED: Final = "-"
_SAYING: Final = "saying"
"""A fact that is there while what was stored may have been said."""


def record_said(place: Place, removals: Iterable[RelPath]) -> None:
    """Put on record that what was stored, and these removals, are about to be said: right before they are."""
    place.state.set_facts({_SAYING: "1", **{f"{_SAID}{rel}": _REMOVED for rel in removals}})


def is_ours(place: Place, rel: RelPath, entry: Entry | None) -> bool:
    """Whether what the index says of a path, None for nothing, is what a push of ours was about to say."""
    said = place.state.fact(f"{_SAID}{rel}")
    if entry is None:
        return said == _REMOVED
    text = encode_member(rel, entry).decode()
    return text in (said, unpublished_member(place, rel))


def said_paths(place: Place) -> list[RelPath]:
    """The paths of which a push of ours said something, and did not come to its end."""
    rels = dict.fromkeys(RelPath(rel) for rel in place.state.facts_below(_SAID))
    if place.state.fact(_SAYING) is not None:
        rels |= dict.fromkeys(unpublished_paths(place))
    return list(rels)


def forget_said(place: Place, stored: Iterable[RelPath], others: Iterable[RelPath]) -> None:
    """Forget the records of paths whose push came to its end: what it stored, and what it only said."""
    rest = list(others)
    place.state.set_facts({f"{_SAID}{rel}": None for rel in rest})
    forget_unpublished(place, [*stored, *rest])
    if not are_unpublished(place):
        place.state.set_facts({_SAYING: None})
