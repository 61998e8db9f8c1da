"""What was stored at the remote and is not in the index yet: on record, so that a push that was stopped goes on.

Owns: the record of each such object, and of what the index is to say of it.
Must not know: why a push was stopped, what is published.
Keeps: a record says what an object holds, never that it is still there: whoever relies on it looks.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from mire.flow.place import Place
from mire.flow.transfer import Sent, Unpublished
from mire.model.names import RelPath
from mire.wire.entry import encode_member

_FACT: Final = "stored/"
_END: Final = "\n"
"""Between what an object is, and what the index is to say of it; older records have only the first."""
_BATCH: Final = 100
"""Records kept in memory: so many objects, at most, are sent again after a crash."""
Result = TypeVar("Result")


def load_unpublished(place: Place) -> dict[RelPath, Unpublished]:
    """What we stored and did not publish, by path."""
    found: dict[RelPath, Unpublished] = {}
    for rel, text in place.state.facts_below(_FACT).items():
        fingerprint, _, sha256 = text.partition(_END)[0].rpartition(" ")
        found[RelPath(rel)] = Unpublished(fingerprint=fingerprint, sha256=sha256)
    return found


def unpublished_member(place: Place, rel: RelPath) -> str | None:
    """What the index was to say of an object that we stored."""
    text = place.state.fact(f"{_FACT}{rel}")
    return None if text is None else text.partition(_END)[2] or None


def unpublished_paths(place: Place) -> list[RelPath]:
    """The paths of what we stored and did not publish."""
    return [RelPath(rel) for rel in place.state.facts_below(_FACT)]


def are_unpublished(place: Place) -> bool:
    """Whether anything we stored is not published."""
    return place.state.has_facts_below(_FACT)


def recorded(place: Place, results: Iterable[tuple[RelPath, Sent | Result]]) -> Iterator[tuple[RelPath, Sent | Result]]:
    """Results as they come, what was stored put on record; also when their source fails in between."""
    waiting: dict[RelPath, Sent] = {}
    try:
        for rel, result in results:
            if isinstance(result, Sent):
                waiting[rel] = result
            if len(waiting) >= _BATCH:
                _record(place, waiting)
                waiting = {}
            yield rel, result
    finally:
        _record(place, waiting)


def _record(place: Place, sent: Mapping[RelPath, Sent]) -> None:
    if sent:
        place.state.set_facts({f"{_FACT}{rel}": _text(rel, each) for rel, each in sent.items()})


def _text(rel: RelPath, sent: Sent) -> str:
    return f"{sent.fingerprint} {sent.entry.sha256}{_END}{encode_member(rel, sent.entry).decode()}"


def forget_unpublished(place: Place, rels: Iterable[RelPath]) -> None:
    """These are published, or somebody else's by now."""
    place.state.set_facts({f"{_FACT}{rel}": None for rel in rels})
