"""Repairing a store: the remedies for what a verification found, committed once.

Owns: which paths are looked at again, and the order of what is done about them.
Must not know: which remedy is right (`plan/repair`), how an index is written (`flow/commit`).
Keeps: decided and done under the global lock; objects are stored before the index names them, and deleted after it no
longer does; bytes that are replaced are kept beside the cache first; run again, it finds nothing left to do.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.edge import clock, pool
from mire.edge.remote import Absent, Matches, Refused, Stat, Unknown
from mire.edge.tree import hash_file
from mire.errors import ConflictError, MireError, NotFoundError, RemoteError, shown
from mire.flow.commit import commit
from mire.flow.conflict import keep_theirs
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_gate
from mire.flow.local import tier_path
from mire.flow.lock import hold_global
from mire.flow.place import MONOLITH, Place, open_place
from mire.flow.reading import read_for
from mire.flow.send import delete
from mire.flow.transfer import mtime_text
from mire.model.index import Entry
from mire.model.names import RelPath
from mire.pipeline.foreign import spark_errors
from mire.pipeline.jobs.judge import YOUNG_MS
from mire.pipeline.jobs.verify import Tables, open_tables
from mire.pipeline.stages.inspect import inspect
from mire.pipeline.stages.shards import entry_in
from mire.pipeline.store import spec_of
from mire.pipeline.view import IndexView
from mire.plan.commit import Changes
from mire.plan.repair import REBUILD, Orphans, Remedy, Sides, plan_repair
from mire.plan.threeway import Value, value_of
from mire.wire.entry import decode_member
from mire.wire.layout import METADATA, RAW
from mire.wire.partition import partition_of

_PATHS: Final = ("bad_entry", "dangling", "object_differs", "object_hash", "orphan", "unlisted")
"""Findings about one path, which a remedy exists for."""
_REBUILD: Final = ("shard_missing", "shard_unreadable", "list_unreadable")
_LEFT: Final = {
    "shard_unlisted": "the next push that changes something lists it again",
    "partition_differs": "the next push brings it in step",
    "metadata": "no copy of it is known to be good: restore it",
    "checksum": "no copy of it is known to be good: restore it",
    "marker": "which version is meant nobody knows: write the name again",
    "unreadable": "make it readable, or remove it",
    **dict.fromkeys(_REBUILD, REBUILD),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One path, and what was done about it or would be."""

    path: str
    kind: str
    remedy: Remedy


