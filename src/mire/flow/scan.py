"""Reading the versions of many names into catalog rows; runs in this process or in several.

Owns: what one name contributes to the catalog.
Must not know: SQLite.
Keeps: everything a task needs is in its arguments, so that it can run anywhere.
"""

import os
from dataclasses import dataclass
from functools import lru_cache

from mire.edge import clock, files, walk
from mire.edge.catalog import SealedRow, sealed
from mire.errors import FormatError, MireError
from mire.flow.read import METADATA_BYTES_MAX, numbers_in
from mire.model.artifact import Metadata, ModelRef, NameState
from mire.model.names import ModelId, ModelType, Namespace
from mire.model.row import FileIdentity, NameKey, row_of
from mire.plan.write import published_number, visible_numbers
from mire.wire.export import tags_text
from mire.wire.latest import decode_highest, decode_latest
from mire.wire.layout import DATA, HIGHEST, LATEST, METADATA, RAW
from mire.wire.metadata import check_agrees, decode_metadata

_RACY_NS = 2_000_000_000
"""A directory changed this recently may change again without its time moving: its identity is not kept."""

_PARTS_MIN = 4

Known = tuple[FileIdentity, bool]
"""The metadata file a version was read from, and whether the version can grow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameScan:
    """What a look into one name's directory gave; `rows` holds only versions whose files changed."""

    path: str
    identity: str
    streaming: int
    """The latest version, if it can grow: then its file is part of the identity. Else 0."""
    numbers: tuple[int, ...]
    latest: int | None
    rows: tuple[SealedRow, ...]
    errors: tuple[str, ...]
    scanned_ns: int
    """When the look began: of two looks at one name the later one counts."""


def key_of(path: str, namespace: Namespace) -> NameKey | None:
    """The name a directory stands for, by its place: `data/<type…>/<id>/<name>`."""
    parts = path.split("/")
    if len(parts) < _PARTS_MIN or parts[0] != DATA:
        return None
    model = ModelRef(model_type=ModelType("/".join(parts[1:-2])), model_id=ModelId(parts[-2]))
    return NameKey(namespace=namespace, model=model, name=parts[-1])


def is_name_dir(root: str, path: str) -> bool:
    """Whether a directory is that of a data name: it has a marker, or a version with metadata."""
    directory = os.path.join(root, path)
    if os.path.lexists(os.path.join(directory, LATEST)) or os.path.lexists(os.path.join(directory, HIGHEST)):
        return True
    try:
        entries = files.list_dir(directory)
    except MireError:
        return False  # then the walk enters it, fails as well, and reports it
    return any(
        entry.is_dir and entry.name.isdigit() and files.is_file(os.path.join(directory, entry.name, METADATA))
        for entry in entries
    )


def scan_names(
    root: str,
    namespace: Namespace,
    paths: list[str],
    known: dict[str, dict[int, Known]],
    *,
    trusted: bool = False,
) -> list[NameScan]:
    """Look into many names; versions whose metadata file is still the one in `known` are not read again.

    `trusted` does not even look at their files, the latest's excepted: for who holds the model and knows what changed.
    """
    return [_scan(root, namespace, path, known.get(path, {}), trusted=trusted) for path in paths]


def _scan(root: str, namespace: Namespace, path: str, known: dict[int, Known], *, trusted: bool) -> NameScan:
    now_ns = clock.now_ns()
    directory = os.path.join(root, path)
    key = key_of(path, namespace)
    identity = walk.identity_at(directory)
    if key is None or identity is None:
        return NameScan(
            path=path, identity="", streaming=0, numbers=(), latest=None, rows=(), errors=(), scanned_ns=now_ns
        )
    state = _state_of(directory)
    read: list[tuple[Metadata, FileIdentity, bool]] = []
    numbers: list[int] = []
    errors: list[str] = []
    growing: dict[int, FileIdentity] = {}
    visible = visible_numbers(state)
    for number in visible:
        place = f"{directory}/{number}"
        kept = known.get(number)
        if kept is not None:
            is_same = trusted and number != visible[-1] and number != state.marker
            if is_same or walk.identity_at(f"{place}/{METADATA}") == kept[0]:
                numbers.append(number)
                if kept[1]:
                    growing[number] = kept[0]
                continue
        try:
            found = _read(place, number)
        except MireError as error:
            errors.append(f"{place}: {error.message}")
            continue
        if found is not None:
            numbers.append(number)
            read.append(found)
            if found[0].streaming:
                growing[number] = found[1]
    latest = published_number(state) or (numbers[-1] if numbers else None)
    file = growing.get(latest or 0)
    newest_ns = max(identity.mtime_ns, identity.ctime_ns, file.ctime_ns if file else 0)
    is_settled = not errors and now_ns - newest_ns > _RACY_NS
    return NameScan(
        path=path,
        identity=identity_text(identity, file) if is_settled else "",
        streaming=latest if file and latest else 0,
        numbers=tuple(numbers),
        latest=latest,
        rows=tuple(
            sealed(row_of(key, metadata, found, latest=latest, is_hydrated=is_hydrated, tags=_tags_text(metadata)))
            for metadata, found, is_hydrated in read
        ),
        errors=tuple(errors),
        scanned_ns=now_ns,
    )


def identity_text(directory: FileIdentity, file: FileIdentity | None) -> str:
    """A name's identity as the catalog keeps it: its directory, and the one file that may change in place."""
    text = f"{directory.mtime_ns} {directory.ctime_ns} {directory.inode}"
    return text if file is None else f"{text} {file.mtime_ns} {file.ctime_ns} {file.inode}"


def present_identity(root: str, path: str, directory: FileIdentity, streaming: int) -> str:
    """The identity a name has now, to be compared with the one the catalog kept."""
    file = walk.identity_at(os.path.join(root, path, str(streaming), METADATA)) if streaming else None
    return identity_text(directory, file)


def _state_of(directory: str) -> NameState:
    marker = files.read_marker(os.path.join(directory, LATEST))
    highest = files.read_file(os.path.join(directory, HIGHEST), limit=64)
    return NameState(
        numbers=numbers_in(directory),
        marker=None if marker is None else decode_latest(marker),
        highest=decode_highest(highest or b""),
    )


def _read(place: str, number: int) -> tuple[Metadata, FileIdentity, bool] | None:
    found = files.read_identified(f"{place}/{METADATA}", limit=METADATA_BYTES_MAX)
    if found is None:
        return None
    data, identity = found
    if len(data) > METADATA_BYTES_MAX:
        raise FormatError(f"metadata is larger than {METADATA_BYTES_MAX} bytes")
    metadata = decode_metadata(data)
    check_agrees(metadata, metadata.name, number)
    return metadata, identity, files.size_of(f"{place}/{RAW}") is not None


def _tags_text(metadata: Metadata) -> str:
    return _json_text(tuple(metadata.tags.items()))


@lru_cache(maxsize=1024)
def _json_text(tags: tuple[tuple[str, str], ...]) -> str:
    return tags_text(dict(tags))
