"""What a stream has read, kept beside its checkpoint: an offset is small, and says where to look here.

Owns: the files of one stream, `batch-N` (what batch N is made of) and `state-N` (everything read up to batch N).
Must not know: how new versions are found, Spark.
Keeps: a batch is on record before its offset is known to anybody, so that it can be read again as it was; no file that
an offset may still ask for is removed.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from mire.edge import process
from mire.edge.remote import Remote
from mire.errors import ConfigError, FormatError, NotFoundError, shown
from mire.model.config import Config, Filesystem
from mire.pipeline.source.place import address_of
from mire.pipeline.store import open_spec, spec_at
from mire.plan.address import parse_target

_WHAT: Final = "option 'stateLocation'"
_STATE: Final = "state-"
_BATCH: Final = "batch-"

Seen = dict[tuple[str, str], int]
"""By namespace and directory of a name: the highest version that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one batch reads: versions by name, names that are gone, and shards that cannot be read."""

    items: list[tuple[str, str, int | None, list[int]]] = field(default_factory=list)
    """Namespace, directory, its latest version, and the versions to read."""
    gone: list[tuple[str, str]] = field(default_factory=list)
    damage: list[tuple[str, str, str]] = field(default_factory=list)
    """Namespace, partition, and why it is skipped."""

    def apply(self, seen: Seen) -> None:
        """Take note that the batch was read."""
        for space, directory in self.gone:
            seen.pop((space, directory), None)
        for space, directory, _, numbers in self.items:
            if numbers:
                seen[space, directory] = max(numbers[-1], seen.get((space, directory), 0))


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

    def save_batch(self, number: int, batch: Batch) -> None:
        """Put a batch on record."""
        self._save(f"{_BATCH}{number}", {"items": batch.items, "gone": batch.gone, "damage": batch.damage})

    def load_batch(self, number: int) -> Batch:
        """A batch as it was put on record."""
        found = self._load(f"{_BATCH}{number}")
        return Batch(
            items=[(space, name, latest, numbers) for space, name, latest, numbers in found["items"]],
            gone=[(space, name) for space, name in found["gone"]],
            damage=[(space, name, why) for space, name, why in found["damage"]],
        )

    def save_state(self, number: int, seen: Seen) -> None:
        """Put on record everything that was read up to a batch."""
        self._save(f"{_STATE}{number}", [[space, name, mark] for (space, name), mark in seen.items()])

    def load_state(self, number: int) -> tuple[Seen, int]:
        """Everything that was read up to a batch, and how old the record is that this was made from."""
        states, _ = self._numbers()
        base = max((each for each in states if each <= number), default=0)
        found = self._load(f"{_STATE}{base}") if base in states else []
        seen: Seen = {(space, name): mark for space, name, mark in found}
        for each in range(base + 1, number + 1):
            self.load_batch(each).apply(seen)
        return seen, base

    def trim(self, committed: int) -> None:
        """Remove what no offset from here on can ask for."""
        states, batches = self._numbers()
        base = max((each for each in states if each <= committed), default=None)
        if base is not None:
            self._remove(_STATE, (each for each in states if each < base))
            self._remove(_BATCH, (each for each in batches if each <= base))

    def _numbers(self) -> tuple[list[int], list[int]]:
        states, batches = list[int](), list[int]()
        for stat in self._remote.list(f"{self.stream}/"):
            name = stat.key.rpartition("/")[2]
            for prefix, found in ((_STATE, states), (_BATCH, batches)):
                if name.startswith(prefix) and name.removeprefix(prefix).isdigit():
                    found.append(int(name.removeprefix(prefix)))
        return states, batches

    def _remove(self, prefix: str, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._remote.delete(f"{self.stream}/{prefix}{number}")

    def _save(self, name: str, document: object) -> None:
        self._remote.put(f"{self.stream}/{name}", json.dumps(document, separators=(",", ":")).encode())

    def _load(self, name: str) -> Any:
        key = f"{self.stream}/{name}"
        try:
            return json.loads(self._remote.get(key).data)
        except NotFoundError:
            raise NotFoundError(
                f"{shown(key)} is gone from {self._remote.properties.name}: it lives as long as the checkpoint; begin"
                " again with a new checkpoint",
                kind="no_state",
            ) from None
        except ValueError:
            raise FormatError(f"{shown(key)} of a stream's state is no JSON: begin with a new checkpoint") from None
