"""The findings of a verification as a table, for whoever asks with other tools.

Owns: where they are written, and what may be replaced there.
Must not know: what a finding is about.
Keeps: nothing is ever replaced but an earlier table of findings; a table is there as a whole, or not at all.
"""

import os
import re
import shutil
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from mire.edge import clock, files
from mire.errors import InputError, RemoteError, shown
from mire.pipeline.frames import FINDINGS

_BESIDE: Final = re.compile(r"_SUCCESS|\._SUCCESS\.crc|\.part-.+\.crc")
"""What Spark writes beside the parts of a table."""
_PART: Final = re.compile(r"part-.+\.parquet")


def place_of(spark: SparkSession, table: str) -> str:
    """Where a table goes, as Spark is told it; what is there and is no table of findings is refused."""
    if "://" not in table:
        # Spark may be elsewhere, where a relative path is another one.
        place = os.path.abspath(table)
        place = os.path.realpath(place) if files.is_link(place) else place
        _check_replaceable(place)
        return place
    try:
        # Asking for the schema has Spark look whether there is anything.
        _ = spark.read.text(table).schema
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return table
    raise InputError(f"{shown(table)} is there already: name a place where nothing is")


def write_findings(findings: DataFrame, place: str, count: int) -> None:
    """Write so many findings."""
    ordered = findings.orderBy("kind", "path")
    if "://" in place:
        ordered.write.parquet(place)
        _check_count(place, findings.sparkSession.read.parquet(place).count(), count)
        return
    parent, name = os.path.split(place)
    files.make_dirs(parent)
    staging = os.path.join(parent, f".{name}.mire-{clock.new_uuid()}")
    try:
        ordered.write.parquet(staging)
        _check_count(place, _rows_in(staging), count)
        _check_replaceable(place)
        with files.mapped(place):
            if os.path.isdir(place):
                for entry in os.listdir(place):
                    os.unlink(os.path.join(place, entry))
            # Onto an empty directory only: what somebody puts there meanwhile stays.
            os.rename(staging, place)
        files.sync_dir(parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check_replaceable(place: str) -> None:
    if not os.path.lexists(place):
        return
    if not os.path.isdir(place):
        raise InputError(f"{shown(place)} is no directory: name one for the findings", path=place)
    odd = next((entry.name for entry in files.list_dir(place) if not _is_ours(os.path.join(place, entry.name))), None)
    if odd is not None:
        raise InputError(
            f"{shown(place)} has {shown(odd)} in it, which is no table of findings: name a new or empty directory",
            path=place,
        )


def _is_ours(path: str) -> bool:
    name = os.path.basename(path)
    if not files.is_regular(path) or _PART.fullmatch(name) is None:
        return files.is_regular(path) and _BESIDE.fullmatch(name) is not None
    try:
        return bool(pq.read_schema(path).names == FINDINGS.names)
    except (OSError, pa.ArrowException):
        return False


def _rows_in(directory: str) -> int:
    """The rows that are there for us, wherever Spark wrote them."""
    if not os.path.isdir(directory):
        return 0
    parts = [entry.name for entry in files.list_dir(directory) if _PART.fullmatch(entry.name)]
    return sum(pq.read_metadata(os.path.join(directory, name)).num_rows for name in parts)


def _check_count(place: str, found: int, count: int) -> None:
    if found != count:
        raise RemoteError(
            f"Spark wrote {count} findings, and {found} of them are in {shown(place)}: every worker must see it under"
            " this path; the table was not written",
            kind="unreachable",
            path=place,
        )
