"""Reading artifacts: what a name shows, which version answers a lookup, which models and names there are.

Owns: lookups (renames followed), listings, checked content.
Must not know: locks, writing.
Keeps: what is handed out matches its recorded size and checksum, or is a typed error.
"""

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO

from mire.edge import files
from mire.errors import FormatError, InputError, MireError, NotFoundError, shown
from mire.flow.datastore import Datastore
from mire.model.artifact import Metadata, ModelRef, NameState
from mire.model.names import (
    PRIVATE_PREFIX,
    DataName,
    ModelId,
    ModelType,
    RelPath,
    parse_data_name,
    parse_model_id,
    parse_model_type,
)
from mire.plan.write import HOPS_MAX, is_visible, published_number, visible_numbers
from mire.wire.latest import decode_highest, decode_latest
from mire.wire.layout import DATA, HIGHEST, LATEST, METADATA, RAW, model_dir, name_dir, version_dir
from mire.wire.metadata import check_agrees, decode_metadata

_NUMBER = re.compile(r"[1-9]\d{0,15}", re.ASCII)
_LEADING = re.compile(r"\+?0*(\d{1,15})", re.ASCII)
METADATA_BYTES_MAX = 1 << 20
_LOOKS_MAX = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One version of a name: its metadata, and its content when asked for."""

    model: ModelRef
    metadata: Metadata
    path: str
    bring: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    """Fetches content that is still at the remote; None where there is no remote."""

    @property
    def name(self) -> DataName:
        """The name it stands under (the new one, when the lookup followed a rename)."""
        return self.metadata.name

    @property
    def version(self) -> int:
        """Its version number."""
        return self.metadata.version

    def open(self) -> BinaryIO:
        """The content as an open file, its size checked; `verify()` checks the rest."""
        size = self._check_size()
        file = self._opened()
        recorded = self.metadata.size_bytes
        return file if recorded is None or recorded == size else io.BufferedReader(_Prefix(file, recorded))

    def chunks(self) -> Iterator[bytes]:
        """The content in pieces, verified by the end."""
        digest = hashlib.sha256()
        self._check_size()
        with self._opened() as file:
            for chunk in files.chunks_from(file, self.metadata.size_bytes):
                digest.update(chunk)
                yield chunk
        if self.metadata.checksum not in (None, digest.hexdigest()):
            raise self._damaged(f"has SHA-256 {digest.hexdigest()}, recorded is {self.metadata.checksum}")

    def verify(self) -> None:
        """Read everything once and compare it with the recorded size and checksum."""
        for _ in self.chunks():
            pass

    def bytes(self) -> bytes:
        """The content, verified."""
        return b"".join(self.chunks())

    def text(self) -> str:
        """The content as UTF-8 text."""
        data = self.bytes()
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{self.label} is not UTF-8 text (byte {error.start}): read it with bytes()", kind="not_text"
            ) from None

    def json(self) -> Any:
        """The content parsed as JSON."""
        try:
            return json.loads(self.text())
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{self.label} is not JSON: {error}", kind="not_json") from None

    @property
    def label(self) -> str:
        """The artifact in words, for messages."""
        return f"{shown(self.name)} version {self.version} of {self.model}"

    def _check_size(self) -> int:
        size = files.size_of(self.path)
        recorded = self.metadata.size_bytes
        if size is None and self.bring is not None:
            self.bring()
            size = files.size_of(self.path)
        if size is None:
            raise self._missing()
        # Behind the recorded size of streaming data are bytes of an append that was never finished.
        if recorded is not None and (size < recorded or (size > recorded and not self.metadata.streaming)):
            raise self._damaged(f"has {size} bytes, recorded are {recorded}")
        return size

    def _opened(self) -> BinaryIO:
        try:
            return files.open_read(self.path)
        except NotFoundError:
            raise self._missing() from None

    def _missing(self) -> NotFoundError:
        if not files.is_file(os.path.join(os.path.dirname(self.path), METADATA)):
            return NotFoundError(f"{self.label} was deleted while it was being read", kind="deleted", path=self.path)
        return NotFoundError(
            f"the content of {self.label} is not here: it was never finished, or was lost",
            kind="content_missing",
            path=self.path,
        )

    def _damaged(self, why: str) -> FormatError:
        return FormatError(
            f"the content of {self.label} is damaged: it {why}; restore {shown(self.path)} from a copy",
            kind="damaged",
            path=self.path,
        )


class _Prefix(io.RawIOBase):
    """The first bytes of an open file, for streaming data that has unfinished bytes behind them."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        super().__init__()
        self._file = file
        self._left = length

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def look_at_marks(ds: Datastore, model: ModelRef, name: DataName) -> NameState:
    """What the two small files of a name say: enough for a lookup, whatever the number of versions."""
    directory = ds.path_of(name_dir(model, name))
    marker = files.read_marker(os.path.join(directory, LATEST))
    highest = files.read_file(os.path.join(directory, HIGHEST), limit=64)
    return NameState(marker=None if marker is None else decode_latest(marker), highest=decode_highest(highest or b""))


