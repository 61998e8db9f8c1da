"""Rows of each table, made where a task runs.

Owns: what the entries of a piece become, by table.
Must not know: which columns are handed out, what becomes of damaged rows.
Keeps: what cannot be read or understood is a row with `_error`; a store that fails is an error, never fewer rows. In
memory are the versions that are being read, never all of a name.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from mire.edge.remote import Remote
from mire.errors import FormatError, InputError, NotFoundError, shown
from mire.model.artifact import ModelRef
from mire.model.index import Damaged, Entry
from mire.model.names import ModelId, ModelType, Namespace
from mire.model.row import NameKey
from mire.pipeline.frames import ARTIFACTS, FILES, OUTPUTS, RUNS, VERSIONS
from mire.pipeline.source.names import VERSION_END, NameSeen, Published, names_of, published
from mire.pipeline.source.piece import Piece
from mire.pipeline.source.share import Share, each
from mire.pipeline.source.table import Row
from mire.pipeline.stages.parse import AT_ONCE, Wanted, failed_row, read_version
from mire.pipeline.store import open_spec
from mire.plan.source import Only, Wish, is_wished
from mire.wire import layout
from mire.wire.record import decode_output, decode_run, output_document, run_document

_SUFFIX: Final = ".yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a task is to make of its piece; small, for it travels with every task."""

    table: str
    wanted: Wanted
    wishes: tuple[Wish, ...] = ()
    only: Only = field(default_factory=Only)

    def takes(self, key: NameKey) -> bool:
        """Whether a name is wanted, by its place."""
        if not self.only.takes(key):
            return False
        return not self.wishes or is_wished(f"{layout.DATA}/{key.model}/{key.name}", self.wishes)


def rows_of(piece: Piece, request: Request) -> Iterator[Row]:
    """The rows of one piece."""
    for part in piece.parts():
        yield from _of_names(part, request) if part.form == "names" else _of_part(part, request)


def _of_part(part: Piece, request: Request) -> Iterator[Row]:
    share, namespace = Share(open_spec(part.spec), part), part.spec.namespace
    yield from _MAKERS[request.table](share, namespace, request)
    blank = (None,) * (_WIDTHS[request.table] - 2)
    for partition, why in share.damage:
        yield (namespace, *blank, f"the shard {shown(partition)} of the index is skipped: {why}")


def _files(share: Share, namespace: Namespace, _: Request) -> Iterator[Row]:
    for rel, partition, entry in share.entries():
        if isinstance(entry, Damaged):
            yield (namespace, rel, partition, None, None, None, None, None, f"{shown(rel)} {entry.reason}")
        else:
            extra = json.dumps(dict(entry.extra)) if entry.extra else None
            said = (entry.size_bytes, entry.last_modified, entry.local_mtime, entry.sha256, extra)
            yield (namespace, rel, partition, *said, None)


def _seen(share: Share, namespace: Namespace, request: Request) -> list[NameSeen]:
    return names_of(share.paths(VERSION_END), namespace, request.takes)


def _versions(share: Share, namespace: Namespace, request: Request) -> Iterator[Row]:
    def one(name: NameSeen) -> list[Row]:
        return _version_rows(share, name, request)

    for _, rows in each(share.piece, one, _seen(share, namespace, request), at_once=AT_ONCE):
        yield from rows


def _version_rows(share: Share, name: NameSeen, request: Request) -> list[Row]:
    head = _head(name.key)
    is_listed = share.piece.form != "directory"
    try:
        seen = published(share.remote, share.find, name, is_latest_only=request.wanted.latest_only, is_listed=is_listed)
    except FormatError as error:
        return [(*head, None, None, None, None, None, error.message)]
    rows: list[Row] = []
    for number in seen.numbers:
        content, is_latest = f"{name.directory}/{number}/{layout.RAW}", number == seen.latest
        said = share.find(content)
        if isinstance(said, Entry):
            rows.append((*head, number, is_latest, said.size_bytes, said.sha256, said.last_modified, None))
        else:
            why = "is not in the index" if said is None else said.reason
            rows.append((*head, number, is_latest, None, None, None, f"{shown(content)} {why}"))
    return rows


def _head(key: NameKey) -> tuple[str, ...]:
    return key.namespace, key.model.model_type, key.model.model_id, key.name


def _artifacts(share: Share, namespace: Namespace, request: Request) -> Iterator[Row]:
    is_listed = share.piece.form != "directory"

    def resolved(name: NameSeen) -> Published | FormatError:
        try:
            return published(
                share.remote, share.find, name, is_latest_only=request.wanted.latest_only, is_listed=is_listed
            )
        except FormatError as error:
            return error

    def found() -> Iterator[_Version | Row]:
        for name, seen in each(share.piece, resolved, _seen(share, namespace, request), at_once=AT_ONCE):
            if isinstance(seen, FormatError):
                yield failed_row(name.key, None, seen.message, is_latest=None)
            else:
                yield from _several(name.key, name.directory, seen.numbers, seen.latest)

    return _read(share.piece, share.remote, found(), request.wanted)


