"""Content of records that other namespaces published: fetched when it is asked for, and verified.

Owns: what proves that bytes are those of the record.
Must not know: predicates, where rows are kept.
Keeps: bytes are handed out only if the version's own metadata, read beside them, is that of the row and names their
size and checksum. Our own files are never looked at.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mire.edge import pool
from mire.errors import FormatError, MireError, NotFoundError, shown
from mire.flow.content import NOT_HERE, NOTHING, Record, content_path, directory_of, is_text, shown_text
from mire.flow.datastore import Datastore
from mire.flow.foreign import ForeignView, foreign_view
from mire.flow.keep import IDENTITY, find_content, keep_content
from mire.model.artifact import Metadata
from mire.model.names import Namespace
from mire.plan.fields import COLUMNS
from mire.wire.layout import METADATA
from mire.wire.metadata import check_agrees, decode_metadata

_FIELD_OF: Final = {column: field for field, column in COLUMNS.items()} | {"namespace": "namespace"}

Loaded = dict[str, Any] | MireError
"""`attributes` and `content`, or why there are none."""


def load_others(ds: Datastore, records: Iterable[Record], *, hydrate: bool) -> Iterator[tuple[Record, Loaded]]:
    """The content of records of other namespaces, several at once; what failed says why, and fails alone."""
    view = foreign_view(ds)
    found = list(records)
    results = pool.run(
        lambda place: _load(ds, view, found[place], hydrate=hydrate),
        range(len(found)),
        at_once=ds.sync.pulls_at_once(are_short=True),
    )
    return ((found[place], loaded) for place, loaded in results)


def _load(ds: Datastore, view: ForeignView, record: Record, *, hydrate: bool) -> Loaded:
    if not is_text(record):
        return NOTHING
    try:
        data = _bytes_of(ds, view, record, hydrate=hydrate)
    except MireError as error:
        return error
    if data is None:
        return NOT_HERE
    try:
        return shown_text(record, data.decode())
    except UnicodeDecodeError:
        return NOTHING


def _bytes_of(ds: Datastore, view: ForeignView, record: Record, *, hydrate: bool) -> bytes | None:
    identity = tuple(record[_FIELD_OF[column]] for column in IDENTITY)
    is_growing = bool(record["streaming"])
    kept = None if is_growing else find_content(ds, identity)
    if kept is not None or not hydrate:
        return kept
    namespace = Namespace(record["namespace"])
    try:
        metadata = decode_metadata(view.get(namespace, f"{directory_of(record)}/{METADATA}").data)
        _check(metadata, record)
        data = _verified(view, namespace, metadata, record)
    except NotFoundError:
        raise NotFoundError(f"it is no longer there: {_advice(record)}", kind="content_missing") from None
    if not is_growing:
        keep_content(ds, identity, data)
    return data


def _check(metadata: Metadata, record: Record) -> None:
    check_agrees(metadata, record["name"], record["version"])
    if metadata.id != record["id"]:
        raise FormatError(f"it is another version by now: {_advice(record)}", kind="replaced")


def _verified(view: ForeignView, namespace: Namespace, metadata: Metadata, record: Record) -> bytes:
    """The content as its metadata describes it; behind the recorded size of growing data is what nobody finished."""
    size, parts, length = metadata.size_bytes, [], 0
    for chunk in view.get_stream(namespace, content_path(record)).chunks:
        parts.append(chunk)
        length += len(chunk)
        if size is not None and length > size:
            break  # a hostile object must not fill the memory
    data = b"".join(parts)
    if metadata.streaming and size is not None:
        data = data[:size]
    if size is not None and len(data) != size:
        raise FormatError(f"its content has {length} bytes or more, recorded are {size}", kind="mismatch")
    digest = hashlib.sha256(data).hexdigest()
    if metadata.checksum not in (None, digest):
        raise FormatError(
            f"its content has SHA-256 {digest}, not {shown(metadata.checksum)}: it is being replaced, or damaged",
            kind="mismatch",
        )
    return data


def _advice(record: Record) -> str:
    return f"'mire catalog pull --namespaces {record['namespace']}' brings its catalog up to date"