def look_at_name(ds: Datastore, model: ModelRef, name: DataName) -> NameState:
    """What is in the directory of a name, its version directories included."""
    directory = ds.path_of(name_dir(model, name))
    taken = 0
    for entry in files.list_dir(directory):
        if entry.is_dir and (leading := _LEADING.match(entry.name)):
            # Other clients read "3abc" as 3, so it takes the number, though it is no version of ours.
            taken = max(taken, int(leading[1]))
    return replace(look_at_marks(ds, model, name), numbers=numbers_in(directory), taken=taken)


def numbers_in(directory: str) -> tuple[int, ...]:
    """The version directories in a name's directory, finished or not, ascending."""
    found = (entry.name for entry in files.list_dir(directory) if entry.is_dir and _NUMBER.fullmatch(entry.name))
    return tuple(sorted(map(int, found)))


def finished_numbers(ds: Datastore, model: ModelRef, name: DataName, state: NameState) -> list[int]:
    """The versions a reader may see, ascending: visible, and their metadata exists."""
    directory = ds.path_of(name_dir(model, name))
    return [n for n in visible_numbers(state) if files.is_file(os.path.join(directory, str(n), METADATA))]


def load_metadata(ds: Datastore, model: ModelRef, name: DataName, version: int) -> Metadata | None:
    """The metadata of a version, or None when it has none (it was never finished)."""
    path = ds.path_of(name_dir(model, name)) + f"/{version}/{METADATA}"
    with naming(path):
        files.check_inside(path, ds.root_of(name_dir(model, name)))
        data = files.read_file(path, limit=METADATA_BYTES_MAX)
        if data is None:
            return None
        if len(data) > METADATA_BYTES_MAX:
            raise FormatError(f"metadata is larger than {METADATA_BYTES_MAX} bytes")
        metadata = decode_metadata(data)
        check_agrees(metadata, name, version)
        return metadata


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Format errors of the block say which file they are about."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{shown(path)}: {error.message}", kind=error.kind, path=path) from None


def current_metadata(ds: Datastore, model: ModelRef, name: DataName) -> Metadata | None:
    """The metadata of the latest version as it stands, or None when the name has no version."""
    state = look_at_marks(ds, model, name)
    number, metadata = published_number(state), None
    for _ in range(_LOOKS_MAX):
        number = published_number(state)
        finished = versions(ds, model, name) if number is None else []
        metadata = load_metadata(ds, model, name, number or (finished or [0])[-1])
        # What is not there may have been deleted since we looked; then the marks have changed as well.
        before, state = state, look_at_marks(ds, model, name)
        if metadata is not None or state == before:
            break
    if number is not None and metadata is None:
        rest = ", ".join(map(str, versions(ds, model, name))) or "none"
        raise NotFoundError(
            f"'latest' of {shown(name)} says version {number}, which has no metadata here;"
            f" versions that can be read by number: {rest}",
            kind="dangling_latest",
            name=name,
            version=number,
        )
    return metadata


