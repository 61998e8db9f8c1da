"""Rows of all other namespaces of a store for the catalog, read from their metadata by tasks.

Owns: how namespaces are shared out, and what becomes of one that cannot be read.
Must not know: how a piece of a store is read (`source/rows`), how rows of others are kept (`flow/imports`).
Keeps: other namespaces are only read. What is damaged is told and changes no row that was known; one namespace that
cannot be read keeps no other from being read.
"""

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from mire.edge import pool
from mire.errors import FormatError, MireError, shown
from mire.flow.catalog import Progress
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_format
from mire.flow.imports import Imported, known_imports, outcome_of, replace_imports
from mire.model.names import Namespace
from mire.model.row import COLUMNS, RowValues
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import ARTIFACTS, SHOWN, batches_of, frame_of, mapped
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.source.piece import Piece, plan_tasks
from mire.pipeline.source.rows import Request, rows_of
from mire.pipeline.spaces import namespaces_in
from mire.pipeline.stages.parse import Wanted
from mire.pipeline.stages.transfer import error_in
from mire.pipeline.store import StoreSpec, spec_of
from mire.plan.publish import published_rows
from mire.wire.export import export_row, import_row, tags_text

_AT_ONCE: Final = 16
_TASKS_A_CORE: Final = 8
_PIECES: Final = pa.schema([("namespace", pa.string()), ("piece", pa.binary())])
_REQUEST: Final = Request(table="artifacts", wanted=Wanted(attributes=False))
_RENAMED: Final = {"size": "size_bytes"}
_TAGGED: Final = {"model_name": "modelName", "spec_name": "specName"}
_Name = tuple[str, str, str]


