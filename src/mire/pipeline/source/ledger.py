"""What a stream has read, kept beside its checkpoint: an offset is small, and says where to look here.

Owns: the files of one stream, `batch-N-PLAN` (what batch N is made of) and `state-N` (everything read up to batch N).
Must not know: how new versions are found, Spark.
Keeps: a batch is on record before its offset is known to anybody, under a name of its own, so that it can be read again
as it was, whatever another driver plans; no file that an offset may still ask for is removed.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from mire.edge import process
from mire.edge.remote import Remote
from mire.errors import ConfigError, FormatError, NotFoundError, shown
from mire.model.config import Config, Filesystem
from mire.pipeline.source.names import home_of
from mire.pipeline.source.place import address_of
from mire.pipeline.store import open_spec, spec_at
from mire.plan.address import parse_target

_WHAT: Final = "option 'stateLocation'"
_STATE: Final = "state-"
_BATCH: Final = "batch-"

Damage = tuple[str, str | None, str]
"""Namespace, the directory of the name it is about (None: not of one name), and what is wrong."""
Read = TypeVar("Read")


class Seen:
    """The highest version that was read of each name, by namespace and the partition that lists the name."""

    def __init__(self, marks: Iterable[tuple[str, str, int]] = ()) -> None:
        self._marks: dict[str, dict[str, dict[str, int]]] = {}
        for space, directory, number in marks:
            self.note(space, directory, number)

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """Namespace, directory and number of every name."""
        for space, partitions in self._marks.items():
            for names in partitions.values():
                yield from ((space, directory, number) for directory, number in names.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen) and self._marks == other._marks

    __hash__ = None  # type: ignore[assignment]  # it changes

    def mark_of(self, space: str, directory: str) -> int:
        """The highest version of a name that was read; 0 for none."""
        return self.of(space).get(home_of(directory), {}).get(directory, 0)

    def of(self, space: str) -> Mapping[str, Mapping[str, int]]:
        """All names of a namespace, by partition."""
        return self._marks.get(space, {})

    def note(self, space: str, directory: str, number: int) -> None:
        """Take note that a version was read."""
        names = self._marks.setdefault(space, {}).setdefault(home_of(directory), {})
        names[directory] = max(number, names.get(directory, 0))

    def forget(self, space: str, directory: str) -> None:
        """A name that is gone may begin again at 1."""
        partitions, home = self._marks.get(space, {}), home_of(directory)
        partitions.get(home, {}).pop(directory, None)
        if not partitions.get(home, True):
            del partitions[home]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one batch reads: versions by name, names that are gone or passed over, and what is damaged."""

    items: list[tuple[str, str, int | None, list[int]]] = field(default_factory=list)
    """Namespace, directory, its latest version, and the versions to read."""
    gone: list[tuple[str, str]] = field(default_factory=list)
    passed: list[tuple[str, str, int]] = field(default_factory=list)
    """Namespace, directory, and the version up to which nothing is read."""
    damage: list[Damage] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.items or self.gone or self.passed or self.damage)

    def apply(self, seen: Seen) -> None:
        """Take note that the batch was read."""
        for space, directory in self.gone:
            seen.forget(space, directory)
        for space, directory, number in self.passed:
            seen.note(space, directory, number)
        for space, directory, _, numbers in self.items:
            seen.note(space, directory, max(numbers, default=0))


class Point(NamedTuple):
    """A place in a stream: how many batches there were, and the plan that the last of them was read by."""

    batch: int
    plan: str


def open_location(text: str | None) -> Remote:
    """The place where streams keep their state."""
    if text is None:
        raise ConfigError(
            f"a stream needs {_WHAT}: a directory or store where it keeps what it has read, for as long as the"
            " checkpoint; a place beside the checkpoint is best"
        )
    here = os.getcwd()
    target = parse_target(address_of(text), repo_dir=here, environ=process.environ(), what=f"{_WHAT} of format 'mire'")
    if isinstance(target, Filesystem):
        os.makedirs(target.path, exist_ok=True)
    return open_spec(spec_at(Config(target=target, origin=_WHAT), repo_dir=here))