def latest_metadata(ds: Datastore, model: ModelRef, name: DataName) -> Metadata:
    """The metadata a lookup without a version answers with: renames are followed, up to five."""
    asked = name
    for _ in range(HOPS_MAX + 1):
        metadata = current_metadata(ds, model, name)
        if metadata is None:
            raise not_found(ds, model, name)
        if metadata.renamed_to is None:
            return metadata
        try:
            name = parse_data_name(metadata.renamed_to)
        except InputError as error:
            raise FormatError(f"{shown(name)} of {model} forwards to a name that cannot be: {error.message}") from None
    raise NotFoundError(
        f"{shown(asked)} of {model} was renamed more than {HOPS_MAX} times: ask for its present name",
        kind="too_many_renames",
        name=asked,
    )


def get(ds: Datastore, model: ModelRef, name: DataName, version: int | None = None) -> Artifact:
    """A version of a name; without a number the latest, under whatever name it has now."""
    if version is None:
        metadata = latest_metadata(ds, model, name)
        for _ in range(_LOOKS_MAX):
            if files.size_of(artifact_of(ds, model, metadata).path) is not None:
                break
            before, metadata = metadata, latest_metadata(ds, model, name)
            if metadata == before:
                break
        if metadata.is_deleted:
            raise NotFoundError(
                f"{shown(metadata.name)} of {model} was deleted at {metadata.created_at}:"
                f" read an earlier version by number (its marker is version {metadata.version})",
                kind="deleted",
                name=metadata.name,
                version=metadata.version,
            )
    else:
        found = None
        if is_visible(look_at_marks(ds, model, name), version):
            found = load_metadata(ds, model, name, version)
        if found is None:
            raise not_found(ds, model, name, version)
        metadata = found
    return artifact_of(ds, model, metadata)


def artifact_of(ds: Datastore, model: ModelRef, metadata: Metadata) -> Artifact:
    """The artifact metadata describes; a content file that links out of the store is refused."""
    directory = ds.path_of(name_dir(model, metadata.name))
    path = os.path.join(directory, str(metadata.version), RAW)
    files.check_inside(path, ds.root_of(name_dir(model, metadata.name)))
    bring = None
    if ds.remote is not None:
        bring = partial(_bring, ds, RelPath(f"{name_dir(model, metadata.name)}/{metadata.version}/{RAW}"))
    return Artifact(model=model, metadata=metadata, path=path, bring=bring)


def _bring(ds: Datastore, rel: RelPath) -> None:
    from mire.flow.hydrate import hydrate_content  # noqa: PLC0415 - only cached datastores need it

    hydrate_content(ds, rel)


def not_found(ds: Datastore, model: ModelRef, name: DataName, version: int | None = None) -> NotFoundError:
    """The error of a lookup that found nothing."""
    what = f"{shown(name)}" if version is None else f"version {version} of {shown(name)}"
    return NotFoundError(
        f"{model} has no {what}: see 'mire ls {model.model_type} {model.model_id}'{_hint(ds)}",
        model_type=model.model_type,
        model_id=model.model_id,
        name=name,
        version=version,
    )


def _hint(ds: Datastore) -> str:
    if ds.remote is None:
        return ""
    from mire.flow.age import hint_never_pulled  # noqa: PLC0415 - only cached datastores need it

    return hint_never_pulled(ds)


