"""What was stored at the remote and is not in the index yet: on record, so that a push that was stopped goes on.

Owns: the record of each such object.
Must not know: why a push was stopped, what is published.
Keeps: a record says what an object holds, never that it is still there: whoever relies on it looks.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from mire.flow.place import Place
from mire.flow.transfer import Sent, Unpublished
from mire.model.names import RelPath

_FACT: Final = "stored/"
_BATCH: Final = 100
"""Records kept in memory: so many objects, at most, are sent again after a crash."""
Result = TypeVar("Result")


def load_unpublished(place: Place) -> dict[RelPath, Unpublished]:
    """What we stored and did not publish, by path."""
    found: dict[RelPath, Unpublished] = {}
    for rel, text in place.state.facts_below(_FACT).items():
        fingerprint, _, sha256 = text.rpartition(" ")
        found[RelPath(rel)] = Unpublished(fingerprint=fingerprint, sha256=sha256)
    return found


def recorded(place: Place, results: Iterable[tuple[RelPath, Sent | Result]]) -> Iterator[tuple[RelPath, Sent | Result]]:
    """Results as they come, what was stored put on record; also when their source fails in between."""
    waiting: dict[str, str | None] = {}
    try:
        for rel, result in results:
            if isinstance(result, Sent):
                waiting[f"{_FACT}{rel}"] = f"{result.fingerprint} {result.entry.sha256}"
            if len(waiting) >= _BATCH:
                _keep(place, waiting)
            yield rel, result
    finally:
        _keep(place, waiting)


def _keep(place: Place, waiting: dict[str, str | None]) -> None:
    facts: Mapping[str, str | None] = dict(waiting)
    waiting.clear()
    if facts:
        place.state.set_facts(facts)


def forget_unpublished(place: Place, rels: Iterable[RelPath]) -> None:
    """These are published, or somebody else's by now."""
    place.state.set_facts({f"{_FACT}{rel}": None for rel in rels})
