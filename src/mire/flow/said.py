"""What a push is about to say in the index, on record in case it dies before it knows that it was said.

Owns: those records.
Must not know: how the index is written, what is decided about a path.
Keeps: what we said ourselves is not taken for somebody else's change, however a push ended.
"""

from collections.abc import Iterable
from typing import Final

from mire.flow.place import Place
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.plan.commit import Changes
from mire.wire.entry import encode_member

_SAID: Final = "said/"
_REMOVED: Final = "-"


def record_said(place: Place, changes: Changes) -> None:
    """Put on record what is about to be said, right before it is."""
    texts = {rel: _text(rel, entry) for rel, entry in changes.upserts.items()}
    texts |= dict.fromkeys(changes.removals, _REMOVED)
    place.state.set_facts({f"{_SAID}{rel}": text for rel, text in texts.items()})


def is_ours(place: Place, rel: RelPath, entry: Entry | None) -> bool:
    """Whether what the index says of a path, None for nothing, is what a push of ours was about to say."""
    return place.state.fact(f"{_SAID}{rel}") == _text(rel, entry)


def said_paths(place: Place) -> list[RelPath]:
    """The paths of which a push of ours said something, and did not come to its end."""
    return [RelPath(rel) for rel in place.state.facts_below(_SAID)]


def forget_said(place: Place, rels: Iterable[RelPath]) -> None:
    """Forget the records of paths whose push came to its end."""
    place.state.set_facts({f"{_SAID}{rel}": None for rel in rels})


def _text(rel: RelPath, entry: Entry | None) -> str:
    return _REMOVED if entry is None else encode_member(rel, entry).decode()
