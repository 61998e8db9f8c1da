"""Retention over many versions: what goes is worked out in columns, and removed as always.

Owns: the columns that retention depends on, and the windows that decide.
Must not know: how anything is removed (`flow/retain`).
Keeps: the decisions are those of `plan/retention`, name by name; what columns cannot say (damage, a marker that leads
nowhere, a rename under way, warnings) is left to the verb itself. Nothing is removed on a decision made here: under the
lock each name is decided about again.
"""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.edge import clock, files
from mire.errors import InputError, MireError
from mire.flow.datastore import Datastore, open_datastore
from mire.flow.hold import load_holds
from mire.flow.read import finished_numbers, load_metadata, look_at_name
from mire.flow.retain import Decision, Outcome, Report, carry_out, decide, decided, report_of, run_record
from mire.flow.walk import Finding, walk_names
from mire.model.artifact import Metadata, ModelRef
from mire.model.hold import Holds
from mire.model.instant import datetime_of
from mire.model.lifetime import duration_of
from mire.model.names import DataName, ModelId, ModelType
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import RETENTION, batches_of, frame_of, mapped, rows_of
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.stages.transfer import check_seen, groups_for, unseen
from mire.plan.config import Flags
from mire.plan.retention import ENDLESS, RUN_LIFETIMES, Reason, RunRecord, run_of
from mire.plan.write import leftover_numbers, published_number
from mire.wire.layout import RAW, intent_path, version_dir

_NAMES: Final = pa.schema([("model_type", pa.string()), ("model_id", pa.string()), ("name", pa.string())])
_KEY: Final = ("model_type", "model_id", "name")
_US: Final = timedelta(microseconds=1)


def retain_store(spark: SparkSession, ds: Datastore, *, dry_run: bool = False, now: datetime | None = None) -> Report:
    """Remove what retention lets go; every worker must see the store's directory."""
    moment = now or clock.now()
    if _opened(ds.repo_dir).base != ds.base:
        raise InputError("--pipeline looks at the datastore of the repository's settings: do without --datastore")
    with spark_errors("retention"):
        found = list(plan_store(spark, ds, moment))
    if dry_run:
        return report_of(found)
    return carry_out(ds, iter(found), lambda: lambda model, name: decide(ds, model, name, moment))


def plan_store(spark: SparkSession, ds: Datastore, now: datetime) -> Iterator[Outcome]:
    """What a run would do, name by name."""
    names: list[tuple[str, str, str]] = []
    for found in walk_names(ds, None):
        if isinstance(found, Finding):
            yield found
        else:
            names.append((found[0].model_type, found[0].model_id, found[1]))
    frame = frame_of(spark, names, _NAMES).repartition(groups_for(len(names), cores_of(spark)))
    repo_dir, base, roots = ds.repo_dir, ds.base, tuple(filter(os.path.isdir, ds.roots()))

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        check_seen(repo_dir, *roots)
        store = _opened(repo_dir)
        if store.base != base:  # a home of its own, with a cache of its own
            raise unseen(base)
        rows = (row for name in rows_of(batches) for row in _looked(store, name))
        yield from batches_of(rows, RETENTION)

    # The driver takes in all of them in any case: to let Spark sort them would be another job.
    rows = decide_rows(mapped(frame, work, RETENTION), now).collect()
    for row in sorted(rows, key=lambda each: tuple(str(each[part]) for part in _KEY)):
        model = ModelRef(model_type=ModelType(row["model_type"]), model_id=ModelId(row["model_id"]))
        name = DataName(row["name"])
        if row["is_odd"]:
            yield from decided(ds, model, name, lambda model, name: decide(ds, model, name, now))
        else:
            yield Decision(
                model=model,
                name=name,
                reason=cast("Reason", row["reason"]),
                versions=tuple(row["versions"]),
                is_whole_name=row["is_whole"],
                size_bytes=row["size_bytes"],
            )


@lru_cache(maxsize=4)
def _opened(repo_dir: str) -> Datastore:
    return open_datastore(repo_dir, flags=Flags())


