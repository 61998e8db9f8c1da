"""A listing as rows, split by prefix so that many tasks share it.

Owns: how a listing is cut into pieces, and what of it is nobody's business.
Must not know: what is done with the objects.
Keeps: every object that clients sync is listed exactly once; other namespaces are not looked into.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from mire.edge import pool
from mire.edge.remote import Remote
from mire.errors import NotFoundError
from mire.model.names import DATASTORE_SUBDIRS
from mire.pipeline.frames import OBJECTS, batches_of, frame_of, mapped, rows_of
from mire.pipeline.store import StoreSpec, open_spec
from mire.wire.manifest import MANIFEST
from mire.wire.relpath import is_internal, tenant_of

_PIECES: Final = pa.schema([("prefix", pa.string()), ("is_level", pa.bool_())])
_PIECES_A_CORE: Final = 4
"""Pieces differ in size: with several for each core none waits long for the largest."""
_LEVELS_MAX: Final = 200
"""Requests the driver makes at most to cut a listing."""
_LEVELS_AT_ONCE: Final = 16

ObjectRow = tuple[str, int, str, int]
"""The values of a row of `OBJECTS`."""


def scan(spark: SparkSession, spec: StoreSpec, *, cores: int) -> DataFrame:
    """Every object of a namespace that clients sync."""
    pieces = plan_pieces(open_spec(spec), wanted=_PIECES_A_CORE * cores, is_solo=not spec.namespace)
    frame = frame_of(spark, pieces, _PIECES).repartition(max(1, min(len(pieces), _PIECES_A_CORE * cores)))
    return mapped(frame, lambda batches: _listed(spec, batches), OBJECTS)


def objects_in(spec: StoreSpec) -> Iterator[ObjectRow]:
    """The rows of `scan`, listed by this process."""
    remote = open_spec(spec)
    for prefix, is_level in plan_pieces(remote, wanted=1, is_solo=not spec.namespace):
        yield from _listed_at(remote, prefix, is_level=is_level)


def plan_pieces(remote: Remote, *, wanted: int, is_solo: bool) -> list[tuple[str, bool]]:
    """Prefixes that together hold every object once; of some (`is_level`) only what is directly at them."""
    done: list[tuple[str, bool]] = [("", True)]
    top = [prefix for prefix in remote.list_level("").prefixes if not _is_foreign(remote, prefix, is_solo=is_solo)]
    left, asked = top, 0
    while left and len(done) + len(left) < wanted and asked < _LEVELS_MAX:
        some, left = left[:_LEVELS_AT_ONCE], left[_LEVELS_AT_ONCE:]
        asked += len(some)
        for prefix, level in pool.run(remote.list_level, some, at_once=_LEVELS_AT_ONCE):
            done.append((prefix, bool(level.prefixes)))
            # What looks like a tenant's is no row in any case (below): it is not asked for, either.
            left += [each for each in level.prefixes if tenant_of(each) is None]
    return [*done, *((prefix, False) for prefix in left)]


def _is_foreign(remote: Remote, prefix: str, *, is_solo: bool) -> bool:
    """Whether a top-level prefix is no data of ours: internal, or the part of somebody who has a namespace."""
    name = prefix.removesuffix("/")
    if is_internal(f"{name}/x"):
        return True
    if not is_solo or name in DATASTORE_SUBDIRS:
        return False
    try:
        remote.head(f"{prefix}{MANIFEST}")
    except NotFoundError:
        return False
    return True


def _listed(spec: StoreSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    remote = open_spec(spec)
    for piece in rows_of(batches):
        yield from batches_of(_listed_at(remote, piece["prefix"], is_level=piece["is_level"]), OBJECTS)


def _listed_at(remote: Remote, prefix: str, *, is_level: bool) -> Iterator[ObjectRow]:
    for stat in remote.list_level(prefix).objects if is_level else remote.list(prefix):
        # What nobody claimed and looks like a tenant's is a stray here: no index of ours may come to list it.
        if not is_internal(stat.key) and tenant_of(stat.key) is None:
            yield stat.key, stat.size_bytes, stat.fingerprint, stat.modified_ms
