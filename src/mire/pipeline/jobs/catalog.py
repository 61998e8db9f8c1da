"""The catalog of a store whose versions are read by tasks.

Owns: how the names of a store are shared out.
Must not know: what a name contributes (`flow/scan`), how rows are kept (`flow/catalog`).
Keeps: only the driver writes the catalog; a name that two tasks read is in it once; one that a worker does not see is
an error, not a name without versions.
"""

import os
import pickle
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from mire.flow.catalog import Progress, Refreshed, rebuild
from mire.flow.datastore import Datastore
from mire.flow.scan import NameScan, scan_names
from mire.model.names import Namespace
from mire.pipeline.foreign import spark_errors
from mire.pipeline.frames import SCANS, batch_of, frame_of, mapped
from mire.pipeline.jobs.cores import cores_of
from mire.pipeline.stages.transfer import check_seen, groups_for, unseen

_NAMES: Final = pa.schema([("path", pa.string())])
_AT_A_TIME: Final = 50_000
"""Names of one job: their rows are what the driver holds at once."""
_NAMES_A_ROW: Final = 100


def rebuild_catalog(
    spark: SparkSession, ds: Datastore, *, progress: Progress | None = None, dry_run: bool = False
) -> Refreshed:
    """Throw the catalog away and read everything again, in tasks; every worker must see the store's directory."""
    namespace = ds.config.namespace

    def scanner(root: str, paths: Iterator[str]) -> Iterator[list[NameScan]]:
        while some := list(islice(paths, _AT_A_TIME)):
            yield from _scanned(spark, root, namespace, some)

    with spark_errors("the rebuild of the catalog"):
        return rebuild(ds, progress=progress, scanner=scanner, dry_run=dry_run)


def _scanned(spark: SparkSession, root: str, namespace: Namespace, paths: list[str]) -> Iterator[list[NameScan]]:
    frame = frame_of(spark, ((path,) for path in paths), _NAMES).repartition(groups_for(len(paths), cores_of(spark)))

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        check_seen(root)
        for batch in batches:
            names: list[str] = batch.column(0).to_pylist()
            for start in range(0, len(names), _NAMES_A_ROW):
                some = names[start : start + _NAMES_A_ROW]
                missing = [name for name in some if not os.path.isdir(os.path.join(root, name))]
                yield batch_of([(pickle.dumps((scan_names(root, namespace, some, {}), missing)),)], SCANS)

    for row in mapped(frame, work, SCANS).toLocalIterator():
        scans, missing = _unpickled(row["scans"])
        for name in missing:
            # Somebody may have removed it meanwhile; what is here now and not there is another directory.
            if os.path.isdir(os.path.join(root, name)):
                raise unseen(os.path.join(root, name))
        yield scans


def _unpickled(data: Any) -> tuple[list[NameScan], list[str]]:
    found: tuple[list[NameScan], list[str]] = pickle.loads(bytes(data))  # noqa: S301 - from a task of ours
    return found