def _of_names(piece: Piece, request: Request) -> Iterator[Row]:
    """The rows of versions that a stream found; their names were chosen by the driver."""
    remote, namespace = open_spec(piece.spec), piece.spec.namespace

    def found() -> Iterator[_Version | Row]:
        for directory, latest, numbers in piece.names:
            yield from _several(_key(namespace, directory), directory, numbers, latest)

    return _read(piece, remote, found(), request.wanted)


def _key(namespace: Namespace, directory: str) -> NameKey:
    kind, model_id, name = directory.removeprefix(f"{layout.DATA}/").rsplit("/", 2)
    model = ModelRef(model_type=ModelType(kind), model_id=ModelId(model_id))
    return NameKey(namespace=namespace, model=model, name=name)


class _Version(NamedTuple):
    """A version that is to be read."""

    key: NameKey
    directory: str
    number: int
    is_latest: bool


def _several(key: NameKey, directory: str, numbers: Iterable[int], latest: int | None) -> Iterator[_Version]:
    return (_Version(key, directory, number, number == latest) for number in numbers)


def _read(piece: Piece, remote: Remote, found: Iterable[_Version | Row], wanted: Wanted) -> Iterator[Row]:
    """The rows of versions, each read for itself: a name can have thousands, with content of any size."""

    def one(item: _Version | Row) -> Row:
        if not isinstance(item, _Version):
            return item
        place = f"{item.directory}/{item.number}"
        return read_version(remote, item.key, place, item.number, wanted, is_latest=item.is_latest)

    return (row for _, row in each(piece, one, found, at_once=AT_ONCE))


def _records(
    share: Share, namespace: Namespace, top: str, width: int, decode: Callable[[str, bytes], Row]
) -> Iterator[Row]:
    """Rows of the records below a directory; `decode` makes all of one but the namespace, path and error."""

    def one(rel: str) -> Row:
        try:
            return (namespace, *decode(rel, share.remote.get(rel).data), rel, None)
        except (FormatError, InputError, NotFoundError) as error:
            return (namespace, *(None,) * (width - 3), rel, f"{shown(rel)}: {error.message}")

    paths = (rel for rel in share.paths(_SUFFIX) if rel.startswith(f"{top}/"))
    for _, row in each(share.piece, one, paths, at_once=AT_ONCE):
        yield row


def _runs(share: Share, namespace: Namespace, _: Request) -> Iterator[Row]:
    return _records(share, namespace, layout.RUNS, len(RUNS), _run)


def _run(_: str, data: bytes) -> Row:
    run = decode_run(data)
    steps = [step for job in run.jobs for step in _steps(job)]
    head = (run.workflow_id, run.workflow_name, run.id, run.status, run.started_at, run.completed_at)
    return (*head, list(run.tags.items()), steps, _json(run_document(run)))


def _steps(job: Any) -> Iterator[dict[str, str | None]]:
    """The steps of a job, as far as they have the shape that everybody writes."""
    found = job.get("steps")
    for step in found if isinstance(found, list) else []:
        if isinstance(step, dict):
            yield {
                "job_name": _text(job.get("jobName")),
                "step_name": _text(step.get("stepName")),
                "status": _text(step.get("status")),
                "started_at": _text(step.get("startedAt")),
                "completed_at": _text(step.get("completedAt")),
                "error": _text(step.get("error")),
            }


def _outputs(share: Share, namespace: Namespace, _: Request) -> Iterator[Row]:
    return _records(share, namespace, layout.OUTPUTS, len(OUTPUTS), _output)


def _output(rel: str, data: bytes) -> Row:
    kind = rel.removeprefix(f"{layout.OUTPUTS}/").rsplit("/", 2)[0]
    output = decode_output(data, ModelType(kind))
    error = None if output.error is None else _text(output.error.get("message"))
    ran = (output.status, output.started_at, output.completed_at, output.duration_ms, output.retry_count)
    head = (kind, output.method_name, output.id, output.definition_id)
    return (*head, *ran, _text(output.provenance.get("triggeredBy")), error, _json(output_document(output)))


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


_MAKERS: Final = {
    "artifacts": _artifacts,
    "versions": _versions,
    "files": _files,
    "runs": _runs,
    "outputs": _outputs,
}
_WIDTHS: Final = {
    "artifacts": len(ARTIFACTS),
    "versions": len(VERSIONS),
    "files": len(FILES),
    "runs": len(RUNS),
    "outputs": len(OUTPUTS),
}