@dataclass(slots=True, kw_only=True)
class Repaired:
    """What was done, or would be."""

    repairs: list[Repair] = field(default_factory=list)
    is_dry_run: bool = False

    @property
    def left(self) -> int:
        """Findings that nothing was done about."""
        return sum(each.remedy.action == "leave" for each in self.repairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    rel: RelPath
    kind: str
    sides: Sides
    remedy: Remedy


def repair_store(
    spark: SparkSession, ds: Datastore, *, orphans: Orphans = "leave", drop: bool = False, dry_run: bool = False
) -> Repaired:
    """Verify deeply and apply the remedies; a dry run takes no lock and changes nothing."""

    def decided(place: Place) -> tuple[list[_Case], list[Repair]]:
        with spark_errors("the repair"), open_tables(spark, ds, deep=True) as tables:
            others = _others(tables)
            lost = lost_paths(tables.view, others)
            return _cases(place, tables, lost, orphans=orphans, drop=drop), others

    if dry_run:
        with open_place(ds) as place:
            cases, others = decided(place)
        return _report(cases, others, is_dry_run=True)
    check_gate(ds)
    with hold_global(replace(ds, lifecycle=None)) as hold, open_place(ds) as place:
        cases, others = decided(place)
        _carry_out(place, cases, lambda: hold.check(is_strict=True))
    return _report(cases, others, is_dry_run=False)


def _report(cases: Iterable[_Case], others: Iterable[Repair], *, is_dry_run: bool) -> Repaired:
    known = [Repair(path=case.rel, kind=case.kind, remedy=case.remedy) for case in cases]
    paths = {each.path for each in known if each.remedy.action != "leave"}
    # What a remedy heals may have been found in another way as well.
    rest = [each for each in others if each.path not in paths]
    return Repaired(repairs=sorted([*known, *rest], key=lambda each: (each.path, each.kind)), is_dry_run=is_dry_run)


def _others(tables: Tables) -> list[Repair]:
    if tables.kinds.keys() <= set(_PATHS):
        return []
    found = tables.findings.where(~F.col("kind").isin(*_PATHS)).select("path", "kind").collect()
    is_torn = any(row["kind"] in _REBUILD for row in found)
    # What a marker leads to may be what a lost shard listed.
    reasons = {**_LEFT, "marker": REBUILD} if is_torn else _LEFT
    return [
        Repair(path=row["path"], kind=row["kind"], remedy=Remedy(action="leave", reason=reasons[row["kind"]]))
        for row in found
    ]


def lost_paths(view: IndexView, others: Collection[Repair]) -> Callable[[str], bool]:
    """Whether what the index said of a path cannot be read: that it says nothing then means nothing."""
    names = {each.path for each in others if each.kind in _REBUILD}
    is_listless = view.form == "none" or (view.meta is None and bool(view.shards))
    if is_listless or MONOLITH in names or any(each.kind == "list_unreadable" for each in others):
        return lambda _: True
    return lambda rel: partition_of(rel) in names


def _cases(place: Place, tables: Tables, lost: Callable[[str], bool], *, orphans: Orphans, drop: bool) -> list[_Case]:
    """The paths that need a remedy, looked at again and decided about."""
    if tables.kinds.keys().isdisjoint(_PATHS):
        return []
    found = tables.findings.where(F.col("kind").isin(*_PATHS)).groupBy("path").agg(F.min("kind").alias("kind"))
    odd = tables.compared.join(found, F.col("rel") == F.col("path")).drop("path").persist()
    now_ms = place.remote.server_time_ms()
    try:
        read = _read(odd, tables, place.ds)
        # The driver has all of them: to let Spark sort them would be another job.
        rows = sorted(
            (row.asDict() for row in odd.join(read, "rel", "left").collect()), key=lambda row: str(row["rel"])
        )
    finally:
        odd.unpersist()
    here = dict(pool.run(lambda rel: _here(place.ds, RelPath(rel)), [row["rel"] for row in rows], at_once=8))
    cases = ((row, _sides(row, here[row["rel"]], now_ms, is_index_lost=lost(row["rel"]))) for row in rows)
    return [
        _Case(
            rel=RelPath(row["rel"]),
            kind=row["kind"],
            sides=sides,
            remedy=plan_repair(sides, orphans=orphans, drop=drop),
        )
        for row, sides in cases
    ]


def _read(odd: DataFrame, tables: Tables, ds: Datastore) -> DataFrame:
    """What the objects of some paths are, beside what their metadata says of them, and whether they have a twin."""
    is_there = F.col("object_size").isNotNull()
    beside = F.regexp_replace("rel", f"/{RAW}$", f"/{METADATA}")
    wanted = odd.where(is_there).select("rel").union(odd.where(is_there).select(beside.alias("rel"))).distinct()
    read = inspect(wanted, spec_of(ds))
    # Every object that is listed was read: one without a finding is what the index says.
    found = tables.findings.select(F.col("path").alias("rel"))
    is_listed = F.col("sha256").isNotNull() & F.col("object_size").isNotNull()
    sound = tables.compared.where(is_listed).join(found, "rel", "left_anti").select("rel", "sha256")
    said = read.select(F.col("rel").alias("beside"), "meta_size", "meta_checksum", "meta_streaming").join(
        sound.select(F.col("rel").alias("beside"), F.lit(True).alias("is_meta_sound")),  # noqa: FBT003 - a column
        "beside",
        "left",
    )
    listed = sound.select(F.col("sha256").alias("twin"), F.col("rel").alias("twin_rel"))
    stored = read.select(
        "rel", F.col("size_bytes").alias("stored_size"), F.col("sha256").alias("stored_sha256"), "error"
    )
    is_twin = (F.col("stored_sha256") == F.col("twin")) & (F.col("rel") != F.col("twin_rel"))
    return (
        stored.withColumn("beside", beside)
        .join(said, "beside", "left")
        .join(listed, is_twin, "left")
        .groupBy("rel")
        .agg(
            *(F.first(name).alias(name) for name in ("stored_size", "stored_sha256", "error")),
            *(F.first(name).alias(name) for name in ("meta_size", "meta_checksum", "meta_streaming", "is_meta_sound")),
            F.count("twin").alias("twins"),
        )
    )


def _here(ds: Datastore, rel: RelPath) -> Value | None:
    try:
        found = hash_file(tier_path(ds, rel))
    except MireError:
        return None
    return Value(size_bytes=found.file.size_bytes, sha256=found.sha256)


def _sides(row: dict[str, Any], here: Value | None, now_ms: float, *, is_index_lost: bool) -> Sides:
    is_there = row["object_size"] is not None
    is_read = row["stored_sha256"] is not None
    base = None if row["base"] is None else decode_member(row["rel"], bytes(row["base"]))
    return Sides(
        entry=entry_in(row),
        stored=Value(size_bytes=row["stored_size"], sha256=row["stored_sha256"]) if is_read else None,
        here=here,
        is_young=is_there and now_ms - row["object_modified_ms"] < YOUNG_MS,
        is_unreadable=is_there and not is_read,
        is_vouched=is_read and bool(row["is_meta_sound"]) and row["meta_checksum"] == row["stored_sha256"],
        is_disowned=_is_disowned(row),
        agreed=value_of(base) if isinstance(base, Entry) else None,
        has_twin=bool(row["twins"]),
        is_index_lost=is_index_lost,
    )


def _is_disowned(row: dict[str, Any]) -> bool:
    if row["error"] is not None:
        return True
    if not row["rel"].endswith(f"/{RAW}") or row["meta_streaming"] is None:
        return False
    size, said = row["stored_size"], row["meta_size"]
    is_cut = said is not None and (size < said or (size > said and not row["meta_streaming"]))
    return is_cut or row["meta_checksum"] not in (None, row["stored_sha256"])


def _carry_out(place: Place, cases: Sequence[_Case], check: Callable[[], None]) -> None:
    """Objects first, then the index in one commit, then what is to go."""
    upserts: dict[RelPath, Entry] = {}
    restored = [case for case in cases if case.remedy.action == "restore"]
    at_once = place.ds.sync.pushes_at_once(are_short=False)
    for case, entry in pool.run(lambda each: _restored(place, each), restored, at_once=at_once):
        upserts[case.rel] = entry
    for case in cases:
        if case.remedy.action in ("reindex", "adopt"):
            upserts[case.rel] = _described(case)
    removals = frozenset(case.rel for case in cases if case.remedy.action == "drop")
    changes = Changes(
        upserts=upserts,
        removals=removals,
        expected={
            case.rel: case.sides.entry if isinstance(case.sides.entry, Entry) else None
            for case in cases
            if case.rel in upserts or case.rel in removals
        },
    )
    check()
    if changes.paths:
        reading = read_for(place, changes.paths, is_fresh_sharded=place.ds.sync.is_sharded)
        lost = commit(place, changes, reading).lost
        if lost:
            raise ConflictError(
                f"{shown(lost[0])} was changed by somebody while it was repaired: the rest is done; repair again",
                kind="busy_index",
            )
    going = {case.rel: stat for case in cases if case.remedy.action == "delete" and (stat := _stat(place, case.rel))}
    delete(place, going)


def _stat(place: Place, rel: RelPath) -> Stat | None:
    try:
        return place.remote.head(rel)
    except NotFoundError:
        return None


def _described(case: _Case) -> Entry:
    stored = case.sides.stored
    assert stored is not None  # noqa: S101 - by the plan
    before = case.sides.entry
    extra = before.extra if isinstance(before, Entry) else {}
    return Entry(size_bytes=stored.size_bytes, last_modified=clock.now_instant(), sha256=stored.sha256, extra=extra)


def _restored(place: Place, case: _Case) -> Entry:
    """Store our copy in the place of what is there, which is kept beside the cache."""
    path = tier_path(place.ds, case.rel)
    found = _stat(place, case.rel)
    if found is not None and case.sides.stored is not None:
        keep_theirs(place, case.rel, _described(case))
    with open(path, "rb") as file:
        data = file.read()
    hashed = hash_file(path)
    here = case.sides.here
    if here is None or hashed.sha256 != here.sha256 or len(data) != here.size_bytes:
        raise RemoteError(f"{shown(path)} changed while it was restored: repair again", transient=True, kind="in_use")
    condition = Absent() if found is None else Matches(found.fingerprint)
    match place.remote.put_if(case.rel, data, condition, token=clock.new_uuid()):
        case Refused():
            raise ConflictError(f"somebody stored {shown(case.rel)} meanwhile: repair again", kind="busy_index")
        case Unknown(error):
            raise error
        case _:
            pass
    if isinstance(case.sides.entry, Entry):
        return case.sides.entry
    mtime = mtime_text(hashed.file.mtime_ns)
    return Entry(size_bytes=here.size_bytes, last_modified=clock.now_instant(), local_mtime=mtime, sha256=here.sha256)
