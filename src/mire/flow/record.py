"""Records: method executions, workflow runs and audit events pass through the datastore here.

Owns: saving, finding and listing them.
Must not know: artifacts.
Keeps: what is saved was first decoded from its own bytes, so nothing the reference would refuse is written.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar, assert_never

from mire.edge import clock, files
from mire.errors import ConflictError, FormatError, InputError, MireError, NotFoundError, shown
from mire.flow.datastore import Datastore
from mire.flow.lock import hold_models
from mire.flow.mark import marking
from mire.flow.read import naming
from mire.model.artifact import ModelRef
from mire.model.instant import Instant, datetime_of, instant_of, parse_instant
from mire.model.names import (
    MethodName,
    ModelId,
    ModelType,
    RelPath,
    Uuid,
    parse_method_name,
    parse_model_type,
    parse_rel_path,
    parse_uuid,
)
from mire.model.record import AuditEvent, CommandEvent, Output, Run, VaultEvent
from mire.wire.layout import AUDIT, OUTPUTS, RUNS, audit_path, output_dir, output_path, run_dir, run_path
from mire.wire.record import (
    COMMANDS,
    VAULT,
    VAULT_LEGACY,
    decode_event,
    decode_output,
    decode_run,
    encode_event,
    encode_output,
    encode_run,
)

T = TypeVar("T")
_RUN_PREFIX = "workflow-run-"
_RUNS_INDEX = ".runs-index.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    """A record that could not be read."""

    path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """Records in order, and those that could not be read; iterating gives the records."""

    items: tuple[T, ...]
    damaged: tuple[Damaged, ...] = ()

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def start_output(ds: Datastore, output: Output) -> Output:
    """Write the record of an execution that begins; of two that begin in one millisecond one moves on."""
    while True:
        try:
            return save_output(ds, output)
        except ConflictError as error:
            if error.kind != "exists":
                raise
        later = datetime_of(output.started_at) + timedelta(milliseconds=1)
        output = replace(output, started_at=instant_of(later))


def save_output(ds: Datastore, output: Output) -> Output:
    """Write the record of a method execution; saving it again under the same start replaces it."""
    model_type = parse_model_type(output.model_type)
    data = _encoded(lambda: encode_output(output))
    checked = _checked(lambda: decode_output(data, model_type))
    rel_path = output_path(model_type, checked.method_name, checked.definition_id, checked.started_at)
    model = ModelRef(model_type=model_type, model_id=ModelId(checked.definition_id))
    with hold_models(ds, [model]) as hold:
        _check_same(ds, rel_path, checked)
        _store(ds, rel_path, data, hold.check)
    return checked


def _check_same(ds: Datastore, rel_path: RelPath, output: Output) -> None:
    """A file is named by definition and start, so another execution may stand there: it is not ours to replace."""
    path = ds.path_of(rel_path)
    data = files.read_file(path)
    if data is None:
        return
    with naming(path):
        stored = decode_output(data, output.model_type)
    if stored.id != output.id:
        raise ConflictError(
            f"another execution of {output.method_name} began at {output.started_at}: start this one later",
            kind="exists",
            id=stored.id,
        )


def save_run(ds: Datastore, run: Run) -> Run:
    """Write the record of a workflow run."""
    data = _encoded(lambda: encode_run(run))
    checked = _checked(lambda: decode_run(data))
    with hold_models(ds, []) as hold:
        _store(ds, run_path(checked.workflow_id, checked.id), data, hold.check)
        # The reference's summary is judged by its number of entries only, so a changed status would be missed.
        summary = os.path.join(ds.local, run_dir(checked.workflow_id), _RUNS_INDEX)
        files.check_inside(summary, ds.local)
        files.remove_file(summary)
    return checked


def _encoded(encode: Callable[[], bytes]) -> bytes:
    try:
        return encode()
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"the record cannot be written: {error}", kind="bad_record") from None


def _checked(decode: Callable[[], T]) -> T:
    try:
        return decode()
    except FormatError as error:
        raise InputError(error.message, kind="bad_record") from None


def _store(ds: Datastore, rel_path: RelPath, data: bytes, check: Callable[[], None]) -> None:
    path = ds.path_of(parse_rel_path(rel_path))
    files.make_dirs(os.path.dirname(path))
    with marking(ds, path):
        check()
        files.write_file(path, [data])


def list_outputs(
    ds: Datastore, model_type: ModelType | None = None, method: MethodName | None = None
) -> Listing[Output]:
    """Method executions, newest first."""
    start = OUTPUTS if model_type is None else RelPath(f"{OUTPUTS}/{model_type}")
    start = start if model_type is None or method is None else output_dir(model_type, method)
    found: dict[str, Output] = {}
    damaged = []
    for path, rel_path in _record_files(ds, start, ".yaml"):
        parts = rel_path.split("/")
        kind = ModelType("/".join(parts[1:-2]))
        if model_type not in (None, kind) or method not in (None, parts[-2]):
            continue
        try:
            found.setdefault(rel_path, _load(path, partial(decode_output, model_type=kind)))
        except MireError as error:
            damaged.append(Damaged(path=path, message=error.message))
    items = sorted(found.values(), key=lambda output: (time_of(output.started_at), output.id), reverse=True)
    return Listing(items=tuple(items), damaged=tuple(damaged))


def list_runs(ds: Datastore, workflow_id: Uuid | None = None) -> Listing[Run]:
    """Workflow runs, newest first."""
    start = RUNS if workflow_id is None else run_dir(workflow_id)
    found: dict[str, Run] = {}
    damaged = []
    for path, rel_path in _record_files(ds, start, ".yaml"):
        if not os.path.basename(path).startswith(_RUN_PREFIX):
            continue
        try:
            found.setdefault(rel_path, _load(path, decode_run))
        except MireError as error:
            damaged.append(Damaged(path=path, message=error.message))
    items = sorted(found.values(), key=lambda run: (time_of(run.started_at), run.id), reverse=True)
    return Listing(items=tuple(items), damaged=tuple(damaged))


def get_output(ds: Datastore, output_id: str) -> Output:
    """The method execution with an id."""
    wanted = parse_uuid(output_id, "output id")
    for output in list_outputs(ds):
        if output.id == wanted:
            return output
    raise NotFoundError(f"there is no output {shown(output_id)}: see 'mire log --kind output'", id=output_id)


def get_run(ds: Datastore, workflow_id: str, run_id: str) -> Run:
    """One run of a workflow."""
    rel_path = run_path(parse_uuid(workflow_id, "workflow id"), parse_uuid(run_id, "run id"))
    for path in _places(ds, rel_path):
        if files.is_file(path):
            return _load(path, decode_run)
    raise NotFoundError(
        f"workflow {shown(workflow_id)} has no run {shown(run_id)}: see 'mire log --kind run'", id=run_id
    )


def _places(ds: Datastore, rel_path: RelPath) -> tuple[str, ...]:
    """Where a record may be: its tier, then the local one, where the reference also writes some of them."""
    routed = ds.path_of(rel_path)
    local = os.path.join(ds.local, rel_path)
    return (routed,) if routed == local else (routed, local)


def _load(path: str, decode: Callable[[bytes], T]) -> T:
    with naming(path):
        data = files.read_file(path)
        if data is None:
            raise NotFoundError(f"{shown(path)} is not there", path=path)
        return decode(data)


def _record_files(ds: Datastore, start: RelPath, suffix: str) -> Iterator[tuple[str, str]]:
    """The files below a directory in both tiers, with the path inside the tier; links are not followed."""
    for root in ds.roots():
        pending = [os.path.join(root, start)]
        files.check_inside(pending[0], root)
        while pending:
            directory = pending.pop()
            for entry in files.list_dir(directory):
                path = os.path.join(directory, entry.name)
                if os.path.islink(path):
                    continue
                if entry.is_dir:
                    pending.append(path)
                elif entry.name.endswith(suffix) and not entry.name.startswith("."):
                    rel = RelPath(os.path.relpath(path, root))
                    if not _is_left_behind(ds, path, rel):
                        yield path, rel


def _is_left_behind(ds: Datastore, path: str, rel: RelPath) -> bool:
    """Whether a file stayed in the repository when its datastore was moved elsewhere, and is there now."""
    home = os.path.join(ds.root_of(rel), rel)
    if home == path or not files.is_file(home):
        return False
    # A record is one file, whatever became of it since; a day's events may have gone on in both places.
    return not rel.endswith(".jsonl") or (files.read_file(home) or b"").startswith(files.read_file(path) or b"")


def append_event(ds: Datastore, event: AuditEvent) -> AuditEvent:
    """Append an audit event to the file of its day."""
    match event:
        case CommandEvent():
            prefix = COMMANDS
        case VaultEvent():
            prefix = VAULT
        case _:
            assert_never(event)
    line = _encoded(lambda: encode_event(event))
    checked = _checked(lambda: decode_event(line, is_vault=prefix == VAULT))
    with hold_models(ds, []):
        path = ds.path_of(audit_path(prefix, day_of(checked.timestamp)))
        files.make_dirs(os.path.dirname(path))
        with marking(ds, path):
            files.append_line(path, line)
    return checked


def time_of(instant: Instant | None) -> datetime:
    """When something happened, for sorting: equal times are equal however they are written."""
    return datetime.min.replace(tzinfo=UTC) if instant is None else datetime_of(instant)


def day_of(instant: Instant) -> str:
    """The UTC day of an instant, as audit files are named."""
    return f"{datetime_of(instant):%Y-%m-%d}"


def list_events(ds: Datastore, since: str | None = None) -> Listing[AuditEvent]:
    """Audit events of all kinds, newest first; lines that cannot be read are counted, not hidden."""
    first_day = None if since is None else day_of(parse_instant(since, "since"))
    events: list[AuditEvent] = []
    damaged = []
    for path, _ in _record_files(ds, AUDIT, ".jsonl"):
        kind, day = _audit_name(os.path.basename(path))
        if kind is None or (first_day is not None and day < first_day):
            continue
        data = files.read_file(path) or b""
        for number, line in enumerate(data.split(b"\n"), start=1):
            if not line.strip():
                continue
            try:
                events.append(decode_event(line, is_vault=kind != COMMANDS))
            except FormatError as error:
                damaged.append(Damaged(path=f"{path}:{number}", message=error.message))
    if since is not None:
        start = time_of(parse_instant(since, "since"))
        events = [event for event in events if time_of(event.timestamp) >= start]
    # Of one millisecond the line written last is the newest, so they are sorted as written and then turned around.
    events.sort(key=lambda event: time_of(event.timestamp))
    events.reverse()
    return Listing(items=tuple(events), damaged=tuple(damaged))


def _audit_name(name: str) -> tuple[str | None, str]:
    for prefix in (COMMANDS, VAULT, VAULT_LEGACY):
        if name.startswith(f"{prefix}-"):
            return prefix, name[len(prefix) + 1 : -len(".jsonl")]
    return None, ""


def new_output(
    model_type: object, definition_id: object, method: object, *, provenance: dict[str, Any] | None = None
) -> Output:
    """The record of an execution that starts now."""
    return Output(
        model_type=parse_model_type(model_type),
        id=clock.new_uuid(),
        definition_id=parse_uuid(definition_id, "definition id"),
        method_name=parse_method_name(method),
        status="running",
        started_at=clock.now_instant(),
        provenance={
            "definitionHash": "unknown",
            "modelVersion": "0",
            "triggeredBy": "manual",
            **(provenance or {}),
        },
        pid=os.getpid(),
    )


def ended_output(output: Output, status: str, *, error: str | None = None, artifacts: Any = None) -> Output:
    """The record of an execution that ends now."""
    now = clock.now()
    elapsed = now - datetime_of(output.started_at)
    return replace(
        output,
        status=status,
        completed_at=clock.now_instant(),
        duration_ms=max(0, round(elapsed.total_seconds() * 1000)),
        error=output.error if error is None else {"message": error},
        artifacts=output.artifacts if artifacts is None else {"dataArtifacts": list(artifacts)},
    )


def new_run(workflow_id: object, workflow_name: str, *, tags: dict[str, str] | None = None) -> Run:
    """The record of a run that starts now."""
    return Run(
        id=clock.new_uuid(),
        workflow_id=parse_uuid(workflow_id, "workflow id"),
        workflow_name=workflow_name,
        status="running",
        started_at=clock.now_instant(),
        tags=tags or {},
    )