@dataclass(slots=True)
class _Seen:
    """What was read of one namespace."""

    rows: list[RowValues] = field(default_factory=list)
    names: set[_Name] = field(default_factory=set)
    unread: set[_Name] = field(default_factory=set)
    """Names of which nothing could be read."""
    errors: list[str] = field(default_factory=list)
    is_torn: bool = False
    """Whether a part of the index could not be read: then a name that was not seen may be in it."""
    fault: MireError | None = None

    def keeps(self, row: RowValues) -> bool:
        """Whether a row that was known before stays."""
        name = _name_of(row)
        return name in self.unread or (self.is_torn and name not in self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersRead:
    """What became of every other namespace, and what is damaged in them."""

    namespaces: list[Imported]
    errors: list[str]


def rebuild_others(
    spark: SparkSession, ds: Datastore, *, progress: Progress | None = None, dry_run: bool = False
) -> OthersRead:
    """Read the metadata of every other namespace, and let queries see its rows; a dry run only counts them."""
    check_format(ds)
    done, errors, count = list[Imported](), list[str](), 0
    with spark_errors("the rebuild of the catalog"):
        for namespace, seen in _read(spark, ds):
            errors += [f"{namespace}: {error}" for error in seen.errors]
            done.append(_imported(ds, namespace, seen, dry_run=dry_run))
            count += done[-1].rows
            if progress is not None:
                progress(count)
    return OthersRead(namespaces=sorted(done, key=lambda each: each.namespace), errors=errors)


def _imported(ds: Datastore, namespace: Namespace, seen: _Seen, *, dry_run: bool) -> Imported:
    if seen.fault is not None:
        before = next((each.rows for each in known_imports(ds) if each.namespace == namespace), 0)
        return Imported(namespace=namespace, outcome=outcome_of(seen.fault), rows=before, message=seen.fault.message)
    rows = replace_imports(ds, namespace, seen.rows, keeps=seen.keeps, dry_run=dry_run)
    return Imported(namespace=namespace, outcome="imported", rows=rows)


def _read(spark: SparkSession, ds: Datastore) -> Iterator[tuple[Namespace, _Seen]]:
    spec = spec_of(ds)
    others = [spec.within(name) for name in namespaces_in(spec) if name != spec.namespace]
    planned: list[tuple[str, bytes]] = []
    left: set[Namespace] = set()
    for each, pieces in pool.run(_planned, others, at_once=_AT_ONCE):
        if isinstance(pieces, MireError):
            yield each.namespace, _Seen(fault=pieces)
            continue
        left.add(each.namespace)
        planned += [(each.namespace, pickle.dumps(piece)) for piece in pieces]
    if planned:
        for name, rows in groupby(_sorted(spark, planned).toLocalIterator(), key=lambda row: row["namespace"]):
            left.discard(Namespace(name))
            yield Namespace(name), _seen(rows)
    yield from ((namespace, _Seen()) for namespace in sorted(left))


def _planned(spec: StoreSpec) -> list[Piece] | MireError:
    try:
        return plan_tasks([spec], table=_REQUEST.table, wishes=(), tasks_max=None)
    except MireError as error:
        return error


def _sorted(spark: SparkSession, planned: list[tuple[str, bytes]]) -> DataFrame:
    """The rows of all pieces, those of a namespace together and in the order of their names."""
    groups = max(1, min(len(planned), _TASKS_A_CORE * cores_of(spark)))
    found = mapped(frame_of(spark, planned, _PIECES).repartition(groups), _work, SHOWN)
    return found.repartition(groups, "namespace").sortWithinPartitions(*SHOWN.names[:5])


def _work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column("piece").to_pylist():
            piece: Piece = pickle.loads(data)  # noqa: S301 - from our own driver, never from a store
            yield from batches_of(_shown(piece), SHOWN)


def _shown(piece: Piece) -> Iterator[tuple[Any, ...]]:
    """The rows of a piece for the driver: values of the catalog, or what is wrong."""
    namespace, names = piece.spec.namespace, tuple(ARTIFACTS.names)
    try:
        for found in rows_of(piece, _REQUEST):
            row = dict(zip(names, found, strict=True))
            key = (namespace, row["model_type"], row["model_id"], row["name"], row["version"])
            try:
                values = None if row["_error"] is not None else _values(row, namespace)
                yield (*key, None if values is None else pickle.dumps(values), row["_error"], None)
            except FormatError as error:
                yield (*key, None, f"{shown(row['name'])}: {error.message}", None)
    except MireError as error:
        yield (namespace, None, None, None, None, None, error.message, type(error).__name__)


def _values(row: Mapping[str, Any], namespace: Namespace) -> RowValues:
    """The row of the catalog; one that no catalog can have is refused as in what others publish."""
    tags = dict(row["tags"] or ())
    found: list[str | int] = []
    for column, kind in COLUMNS:
        if column == "tags":
            found.append(tags_text(tags))
        elif column in _TAGGED:
            found.append(tags.get(_TAGGED[column], ""))
        else:
            value = row.get(_RENAMED.get(column, column))
            found.append(int(value or 0) if kind == "INTEGER" else str(value or ""))
    import_row(export_row(tuple(found)), namespace)
    return tuple(found)


def _seen(rows: Iterator[Any]) -> _Seen:
    seen = _Seen()
    for name, group in groupby(rows, key=lambda row: (row["model_type"], row["model_id"], row["name"])):
        several = list(group)
        for row in several:
            if row["fault"] is not None:
                seen.fault = error_in({"error": row["error"], "error_class": row["fault"], "error_kind": None})
            elif row["error"] is not None:
                seen.errors.append(_told(row))
                seen.is_torn |= name[0] is None
                if name[0] is not None and row["version"] is None:
                    seen.unread.add(name)
        found = [pickle.loads(row["values"]) for row in several if row["values"] is not None]  # noqa: S301 - as above
        seen.names.add(name)
        seen.rows += published_rows(found)
    return seen


def _told(row: Any) -> str:
    if row["model_type"] is None:
        return str(row["error"])
    version = "" if row["version"] is None else f"/{row['version']}"
    return f"{row['model_type']}/{row['model_id']}/{row['name']}{version}: {row['error']}"


def _name_of(row: RowValues) -> _Name:
    return str(row[1]), str(row[2]), str(row[3])
