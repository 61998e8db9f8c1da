"""An index that is looked at again and again: which versions came since.

Owns: what is remembered of the index between two looks, and as little as possible is asked for, kept and gone through.
Must not know: batches, offsets, Spark.
Keeps: a version that is in the index and visible is found by some look, once all its shards are there; what cannot be
read, or an index that is gone, is told, and waited for. A name of which nothing is new costs nothing until its shard is
another.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from mire.edge import pool
from mire.edge.remote import Body, Remote
from mire.errors import FormatError, InputError, shown
from mire.flow.place import META, MONOLITH, SHARDS, fetch, partition_at, shard_key
from mire.flow.reading import AT_ONCE
from mire.flow.scan import key_of
from mire.model.artifact import NameState
from mire.model.row import NameKey
from mire.pipeline.source.names import VERSION, VERSION_END, Said, home_of, marker_home_of, state_of
from mire.pipeline.store import StoreSpec
from mire.pipeline.view import bare_error, check_understood, look_at_index
from mire.plan.source import Wish, plan_shards
from mire.plan.write import published_number, visible_numbers
from mire.wire.indextext import IndexText
from mire.wire.layout import DATA, HIGHEST, LATEST
from mire.wire.meta import decode_meta
from mire.wire.monolith import decode_monolith
from mire.wire.relpath import check_rel
from mire.wire.shard import SUFFIX, decode_shard

_WHOLE: Final = ""
"""The monolith, as the one shard of an index that has no others."""

Arrived = tuple[str, int | None, list[int]]
"""The directory of a name, its latest version, and the versions above the mark."""
_Names = dict[str, tuple[int, ...]]
"""Names by directory, with the numbers of the versions that are listed."""


class Watch:
    """One namespace, watched."""

    def __init__(
        self, spec: StoreSpec, remote: Remote, takes: Callable[[NameKey], bool], wishes: Collection[Wish] = ()
    ) -> None:
        self.spec = spec
        self.commit_seq = 0
        self.damage: list[tuple[str | None, str]] = []
        """What could not be read since this was last emptied: of which name (None: of a shard), and why."""
        self._remote = remote
        self._takes = takes
        self._wishes = wishes
        self._meta_tag: str | None = None
        self._is_sharded = False
        self._bare: str | None = None
        """Why there is no index now, as it was told."""
        self._tags: dict[str, str] = {}
        self._broken: set[str] = set()
        """Shards that cannot be read; what they said before still counts."""
        self._open: dict[str, _Names] = {}
        """By shard: names that may have something new, with what is listed of them there."""
        self._strays: dict[str, _Names] = {}
        """By shard: names that belong to another."""
        self._texts: dict[str, Mapping[str, Said]] = {}
        """What shards say of markers, from when they are read until all open names are gone through."""
        self._states: dict[str, NameState | FormatError] = {}
        """What markers say of open names, as they were gone through."""
        self._told: dict[str, str] = {}
        self._read: dict[str, Collection[str]] = {}
        """By shard: the names that were listed when it was read, since it was last asked what is gone."""
        self._listed: frozenset[str] | None = None
        """All shards there are; None when that is as it was when it was last asked what is gone."""

    def look(self, at_once: int = AT_ONCE) -> None:
        """See what changed. Nothing new costs one request (two beside a monolith)."""
        body = fetch(self._remote, META, self._meta_tag)
        if isinstance(body, Body):
            with _rebuildable():
                meta = decode_meta(body.data, META)
            self._is_sharded = meta.version == 2  # noqa: PLR2004 - the generation
            self.commit_seq = meta.commit_seq or 0
            if self._is_sharded:
                self._read_shards(meta.partitions, at_once)
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
        self.damage.append((None, why))

    def _read_shards(self, listed: tuple[str, ...], at_once: int) -> None:
        """Read the shards that changed: one listing tells which."""
        there = {
            partition_at(stat.key): stat.fingerprint for stat in self._remote.list(SHARDS) if stat.key.endswith(SUFFIX)
        }
        self._listed = frozenset(listed)
        wanted = self._wanted(self._listed)
        for name in self._tags.keys() - wanted:
            self._forget(name)
        changed = [name for name in wanted if there.get(name, "") != self._tags.get(name)]
        for name, body in pool.run(lambda each: fetch(self._remote, shard_key(each)), changed, at_once=at_once):
            if isinstance(text := self._understood(name, body), IndexText):
                self._take(name, text)
        for some in self._strays.values():
            for directory in some:
                self._open.setdefault(home_of(directory), {}).setdefault(directory, ())
        self._reopen({*changed} - self._broken)

    def _wanted(self, listed: Collection[str]) -> set[str]:
        """The shards that count: those of wanted models, and of their markers."""
        markers = {marker_home_of(f"{DATA}/{wish.prefix}name") for wish in self._wishes if wish.model_id is not None}
        return {*plan_shards(listed, table="artifacts", wishes=self._wishes), *(markers & set(listed))}

    def _understood(self, name: str, body: object) -> IndexText | None:
        """A shard that was fetched; one that says nothing usable is told once, until it is another."""
        tag, why = "", "it is listed, but not there"
        if isinstance(body, Body):
            tag = body.stat.fingerprint
            try:
                text = decode_shard(body.data, shard_key(name))
            except (FormatError, InputError) as error:
                why = error.message
            else:
                self._tags[name] = tag
                self._broken.discard(name)
                return text
        if name not in self._broken or self._tags.get(name) != tag:
            self._tags[name] = tag
            self._broken.add(name)
            self.damage.append((None, f"the shard {shown(name)} of the index is skipped: {why}"))
        return None

    def _read_monolith(self) -> bool:
        """See whether the monolith changed; False when there is none."""
        body = fetch(self._remote, MONOLITH, self._tags.get(_WHOLE))
        if isinstance(body, Body):
            with _rebuildable():
                text = decode_monolith(body.data)
            for name in set(self._tags):
                self._forget(name)
            self._tags[_WHOLE] = body.stat.fingerprint
            self._take(_WHOLE, text)
            self._states.clear()
        return body is not None

    def _forget(self, name: str) -> None:
        self._broken.discard(name)
        for kept in (self._tags, self._open, self._strays, self._texts, self._read):
            kept.pop(name, None)

    def _take(self, name: str, text: IndexText) -> None:
        found: dict[str, list[int]] = {}
        for rel in text.ending(VERSION_END):
            match = VERSION.fullmatch(rel)
            if match is not None and check_rel(rel) is None:
                found.setdefault(match[1], []).append(int(match[2]))
        names: _Names = {directory: tuple(sorted(found[directory])) for directory in sorted(found)}
        strays = {each: names.pop(each) for each in tuple(names) if self._home(each) != name}
        self._read[name] = frozenset(names)
        self._open[name] = names
        self._strays.pop(name, None)
        if strays:
            self._strays[name] = strays
        self._texts[name] = text if text.ending(f"/{LATEST}") or text.ending(f"/{HIGHEST}") else {}

    def _reopen(self, changed: Collection[str]) -> None:
        """Have open names gone through in order, and those whose markers were read again told anew."""
        self._open = dict(sorted(self._open.items()))
        for directory in [each for each in self._states if marker_home_of(each) in changed]:
            del self._states[directory]

    def _home(self, directory: str) -> str:
        return home_of(directory) if self._is_sharded else _WHOLE

    def _marker_home(self, directory: str) -> str:
        return marker_home_of(directory) if self._is_sharded else _WHOLE

    def arrived(self, mark_of: Callable[[str], int]) -> Iterator[Arrived]:
        """Visible versions above the marks of their names."""
        for name in tuple(self._open):
            names = self._open[name]
            for directory in tuple(names):
                mark, numbers = mark_of(directory), self._numbers(directory, names[directory])
                if not numbers or numbers[-1] <= mark or not self._is_wanted(directory):
                    del names[directory]
                    self._states.pop(directory, None)
                    self._told.pop(directory, None)
                elif (state := self._state(directory, numbers)) is not None:
                    visible = visible_numbers(state)
                    new = [number for number in visible if number > mark]
                    if new:
                        yield directory, published_number(state) or visible[-1], new
            if not names:
                del self._open[name]
        self._texts.clear()

    def _numbers(self, directory: str, listed: tuple[int, ...]) -> tuple[int, ...]:
        astray = [found[directory] for found in self._strays.values() if directory in found]
        return tuple(sorted({*listed}.union(*astray))) if astray else listed

    def _is_wanted(self, directory: str) -> bool:
        key = key_of(directory, self.spec.namespace)
        return key is not None and self._takes(key)

    def _state(self, directory: str, numbers: tuple[int, ...]) -> NameState | None:
        """What is published of a name; None when that cannot be told before a shard is another."""
        known = self._states.get(directory)
        if isinstance(known, FormatError) or (known is not None and known.numbers == numbers):
            return None if isinstance(known, FormatError) else known
        home = self._marker_home(directory)
        if home in self._tags and home not in self._texts and home not in self._broken:
            # Its versions are listed in a shard that changed, its marker in one that did not.
            tag, text = self._tags[home], self._understood(home, fetch(self._remote, shard_key(home)))
            if text is not None:
                # Only what it says of markers is taken: if it is another by now, the next look takes the rest.
                self._texts[home], self._tags[home] = text, tag
        if home in self._broken:
            return None
        try:
            state = state_of(self._remote, self._texts.get(home, {}).get, directory, numbers, is_listed=True)
        except FormatError as error:
            self._states[directory] = error
            if self._told.get(directory) != error.message:
                self._told[directory] = error.message
                self.damage.append((directory, error.message))
            return None
        self._states[directory] = state
        return state

    def gone(self, known: Mapping[str, Collection[str]]) -> list[str]:
        """Those of the known names, given by partition, that were in no shard that was read since this was asked."""
        listed, self._listed = self._listed, None
        read, self._read = self._read, {}
        if not self._is_sharded:
            whole = read.get(_WHOLE)
            return [] if whole is None else [each for names in known.values() for each in names if each not in whole]
        lost = known.keys() - listed if listed is not None else set()
        found = [each for name in sorted(lost) for each in known[name]]
        found += [each for name, names in read.items() for each in known.get(name, ()) if each not in names]
        return [each for each in found if not any(each in names for names in self._strays.values())]

    @property
    def has_index(self) -> bool:
        """Whether there is an index at all, or was."""
        return self._is_sharded or bool(self._tags) or self._bare is not None


@contextmanager
def _rebuildable() -> Iterator[None]:
    """Of what nothing else tells what it lists: it is an error, with what to do."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{error.message}; 'mire index rebuild' makes a new one from what is stored") from None
