"""The monolith of a sharded store, kept as a copy for programs that know nothing else (`dual: keep`).

Owns: when the copy is changed and when it is made anew.
Must not know: how shards are written.
Keeps: the copy is written after the list of shards, so it never says what is not committed; nobody of ours reads it.
Only where nobody committed since we wrote it are our changes enough; else every shard is read.
"""

from collections.abc import Collection, Mapping
from typing import Final

from mire.edge import clock
from mire.flow.place import MONOLITH, Place, Same, fetch
from mire.flow.reading import fetch_meta, fetch_shards
from mire.flow.swap import swap
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.wire.monolith import decode_monolith, monolith_of

_FACT: Final = "derived_monolith"
"""The fingerprint of the copy, and the commit whose state it shows."""
_TRIES: Final = 3


def make_monolith(place: Place, *, after: int) -> None:
    """Make the copy anew from all shards, after a commit that replaced them."""
    refresh_monolith(place, {}, (), before=None, after=after)


def refresh_monolith(
    place: Place, upserts: Mapping[RelPath, Entry], removals: Collection[RelPath], *, before: int | None, after: int
) -> None:
    """Bring the copy from one commit to the next; whoever is faster three times keeps it in step, too.

    `before` is None where the changes since the commit before are not known.
    """
    for _ in range(_TRIES):
        found = fetch(place.remote, MONOLITH)
        tag = None if found is None or isinstance(found, Same) else found.stat.fingerprint
        now = clock.now_instant()
        if found is not None and not isinstance(found, Same) and place.state.fact(_FACT) == f"{tag} {before}":
            data = decode_monolith(found.data).with_changes(upserts, removals, last_pulled=now)
        else:
            names = fetch_meta(place).partitions
            shards = (seen.shard for seen in fetch_shards(place, names, names).values())
            data = monolith_of([shard for shard in shards if shard is not None], now)
        stored = swap(place, MONOLITH, data, tag)
        if stored is not None:
            place.state.set_facts({_FACT: f"{stored} {after}"})
            return
