"""An index that is looked at again and again: which versions came since.

Owns: what is remembered of the index between two looks, and as little as possible is asked for.
Must not know: batches, offsets, Spark.
Keeps: a version that is in the index and visible is found by some look, once all its shards are there; a shard that
cannot be read, or an index that is gone, changes nothing but that it is told.
"""

from collections.abc import Callable, Iterator
from typing import Final

from mire.edge import pool
from mire.edge.remote import Body, Remote
from mire.errors import FormatError, InputError
from mire.flow.place import META, MONOLITH, SHARDS, fetch, partition_at, shard_key
from mire.flow.reading import AT_ONCE
from mire.flow.scan import key_of
from mire.model.index import Damaged, Entry
from mire.model.row import NameKey
from mire.pipeline.source.names import VERSION, state_of
from mire.pipeline.store import StoreSpec
from mire.pipeline.view import bare_error, check_understood, look_at_index
from mire.plan.source import plan_shards
from mire.plan.write import published_number, visible_numbers
from mire.wire.indextext import IndexText
from mire.wire.layout import DATA, HIGHEST, LATEST
from mire.wire.meta import decode_meta
from mire.wire.monolith import decode_monolith
from mire.wire.shard import SUFFIX, decode_shard

_WHOLE: Final = ""
"""The monolith, as the one shard of an index that has no others."""

Arrived = tuple[str, int | None, list[int]]
"""The directory of a name, its latest version, and the versions above the mark."""


class Watch:
    """One namespace, watched."""

    def __init__(self, spec: StoreSpec, remote: Remote, takes: Callable[[NameKey], bool]) -> None:
        self.spec = spec
        self.commit_seq = 0
        self.damage: list[tuple[str, str]] = []
        """Shards that could not be read since this was last emptied, and why."""
        self._remote = remote
        self._takes = takes
        self._meta_tag: str | None = None
        self._is_sharded = False
        self._bare: str | None = None
        """Why there is no index now, as it was told."""
        self._tags: dict[str, str] = {}
        self._numbers: dict[str, dict[str, set[int]]] = {}
        self._markers: dict[str, dict[str, Entry | Damaged]] = {}

    def look(self) -> None:
        """See what changed. Nothing new costs one request (two beside a monolith)."""
        body = fetch(self._remote, META, self._meta_tag)
        if isinstance(body, Body):
            meta = decode_meta(body.data, META)
            self._is_sharded = meta.version == 2  # noqa: PLR2004 - the generation
            self.commit_seq = meta.commit_seq or 0
            if self._is_sharded:
                self._read_shards(plan_shards(meta.partitions, table="artifacts", wishes=()))
            self._meta_tag = body.stat.fingerprint
        if body is None and not self.has_index:
            check_understood(look_at_index(self._remote))
        is_there = body is not None if self._is_sharded else self._read_monolith()
        if is_there:
            self._bare = None
        else:
            self._look_at_bare()

    def _look_at_bare(self) -> None:
        """Tell, once, of an index that is not there, and wait for it; that nothing ever was there is an error."""
        view = look_at_index(self._remote)
        error = bare_error(self.spec, view)
        if error is None and view.form != "none":
            return
        if error is not None and error.kind != "no_index" and not self.has_index:
            raise error
        why = "the index is gone" if error is None else error.message
        if (error is None and not self.has_index) or self._bare == why:
            return
        # What comes back may be what was there before: it is read again.
        self._bare, self._meta_tag = why, None
        self._tags.pop(_WHOLE, None)
        self.damage.append((META, why))

    def _read_shards(self, listed: tuple[str, ...]) -> None:
        """Read the shards that changed: one listing tells which."""
        there = {
            partition_at(stat.key): stat.fingerprint for stat in self._remote.list(SHARDS) if stat.key.endswith(SUFFIX)
        }
        for name in self._tags.keys() - set(listed):
            self._forget(name)
        changed = [name for name in listed if there.get(name, "") != self._tags.get(name)]
        for name, body in pool.run(lambda each: fetch(self._remote, shard_key(each)), changed, at_once=AT_ONCE):
            if not isinstance(body, Body):
                self._tell(name, "", "it is listed, but not there")
                continue
            try:
                self._take(name, decode_shard(body.data, shard_key(name)), body.stat.fingerprint)
            except (FormatError, InputError) as error:
                self._tell(name, body.stat.fingerprint, error.message)

    def _read_monolith(self) -> bool:
        """See whether the monolith changed; False when there is none."""
        body = fetch(self._remote, MONOLITH, self._tags.get(_WHOLE))
        if isinstance(body, Body):
            for name in set(self._tags):
                self._forget(name)
            self._take(_WHOLE, decode_monolith(body.data), body.stat.fingerprint)
        return body is not None

    def _tell(self, name: str, tag: str, why: str) -> None:
        """A shard that says nothing usable keeps what it said before, until it is another."""
        if self._tags.get(name) != tag:
            self._tags[name] = tag
            self.damage.append((name, why))

    def _forget(self, name: str) -> None:
        for kept in (self._tags, self._numbers, self._markers):
            kept.pop(name, None)

    def _take(self, name: str, text: IndexText, tag: str) -> None:
        numbers: dict[str, set[int]] = {}
        markers: dict[str, Entry | Damaged] = {}
        for rel, entry in text.entries():
            if not rel.startswith(f"{DATA}/"):
                continue
            if rel.endswith((f"/{LATEST}", f"/{HIGHEST}")):
                markers[rel] = entry
            elif (match := VERSION.fullmatch(rel)) is not None and not isinstance(entry, Damaged):
                numbers.setdefault(match[1], set()).add(int(match[2]))
        self._numbers[name], self._markers[name], self._tags[name] = numbers, markers, tag

    def arrived(self, mark_of: Callable[[str], int]) -> Iterator[Arrived]:
        """Visible versions above the marks of their names, in order."""
        all_numbers = self._all_numbers()
        markers = {rel: entry for found in self._markers.values() for rel, entry in found.items()}
        for directory in sorted(all_numbers):
            mark = mark_of(directory)
            numbers = tuple(sorted(all_numbers[directory]))
            if numbers[-1] <= mark:
                continue
            key = key_of(directory, self.spec.namespace)
            if key is None or not self._takes(key):
                continue
            state = state_of(self._remote, markers.get, directory, numbers, is_listed=True)
            visible = visible_numbers(state)
            new = [number for number in visible if number > mark]
            if new:
                yield directory, published_number(state) or visible[-1], new

    def names(self) -> set[str]:
        """The directories of all names that have a version."""
        return set(self._all_numbers())

    @property
    def has_index(self) -> bool:
        """Whether there is an index at all, or was."""
        return self._is_sharded or bool(self._tags) or self._bare is not None

    def is_whole(self) -> bool:
        """Whether everything that counts could be read: only then what is missing is gone."""
        return self._bare is None and not any(name not in self._numbers for name in self._tags)

    def _all_numbers(self) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for numbers in self._numbers.values():
            for directory, some in numbers.items():
                found[directory] = found[directory] | some if directory in found else some
        return found
