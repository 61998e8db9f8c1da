"""Deletions of ours that are published: remembered for a while, so that a peer who undoes one is noticed.

Owns: the record of each deletion, and what is done when exactly what was deleted is listed again.
Must not know: who listed it: older programs push every file they have.
Keeps: a file that was written after the deletion stands, whatever it holds. A deletion is repeated at most once, and
not before the bytes that came back are kept beside the cache.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from mire.edge import clock
from mire.errors import InputError, MireError, NotFoundError
from mire.flow.apply import Pulled, Step
from mire.flow.conflict import Conflict, keep_theirs
from mire.flow.local import agreed_row, tier_path
from mire.flow.mark import marking
from mire.flow.place import Place
from mire.model.index import Entry
from mire.model.instant import datetime_of, parse_instant
from mire.model.names import RelPath

_FACT: Final = "deleted/"
_KEPT_MS: Final = 24 * 3_600_000
_MOST: Final = 10_000
"""Records at most: who deletes that much looks at it himself."""
_SKEW_MS: Final = 60_000
"""How far clocks may be apart: a file that may be newer than the deletion was written on purpose."""
_REPEATED: Final = "repeated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """A published deletion: of which value, when, and whether it was repeated already."""

    size_bytes: int
    sha256: str
    deleted_ms: int
    is_repeated: bool

    def is_undone_by(self, entry: Entry) -> bool:
        """Whether an entry is what was deleted, in a file older than the deletion: a stale copy, not a new file."""
        is_same = (self.size_bytes, self.sha256) == (entry.size_bytes, entry.sha256)
        try:
            mtime = datetime_of(parse_instant(entry.local_mtime))
        except InputError:
            return False
        return is_same and not self.is_repeated and mtime.timestamp() * 1000 + _SKEW_MS < self.deleted_ms


def load_deleted(place: Place) -> dict[RelPath, Deleted]:
    """The deletions of the last day."""
    now_ms = clock.now_ns() // 1_000_000
    found: dict[RelPath, Deleted] = {}
    for rel, text in place.state.facts_below(_FACT).items():
        size, sha256, deleted_ms, *more = text.split()
        if 0 <= now_ms - int(deleted_ms) < _KEPT_MS:
            found[RelPath(rel)] = Deleted(
                size_bytes=int(size), sha256=sha256, deleted_ms=int(deleted_ms), is_repeated=more == [_REPEATED]
            )
    return found


def record_deleted(place: Place, gone: Mapping[RelPath, Entry | None]) -> None:
    """Remember deletions that were published, each by the value that was deleted."""
    values = {rel: (entry.size_bytes, entry.sha256) for rel, entry in gone.items() if entry and entry.sha256}
    if not values:
        return
    known, now_ms = load_deleted(place), clock.now_ns() // 1_000_000
    facts: dict[str, str | None] = dict.fromkeys(
        f"{_FACT}{rel}" for rel in place.state.facts_below(_FACT) if rel not in known
    )
    if len(known) + len(values) <= _MOST:
        for rel, (size, sha256) in values.items():
            before = known.get(rel)
            is_again = before is not None and (before.size_bytes, before.sha256) == (size, sha256)
            facts[f"{_FACT}{rel}"] = f"{size} {sha256} {now_ms}{f' {_REPEATED}' if is_again else ''}"
    place.state.set_facts(facts)


def repeat_deletions(place: Place, steps: Iterable[Step], done: Pulled) -> None:
    """Let the next push delete again what came back, and keep its bytes."""
    for step in steps:
        assert step.entry is not None  # noqa: S101 - by the plan
        try:
            kept = keep_theirs(place, step.rel, step.entry)
        except NotFoundError:
            done.leave(step.rel, "is listed again after it was deleted here, but its object is not there")
            done.in_flight[step.rel] = step.entry
            continue
        except MireError as error:
            done.leave(step.rel, f"is listed again after it was deleted here, and could not be kept: {error.message}")
            continue
        place.state.agree([agreed_row(step.rel, step.entry, None, looked_ns=0, partition=step.partition)])
        now_ms = clock.now_ns() // 1_000_000
        text = f"{step.entry.size_bytes} {step.entry.sha256} {now_ms} {_REPEATED}"
        place.state.set_facts({f"{_FACT}{step.rel}": text})
        with marking(place.ds, removing=[tier_path(place.ds, step.rel)]):
            pass
        why = "was deleted here, and somebody listed it again as it was: the next push deletes it once more"
        done.repeated.append(Conflict(rel=step.rel, why=why, theirs=kept.path))