def versions(ds: Datastore, model: ModelRef, name: DataName) -> list[int]:
    """The version numbers of a name, ascending."""
    state = look_at_name(ds, model, name)
    for _ in range(_LOOKS_MAX):
        finished = finished_numbers(ds, model, name, state)
        # All that were listed may have been removed since, and others written; then a second look differs.
        if finished or not state.numbers:
            return finished
        before, state = state, look_at_name(ds, model, name)
        if state == before:
            return []
    return finished_numbers(ds, model, name, state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a listing: metadata, or what is wrong with it."""

    name: str
    version: int | None
    metadata: Metadata | None
    error: str | None = None


def history(ds: Datastore, model: ModelRef, name: DataName) -> list[Row]:
    """Every version of a name, ascending; a damaged one is a row that says so."""
    for _ in range(_LOOKS_MAX):
        rows = [_row(ds, model, name, number) for number in versions(ds, model, name)]
        if not rows:
            break
        found = [row for row in rows if row.metadata is not None or row.error is not None]
        if found:  # else all that were listed have been deleted meanwhile, and others may have come
            return found
    raise not_found(ds, model, name)


def _row(ds: Datastore, model: ModelRef, name: DataName, number: int) -> Row:
    try:
        return Row(name=name, version=number, metadata=load_metadata(ds, model, name, number))
    except MireError as error:
        return Row(name=name, version=number, metadata=None, error=error.message)


def names(ds: Datastore, model: ModelRef) -> list[Row]:
    """The names of a model with their latest versions (tombstones included); damage is a row that says so."""
    rows = []
    for name in _listed(ds, model_dir(model)):
        try:
            metadata = current_metadata(ds, model, parse_data_name(name))
        except MireError as error:
            rows.append(Row(name=name, version=None, metadata=None, error=error.message))
            continue
        if metadata is not None:
            rows.append(Row(name=name, version=metadata.version, metadata=metadata))
    return rows


def _listed(ds: Datastore, directory: str) -> list[str]:
    found = {
        entry.name
        for root in ds.data_roots()
        for entry in files.list_dir(os.path.join(root, directory))
        if entry.is_dir and not entry.name.startswith(PRIVATE_PREFIX)
    }
    return sorted(found)


def models(ds: Datastore, model_type: ModelType | None = None) -> list[ModelRef]:
    """Every model that has data, by type and id."""
    start = f"{DATA}/{model_type}" if model_type else DATA
    found: set[tuple[str, str]] = set()
    for root in ds.data_roots():
        files.check_inside(os.path.join(root, start), root)
        found.update(_walk_models(os.path.join(root, start), model_type or ""))
    return [ModelRef(model_type=ModelType(kind), model_id=ModelId(model_id)) for kind, model_id in sorted(found)]


def _walk_models(directory: str, model_type: str) -> Iterator[tuple[str, str]]:
    """Model directories below: those with a child directory that holds a version with metadata."""
    for entry in files.list_dir(directory):
        path = os.path.join(directory, entry.name)
        if not entry.is_dir or os.path.islink(path) or not _is_listable(entry.name):
            continue
        if model_type and _has_data(path):
            yield model_type, entry.name
        else:
            yield from _walk_models(path, f"{model_type}/{entry.name}" if model_type else entry.name)


def _has_data(directory: str) -> bool:
    return any(
        _NUMBER.fullmatch(number.name) and files.is_file(os.path.join(directory, name.name, number.name, METADATA))
        for name in files.list_dir(directory)
        if name.is_dir
        for number in files.list_dir(os.path.join(directory, name.name))
        if number.is_dir
    )


def _is_listable(segment: str) -> bool:
    try:
        parse_model_id(segment)
    except InputError:
        return False
    return True


def model_ref(model_type: object, model_id: object) -> ModelRef:
    """A model from its type (normalized here) and id."""
    return ModelRef(model_type=parse_model_type(model_type), model_id=parse_model_id(model_id))


def version_path(ds: Datastore, model: ModelRef, name: DataName, version: int) -> str:
    """The directory of a version on disk."""
    return os.path.join(ds.root_of(name_dir(model, name)), version_dir(model, name, version))