class Ledger:
    """The files of one stream."""

    def __init__(self, remote: Remote, stream: str) -> None:
        self._remote = remote
        self.stream = stream

    def save_batch(self, point: Point, batch: Batch, *, after: str) -> None:
        """Put a batch on record, and by which plan the one before it was read."""
        self._save(_batch_name(point), {"after": after, **asdict(batch)})

    def load_batches(self, number: int, end: Point) -> list[Batch]:
        """The batches behind a number up to a point, as they were put on record."""
        found: list[Batch] = []
        while end.batch > number:
            batch, after = self._load(_batch_name(end), _batch_of)
            found.append(batch)
            end = Point(end.batch - 1, after)
        return found[::-1]

    def save_state(self, number: int, seen: Seen) -> None:
        """Put on record everything that was read up to a batch."""
        self._save(f"{_STATE}{number}", list(seen))

    def load_state(self, point: Point) -> tuple[Seen, int]:
        """Everything that was read up to a point, and how old the record is that this was made from."""
        if point.batch == 0:
            return Seen(), 0
        base = max((each for each in self._files()[_STATE] if each <= point.batch), default=0)
        seen = self._load(f"{_STATE}{base}", _seen_of) if base else Seen()
        for batch in self.load_batches(base, point):
            batch.apply(seen)
        return seen, base

    def trim(self, committed: int) -> None:
        """Remove what no offset from here on can ask for, plans that came to nothing included."""
        files = self._files()
        base = max((each for each in files[_STATE] if each <= committed), default=None)
        if base is not None:
            stale = [name for number, names in files[_STATE].items() if number < base for name in names]
            stale += [name for number, names in files[_BATCH].items() if number <= base for name in names]
            for name in stale:
                self._remote.delete(f"{self.stream}/{name}")

    def _files(self) -> dict[str, dict[int, list[str]]]:
        """The files there are, by kind and number."""
        found: dict[str, dict[int, list[str]]] = {_STATE: {}, _BATCH: {}}
        for stat in self._remote.list(f"{self.stream}/"):
            name = stat.key.rpartition("/")[2]
            kind, _, rest = name.partition("-")
            number = rest.partition("-")[0]
            if number.isdecimal() and f"{kind}-" in found:
                found[f"{kind}-"].setdefault(int(number), []).append(name)
        return found

    def _save(self, name: str, document: object) -> None:
        self._remote.put(f"{self.stream}/{name}", json.dumps(document, separators=(",", ":")).encode())

    def _load(self, name: str, make: Callable[[Any], Read]) -> Read:
        key = f"{self.stream}/{name}"
        try:
            return make(json.loads(self._remote.get(key).data))
        except NotFoundError:
            raise NotFoundError(
                f"{shown(key)} is gone from {self._remote.properties.name}: it lives as long as the checkpoint; begin"
                " again with a new checkpoint",
                kind="no_state",
            ) from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise FormatError(
                f"{shown(key)} of a stream's state is damaged: bring it back, or begin with a new checkpoint"
            ) from None


def _batch_name(point: Point) -> str:
    return f"{_BATCH}{point.batch}-{point.plan}"


def _batch_of(found: Any) -> tuple[Batch, str]:
    batch = Batch(
        items=[(space, name, latest, [*map(int, numbers)]) for space, name, latest, numbers in found["items"]],
        gone=[(space, name) for space, name in found["gone"]],
        passed=[(space, name, int(number)) for space, name, number in found["passed"]],
        damage=[(space, name, why) for space, name, why in found["damage"]],
    )
    return batch, str(found["after"])


def _seen_of(found: Any) -> Seen:
    return Seen((space, name, int(mark)) for space, name, mark in found)
