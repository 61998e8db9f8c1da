"""What an index is made of, before it is read: the driver's look that plans the tasks.

Owns: which of its objects count, in which form, under which fingerprints.
Must not know: a cache, what its entries say.
Keeps: nothing is written, here or there; a list that is there but not understood is an error, never an absent one.
"""

from dataclasses import dataclass, field
from typing import Literal

from mire.edge.remote import Remote
from mire.errors import FormatError, NotFoundError
from mire.flow.place import META, MONOLITH, SHARDS, Same, fetch, partition_at
from mire.model.index import Meta
from mire.wire.meta import decode_meta
from mire.wire.shard import SUFFIX

Form = Literal["none", "dual", "sharded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexView:
    """An index by its parts, with their fingerprints; `meta_damage` says why its list is not understood."""

    meta: Meta | None
    meta_tag: str | None = None
    monolith_tag: str | None = None
    shards: dict[str, str] = field(default_factory=dict)
    """Every shard that is there, listed or not."""
    meta_damage: str | None = None

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
    """Three requests, and one more for every thousand shards."""
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
    return IndexView(
        meta=meta,
        meta_tag=None if found is None else found.stat.fingerprint,
        monolith_tag=monolith_tag,
        shards=dict(_shards(remote)),
        meta_damage=damage,
    )


def _shards(remote: Remote) -> list[tuple[str, str]]:
    return [
        (partition_at(stat.key), stat.fingerprint)
        for stat in remote.list(SHARDS)
        if stat.key != META and stat.key.endswith(SUFFIX) and "/" not in stat.key.removeprefix(SHARDS)
    ]


def check_understood(view: IndexView) -> None:
    """Refuse to read an index whose list is damaged: what it does not list would pass for gone."""
    if view.meta_damage is not None:
        raise FormatError(f"{view.meta_damage}; 'mire index rebuild' makes a new one from what is stored")
