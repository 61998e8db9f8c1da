"""Metadata and content into columns: every name of an index becomes the rows of its versions.

Owns: which files of a name are read, and the columns they come to.
Must not know: where the names came from, what is done with the rows.
Keeps: a reader of the rows sees the versions that a reader of the store sees, and no others; what cannot be read or
understood is a row with `_error`, never a failed job; a store that fails is an error, never such a row.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from mire.edge import pool
from mire.edge.remote import Remote
from mire.errors import FormatError, InputError, NotFoundError
from mire.flow.scan import key_of
from mire.model.artifact import Metadata, NameState
from mire.model.names import DataName, Namespace
from mire.model.row import NameKey
from mire.pipeline.frames import ARTIFACTS, PARSED, batches_of, mapped, rows_of
from mire.pipeline.store import StoreSpec, open_spec
from mire.plan.write import published_number, visible_numbers
from mire.wire.latest import decode_highest, decode_latest
from mire.wire.layout import DATA, HIGHEST, LATEST, METADATA, RAW
from mire.wire.metadata import check_agrees, decode_metadata

AT_ONCE: Final = 16
"""Names a task reads at once: it mostly waits."""
JSON: Final = "application/json"
_VERSION: Final = rf"^({DATA}/.+)/(\d+)/{METADATA.replace('.', '[.]')}$"
_BLANK: Final = (None,) * (len(ARTIFACTS) - 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What of each version is to be read: `attributes` and `content` cost a request each version."""

    latest_only: bool = False
    attributes: bool = True
    content: bool = False


def names_of(entries: DataFrame) -> DataFrame:
    """The data names of an index, each with the numbers of its versions that have metadata."""
    return (
        entries.select(
            F.regexp_extract("rel", _VERSION, 1).alias("directory"),
            F.regexp_extract("rel", _VERSION, 2).alias("number"),
        )
        .where("directory <> ''")
        .groupBy("directory")
        .agg(F.sort_array(F.collect_set(F.col("number").try_cast("bigint"))).alias("numbers"))
        .select("directory", "numbers")
    )


def parse(names: DataFrame, spec: StoreSpec, wanted: Wanted) -> DataFrame:
    """The versions of names, read in tasks."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        remote = open_spec(spec)
        found = ((row["directory"], row["numbers"]) for row in rows_of(batches))
        yield from batches_of(read_names(remote, spec.namespace, found, wanted), PARSED)

    return mapped(names, work, PARSED)


def read_names(
    remote: Remote, namespace: Namespace, names: Iterable[tuple[str, Sequence[int]]], wanted: Wanted
) -> Iterator[tuple[Any, ...]]:
    """The rows of names, in the order of `PARSED`; a few are read at once."""
    for _, rows in pool.run(lambda item: read_name(remote, namespace, *item, wanted), names, at_once=AT_ONCE):
        yield from rows


def read_name(
    remote: Remote, namespace: Namespace, directory: str, numbers: Sequence[int], wanted: Wanted
) -> list[tuple[Any, ...]]:
    """The rows of one name: of the versions a reader sees, or of the latest."""
    key = key_of(directory, namespace)
    if key is None:
        return []
    state = _state_of(remote, directory, numbers)
    visible = visible_numbers(state)
    latest = published_number(state) or (visible[-1] if visible else None)
    chosen = [number for number in visible if not wanted.latest_only or number == latest]
    return [
        _hashed_version(remote, key, f"{directory}/{number}", number, wanted, is_latest=number == latest)
        for number in chosen
    ]


def _state_of(remote: Remote, directory: str, numbers: Sequence[int]) -> NameState:
    marker = _found(remote, f"{directory}/{LATEST}")
    # The floor of deleted versions counts only where there is no marker.
    highest = None if marker is not None else _found(remote, f"{directory}/{HIGHEST}")
    return NameState(
        numbers=tuple(numbers),
        marker=None if marker is None else decode_latest(marker),
        highest=decode_highest(highest or b""),
    )


def _found(remote: Remote, key: str) -> bytes | None:
    try:
        return remote.get(key).data
    except NotFoundError:
        return None


def read_version(
    remote: Remote, key: NameKey, place: str, number: int, wanted: Wanted, *, is_latest: bool
) -> tuple[Any, ...]:
    """The row of one version, whose files are below `place`; damage is told in it, a failing store is an error."""
    return _hashed_version(remote, key, place, number, wanted, is_latest=is_latest)[:-1]


def _hashed_version(
    remote: Remote, key: NameKey, place: str, number: int, wanted: Wanted, *, is_latest: bool
) -> tuple[Any, ...]:
    """The row of one version, and the hash of its metadata."""
    try:
        found = remote.get(f"{place}/{METADATA}").data
        metadata = decode_metadata(found)
        check_agrees(metadata, DataName(key.name), number)
    except (FormatError, InputError, NotFoundError) as error:
        return (*failed_row(key, number, error.message, is_latest=is_latest), None)
    is_json = wanted.attributes and metadata.content_type == JSON
    content, failure = None, None
    if wanted.content or is_json:
        try:
            content = _checked(remote.get(f"{place}/{RAW}").data, metadata)
        except (FormatError, InputError, NotFoundError) as error:
            failure = error.message
    attributes = _attributes(content) if is_json else None
    columns = columns_of(key, metadata, is_latest=is_latest)
    return (*columns, attributes, content if wanted.content else None, failure, hashlib.sha256(found).hexdigest())


def _checked(content: bytes, metadata: Metadata) -> bytes:
    """The content, if it is what the metadata says."""
    recorded = metadata.size_bytes
    if recorded is not None and metadata.streaming:
        # Behind the recorded size of streaming data are bytes of an append that was never finished.
        content = content[:recorded]
    if recorded not in (None, len(content)):
        raise FormatError(f"the content has {len(content)} bytes, recorded are {recorded}", kind="damaged")
    if metadata.checksum is not None and hashlib.sha256(content).hexdigest() != metadata.checksum:
        raise FormatError(f"the content does not have the recorded SHA-256 {metadata.checksum}", kind="damaged")
    return content


def _attributes(content: bytes | None) -> str | None:
    """The content as the text of one JSON object; of anything else there are no attributes."""
    if content is None:
        return None
    try:
        text = content.decode()
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return text if isinstance(parsed, dict) else None


def failed_row(key: NameKey, number: int | None, message: str, *, is_latest: bool | None) -> tuple[Any, ...]:
    """The row of a version that cannot be read."""
    head = (key.namespace, key.model.model_type, key.model.model_id, key.name, number, is_latest)
    return (*head, *_BLANK[:-1], message)


def columns_of(key: NameKey, metadata: Metadata, *, is_latest: bool) -> tuple[Any, ...]:
    """The columns that metadata comes to: those of `ARTIFACTS` up to `tags`."""
    owner = metadata.owner
    return (
        key.namespace,
        key.model.model_type,
        key.model.model_id,
        key.name,
        metadata.version,
        is_latest,
        metadata.id,
        metadata.tags.get("type", ""),
        metadata.content_type,
        metadata.lifetime,
        str(metadata.version_policy),
        "deleted" if metadata.is_deleted else "active",
        metadata.renamed_to,
        metadata.streaming,
        metadata.size_bytes,
        metadata.checksum,
        metadata.created_at,
        owner.owner_type,
        owner.owner_ref,
        owner.workflow_id,
        owner.workflow_run_id,
        owner.workflow_name,
        owner.job_name,
        owner.step_name,
        owner.source,
        metadata.tags,
    )