def _looked(ds: Datastore, row: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of one name as it is now."""
    model = ModelRef(model_type=ModelType(row["model_type"]), model_id=ModelId(row["model_id"]))
    name = DataName(row["name"])
    try:
        yield from _rows(ds, model, name)
    except MireError:
        yield odd_row(model, name)


def _rows(ds: Datastore, model: ModelRef, name: DataName) -> Iterator[tuple[Any, ...]]:
    state = look_at_name(ds, model, name)
    finished = finished_numbers(ds, model, name, state)
    is_odd = bool(leftover_numbers(state)) or files.is_file(ds.path_of(intent_path(model)))
    if is_odd or (finished and published_number(state) not in (None, finished[-1])):
        yield odd_row(model, name)
        return
    versions = [load_metadata(ds, model, name, number) for number in finished]
    if any(version is None for version in versions):
        yield odd_row(model, name)
        return
    whole = [version for version in versions if version is not None]
    if not whole:  # the driver found the name: if it has versions there, the driver looks at them
        yield odd_row(model, name)
        return
    run = run_record(ds, whole[-1])
    sizes = [files.size_of(f"{ds.path_of(version_dir(model, name, each.version))}/{RAW}") or 0 for each in whole]
    yield from facts_rows(model, name, whole, sizes, load_holds(ds, model, name), run)


def odd_row(model: ModelRef, name: DataName) -> tuple[Any, ...]:
    """A name that is left to the verb itself."""
    return (model.model_type, model.model_id, name, *(None,) * 9, True)


def facts_rows(
    model: ModelRef, name: DataName, versions: list[Metadata], sizes: list[int], holds: Holds, run: RunRecord
) -> Iterator[tuple[Any, ...]]:
    """What retention depends on, for each version of a name; `versions` ascend, the last is the latest."""
    # A warning is words, not numbers: the verb finds them.
    latest = versions[-1]
    may_end = latest.is_active and latest.renamed_to is None and latest.lifetime not in ENDLESS
    is_odd = may_end and latest.lifetime in RUN_LIFETIMES and (run_of(latest) is None or run == "unknown")
    for version, size in zip(versions, sizes, strict=True):
        is_endless = not version.is_active or version.renamed_to is not None or version.lifetime in ENDLESS
        is_over = version.lifetime in RUN_LIFETIMES and run == "gone" and run_of(version) is not None
        policy = version.version_policy
        yield (
            model.model_type,
            model.model_id,
            name,
            version.version,
            _us(datetime_of(version.created_at)),
            is_endless,
            RUN_LIFETIMES[version.lifetime] if is_over else None,
            _length(duration_of(version.lifetime)) if version.lifetime not in RUN_LIFETIMES else None,
            policy if isinstance(policy, int) else None,
            None if isinstance(policy, int) else _length(duration_of(policy)),
            holds.is_held(version.version),
            size,
            is_odd,
        )


def _us(moment: datetime) -> int:
    return (moment - datetime.fromtimestamp(0, moment.tzinfo)) // _US


def _length(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // _US


def decide_rows(versions: DataFrame, now: datetime) -> DataFrame:
    """What goes of each name, and why: by windows over its versions, the latest one deciding for all."""
    name = Window.partitionBy(*_KEY)
    newest = name.orderBy(F.desc("version"))
    age = F.lit(_us(now)) - F.col("created_us")
    policies = ("is_endless", "run_reason", "duration_us", "policy_count", "policy_us")
    ranked = versions.withColumns(
        {
            "rank": F.row_number().over(newest),
            "has_odd": F.max(F.col("is_odd").cast("int")).over(name) == 1,
            "has_held": F.max(F.coalesce("is_held", F.lit(False)).cast("int")).over(name) == 1,  # noqa: FBT003
            "age": age,
            "latest_age": F.first(age).over(newest),
            **{f"latest_{each}": F.first(each).over(newest) for each in policies},
        }
    )
    is_old = F.col("latest_age") > F.col("latest_duration_us")
    over = F.when(
        ~F.col("latest_is_endless"),
        F.coalesce("latest_run_reason", F.when(is_old, F.lit("duration-expired"))),
    )
    is_counted = F.col("latest_policy_count").isNotNull()
    is_surplus = F.when(is_counted, F.col("rank") > F.col("latest_policy_count")).otherwise(
        (F.col("rank") > 1) & (F.col("age") > F.col("latest_policy_us"))
    )
    is_whole = over.isNotNull() & ~F.col("has_held")
    judged = ranked.withColumns(
        {
            "is_whole": is_whole,
            "goes": is_whole | (is_surplus & ~F.col("is_held")),
            "reason": F.when(is_whole, over).when(is_counted, F.lit("version-count")).otherwise(F.lit("version-age")),
        }
    )
    return (
        judged.where(F.col("has_odd") | F.col("goes"))
        .groupBy(*_KEY)
        .agg(
            F.sort_array(F.collect_list("version")).alias("versions"),
            F.max("reason").alias("reason"),
            F.max("is_whole").alias("is_whole"),
            F.sum("size_bytes").alias("size_bytes"),
            F.max("has_odd").alias("is_odd"),
        )
    )
