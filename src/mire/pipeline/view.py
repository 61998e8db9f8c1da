"""What an index is made of, before it is read: the driver's look that plans the tasks.

Owns: which of its objects count, in which form, under which fingerprints; what a store without an index is.
Must not know: a cache, what its entries say.
Keeps: nothing is written, here or there; a list that is there but not understood is an error, never an absent one, and
a store whose index is lost, or that is not there, never passes for an empty one.
"""

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from mire.edge.remote import Body, Remote
from mire.errors import FormatError, MireError, NotFoundError, shown
from mire.flow.place import META, MONOLITH, SHARDS, Same, fetch, partition_at
from mire.flow.reading import monolith_seen, newer_shard
from mire.model.index import Meta
from mire.pipeline.spaces import namespaces_in
from mire.pipeline.store import StoreSpec, open_spec
from mire.wire.manifest import MANIFEST
from mire.wire.meta import decode_meta
from mire.wire.shard import SUFFIX

_SPACES_SHOWN: Final = 10

Form = Literal["none", "dual", "sharded"]
Fault = Literal["damaged_index", "no_index", "no_store"]
"""Parts of an index without the rest; objects, but no index; nothing at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexView:
    """An index by its parts, with their fingerprints; `meta_damage` says why its list is not understood."""

    meta: Meta | None
    meta_tag: str | None = None
    monolith_tag: str | None = None
    shards: dict[str, str] = field(default_factory=dict)
    """Every shard that is there, listed or not."""
    meta_damage: str | None = None
    newer: str | None = None
    """A shard that says more than the monolith does, where the list that would count instead is gone."""
    top: tuple[str, ...] = ()
    """Where there is no part of an index: the names at the top of the store."""

    @property
    def damage(self) -> str | None:
        """Why it cannot be believed; a part without the one that says what it is a part of is no index."""
        if self.newer is not None:
            return f"the list of partitions is gone, and the shard {shown(self.newer)} is newer than {MONOLITH}"
        if self.meta_damage is not None or self.form != "none":
            return self.meta_damage
        if self.listed:
            return f"the index lists partitions beside a monolith, but there is no {MONOLITH}"
        if self.shards:
            return f"the index has the shard {shown(min(self.shards))}, but nothing that lists it"
        return None

    @property
    def form(self) -> Form:
        """Which of its parts count."""
        if self.meta is not None and self.meta.version == 2:  # noqa: PLR2004 - the generation
            return "sharded"
        return "none" if self.monolith_tag is None else "dual"

    @property
    def listed(self) -> tuple[str, ...]:
        """What its list names."""
        return () if self.meta is None else self.meta.partitions

    @property
    def partitions(self) -> tuple[str, ...]:
        """Every partition that is listed or there, in order."""
        return tuple(sorted({*self.listed, *self.shards}))

    @property
    def is_proven(self) -> bool:
        """Whether partitions beside a monolith claim to be in step with it."""
        proof = None if self.meta is None else self.meta.proof
        return proof is not None and self.monolith_tag is not None and proof.monolith == self.monolith_tag

    @property
    def commit_seq(self) -> int:
        """The count of commits, as far as it is known."""
        return 0 if self.meta is None else self.meta.commit_seq or 0


def look_at_index(remote: Remote) -> IndexView:
    """Three requests, and one more for every thousand shards; one more without an index.

    Beside a monolith shards that nothing lists are read, if they are newer: they may be what counted.
    """
    body = fetch(remote, META)
    found = None if body is None or isinstance(body, Same) else body
    meta, damage = None, None
    if found is not None:
        try:
            meta = decode_meta(found.data, META)
        except FormatError as error:
            damage = error.message
    try:
        monolith_tag = remote.head(MONOLITH).fingerprint
    except NotFoundError:
        monolith_tag = None
    view = IndexView(
        meta=meta,
        meta_tag=None if found is None else found.stat.fingerprint,
        monolith_tag=monolith_tag,
        shards=dict(_shards(remote)),
        meta_damage=damage,
    )
    if view.form == "none" and view.damage is None:
        return replace(view, top=tuple(_top(remote)))
    is_doubtful = found is None and view.form == "dual" and bool(view.shards)
    return replace(view, newer=_newer(remote)) if is_doubtful else view


def _newer(remote: Remote) -> str | None:
    """What tells a monolith that was left behind from one that counts; one that is not understood tells nothing."""
    body = fetch(remote, MONOLITH)
    try:
        return newer_shard(remote, monolith_seen(body)) if isinstance(body, Body) else None
    except FormatError:
        return None


def _top(remote: Remote) -> list[str]:
    level = remote.list_level("")
    return [*(prefix.removesuffix("/") for prefix in level.prefixes), *(stat.key for stat in level.objects)]


def _shards(remote: Remote) -> list[tuple[str, str]]:
    return [
        (partition_at(stat.key), stat.fingerprint)
        for stat in remote.list(SHARDS)
        if stat.key != META and stat.key.endswith(SUFFIX) and "/" not in stat.key.removeprefix(SHARDS)
    ]


def check_understood(view: IndexView) -> None:
    """Refuse to read an index that is damaged as a whole: what it does not list would pass for gone."""
    if view.damage is not None:
        raise _error("damaged_index", view.damage)


def check_indexed(spec: StoreSpec, view: IndexView) -> None:
    """Refuse a store that would pass for an empty one: its index is damaged or lost, or nothing was ever there."""
    error = bare_error(spec, view)
    if error is not None:
        raise error


def index_damage(spec: StoreSpec, view: IndexView) -> str | None:
    """The same for who tells damage among other things; that nothing was ever there is an error."""
    kind, what = _fault(spec, view) or (None, None)
    if kind == "no_store":
        check_indexed(spec, view)
    return what


def bare_error(spec: StoreSpec, view: IndexView) -> MireError | None:
    """Why a store has nothing to read, when it is not just empty."""
    fault = _fault(spec, view)
    return None if fault is None else _error(*fault)


def _fault(spec: StoreSpec, view: IndexView) -> tuple[Fault, str] | None:
    """Empty is what is known to be there: a directory that is used in place, or a namespace that somebody claimed."""
    if view.damage is not None:
        return "damaged_index", view.damage
    if view.form != "none" or spec.is_directory:
        return None
    name = open_spec(spec).properties.name
    if any(each in spec.own for each in view.top):
        return "no_index", f"{name} has objects, but no index: its first push is not done yet, or its index is lost"
    if spec.namespace and MANIFEST in view.top:
        return None
    spaces = namespaces_in(spec)
    more = f" and {len(spaces) - _SPACES_SHOWN} more" if len(spaces) > _SPACES_SHOWN else ""
    there = f"the store has the namespaces {', '.join(spaces[:_SPACES_SHOWN])}{more}" if spaces else "and no namespace"
    return "no_store", f"{name} has no index and no data, {there}"


def _error(fault: Fault, what: str) -> MireError:
    advice = "'mire index rebuild' makes a new one from what is stored"
    match fault:
        case "damaged_index":
            return FormatError(f"{what}; {advice}", kind="damaged_index")
        case "no_index":
            return FormatError(f"{what}; {advice}", kind="no_index")
        case "no_store":
            return NotFoundError(f"{what}: correct the address or the namespace, or push to it first", kind="no_store")
