"""Clients of other releases, as far as others see them: plain functions on a remote, written from the specification.

`old_*` knows the monolith only. `august_*` writes monolith, dirty partitions and a list without proof, and in a
sharded store rewrites shards from a snapshot, deletes emptied ones, and lists only what its own rule derives. Nobody
here writes with a condition.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from mire.edge import clock
from mire.edge.remote import Remote
from mire.errors import NotFoundError
from mire.wire.partition import partition_of
from mire.wire.relpath import is_internal

MONOLITH = ".datastore-index.json"
META = "_index/_meta.json"
Entries = dict[str, dict[str, Any]]
_KNOWN = frozenset(
    (
        *("data", "outputs", "definitions-evaluated", "workflow-runs", "workflows-evaluated", "auto-definitions"),
        *("audit", "telemetry", "logs", "files"),
    )
)


def load(remote: Remote, key: str) -> Any:
    """A JSON object, or None."""
    try:
        return json.loads(remote.get(key).data)
    except NotFoundError:
        return None


def save(remote: Remote, key: str, document: object) -> None:
    """Write a JSON object, whatever is there."""
    remote.put(key, json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace"))


def shard_key(name: str) -> str:
    """The object of a partition."""
    return f"_index/{name}.json"


def entry_of(rel: str, content: bytes) -> dict[str, Any]:
    """An entry as every release writes it."""
    now = clock.now_instant()
    sha256 = hashlib.sha256(content).hexdigest()
    return {"key": rel, "size": len(content), "lastModified": now, "localMtime": now, "sha256": sha256}


def august_partition(rel: str) -> str | None:
    """The partition rule of August: an unknown first segment has none."""
    return partition_of(rel) if "/" not in rel or rel.partition("/")[0] in _KNOWN else None


def old_index(remote: Remote) -> Entries:
    """The snapshot an old client works on."""
    return dict((load(remote, MONOLITH) or {"entries": {}})["entries"])


def old_push(
    remote: Remote,
    writes: Mapping[str, bytes] | None = None,
    removes: Iterable[str] = (),
    *,
    snapshot: Entries | None = None,
) -> None:
    """A push of a client that knows the monolith only; with a snapshot it read long ago, what came since is lost."""
    entries = old_index(remote) if snapshot is None else dict(snapshot)
    _move_objects(remote, entries, writes or {}, removes)
    save(remote, MONOLITH, {"version": 1, "lastPulled": clock.now_instant(), "entries": entries})


def _move_objects(remote: Remote, entries: Entries, writes: Mapping[str, bytes], removes: Iterable[str]) -> None:
    for rel, content in writes.items():
        remote.put(rel, content)
        entries[rel] = entry_of(rel, content)
    for rel in removes:
        remote.delete(rel)
        entries.pop(rel, None)


def august_index(remote: Remote) -> Entries:
    """The snapshot an August client works on: all listed shards, or the monolith."""
    meta = load(remote, META)
    if meta is None or meta["version"] != 2:
        return old_index(remote)
    entries: Entries = {}
    for name in meta["partitions"]:
        shard = load(remote, shard_key(name))
        if shard is None:
            raise AssertionError(f"an August client fails for ever: {name} is listed and not there")
        entries |= shard["entries"]
    return entries


def august_push(
    remote: Remote,
    writes: Mapping[str, bytes] | None = None,
    removes: Iterable[str] = (),
    *,
    snapshot: Entries | None = None,
    dies_after: str = "",
) -> None:
    """`pushChanged` of August; it may die after its objects, its monolith or its partitions."""
    meta = load(remote, META)
    gone = list(removes)
    entries = august_index(remote) if snapshot is None else dict(snapshot)
    _move_objects(remote, entries, writes or {}, gone)
    if dies_after == "objects":
        return
    dirty = {august_partition(rel) for rel in (*(writes or {}), *gone)} - {None}
    groups: dict[str | None, Entries] = {}
    for rel, entry in entries.items():
        groups.setdefault(august_partition(rel), {})[rel] = entry
    if meta is not None and meta["version"] == 2:
        _august_commit_shards(remote, meta, groups, dirty, dies_after)
        return
    save(remote, MONOLITH, {"version": 1, "lastPulled": clock.now_instant(), "entries": entries})
    if dies_after == "monolith":
        return
    for name in dirty:
        save(remote, shard_key(str(name)), {"version": 1, "entries": groups.get(name, {})})
    if dies_after == "partitions":
        return
    save(remote, META, {"version": 1, "partitions": [name for name in groups if name is not None]})


def _august_commit_shards(
    remote: Remote, meta: Any, groups: Mapping[str | None, Entries], dirty: Iterable[str | None], dies_after: str
) -> None:
    for name in dirty:
        if groups.get(name):
            save(remote, shard_key(str(name)), {"version": 1, "entries": groups[name]})
        else:
            remote.delete(shard_key(str(name)))
    if dies_after in ("monolith", "partitions"):
        return
    listed = sorted(name for name in groups if name is not None)
    save(remote, META, {"version": 2, "partitions": listed, "commitSeq": meta["commitSeq"] + 1})


def migrate_index(remote: Remote) -> None:
    """`migrate-index`: shards from the monolith, a list that counts from 1; the monolith stays, frozen."""
    groups: dict[str | None, Entries] = {}
    for rel, entry in old_index(remote).items():
        groups.setdefault(partition_of(rel), {})[rel] = entry
    for name, entries in groups.items():
        save(remote, shard_key(str(name)), {"version": 1, "entries": entries})
    save(remote, META, {"version": 2, "partitions": sorted(map(str, groups)), "commitSeq": 1})


def discover(remote: Remote) -> None:
    """Discovery: a monolith made of a listing, without hashes."""
    entries = {
        stat.key: {"key": stat.key, "size": stat.size_bytes, "lastModified": "2026-01-01T00:00:00.000Z"}
        for stat in remote.list()
        if not is_internal(stat.key)
    }
    save(remote, MONOLITH, {"version": 1, "lastPulled": clock.now_instant(), "entries": entries})


def prune_by_listing(remote: Remote, listed: Iterable[str]) -> None:
    """A pull of 2026.10 that takes entries whose objects are not in its listing out of the shared index."""
    seen = set(listed)
    for stat in list(remote.list("_index/")):
        if stat.key != META:
            shard = load(remote, stat.key)
            shard["entries"] = {rel: entry for rel, entry in shard["entries"].items() if rel in seen}
            save(remote, stat.key, shard)


def drop_from_index(remote: Remote, *rels: str) -> None:
    """Damage: entries go from every form of the index, objects stay."""
    monolith = load(remote, MONOLITH)
    if monolith is not None:
        monolith["entries"] = {rel: entry for rel, entry in monolith["entries"].items() if rel not in rels}
        save(remote, MONOLITH, monolith)
    meta = load(remote, META)
    for name in () if meta is None or meta["version"] != 2 else meta["partitions"]:
        shard = load(remote, shard_key(name))
        shard["entries"] = {rel: entry for rel, entry in shard["entries"].items() if rel not in rels}
        save(remote, shard_key(name), shard)
    if meta is not None and meta["version"] == 2:
        save(remote, META, {**meta, "commitSeq": meta["commitSeq"] + 1})
