"""The Python face: `open` gives a `Store`, a store gives `Model`s, a model puts and gets artifacts.

Owns: the shape of the public API: arguments as Python values, checked before anything is touched.
Must not know: files, formats, the command line.

>>> import mire, tempfile
>>> store = mire.open(tempfile.mkdtemp())
>>> vpc = store.model("AWS::EC2::VPC", "vpc-1")
>>> vpc.put("state", {"cidr": "10.0.0.0/16"}, tags={"env": "prod"}).version
1
>>> vpc.get("state").json()
{'cidr': '10.0.0.0/16'}
"""

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from mire.edge import clock, files
from mire.errors import FormatError, InputError, RemoteError, shown
from mire.flow import prune, read, record, remove, rename, retain, settle, write
from mire.flow.answer import Answer
from mire.flow.catalog import close_catalog
from mire.flow.datastore import Datastore, find_repo, open_datastore
from mire.flow.find import find
from mire.flow.hold import HeldName, hold, list_holds, unhold
from mire.flow.imports import Imported, check_others, close_imports, import_catalogs, others_of
from mire.flow.lock import Hold, LockReport, hold_global, hold_models, inspect_locks
from mire.flow.query import Query, query
from mire.flow.read import Artifact, Row
from mire.flow.record import Listing
from mire.flow.remove import Deleted
from mire.flow.rename import Renamed
from mire.flow.retain import Report
from mire.flow.walk import Finding
from mire.flow.write import VERSIONS_KEPT, Draft
from mire.model.artifact import Metadata, ModelRef, Owner, parse_owner
from mire.model.hold import NameHold
from mire.model.instant import parse_instant
from mire.model.lease import Host
from mire.model.lifetime import INFINITE, parse_lifetime, parse_version_policy
from mire.model.names import (
    DataName,
    parse_data_name,
    parse_method_name,
    parse_model_type,
    parse_uuid,
    parse_version,
)
from mire.model.record import AuditEvent, CommandEvent, Output, Run, VaultEvent
from mire.plan.config import Flags

if TYPE_CHECKING:
    from mire.flow.contamination import Contamination
    from mire.flow.namespace_migrate import Migration
    from mire.flow.registry import Registered

Content = bytes | bytearray | memoryview | str | Mapping[str, Any] | list[Any] | os.PathLike[str] | BinaryIO
"""What `put` takes: bytes, text, a dict or list (stored as compact JSON), a path, or an open binary file."""


def open(
    path: str | os.PathLike[str] | None = None,
    *,
    datastore: str | None = None,
    lock_timeout: float | None = None,
    create: bool = True,
    host: Host | None = None,
) -> "Store":
    """Open the datastore of a repository.

    Args:
        path: The repository. None finds it as the command line does: `SWAMP_REPO_DIR`, else the nearest
            directory with `.swamp.yaml` at or above the current one.
        datastore: Another datastore for it, as `filesystem:/path`.
        lock_timeout: Seconds to wait for a lock held by someone else.
        create: Whether the first write may make a directory without `.swamp.yaml` a repository.
        host: Who to lock as; this machine and process unless given.

    >>> import tempfile
    >>> with open(tempfile.mkdtemp()) as store:
    ...     store.models()
    []
    """
    repo = find_repo(os.getcwd()) if path is None else os.path.abspath(os.fspath(path))
    flags = Flags(datastore=datastore, lock_timeout_s=lock_timeout)
    return Store(open_datastore(repo, flags=flags, create=create, host=host))


class Store:
    """An open datastore. Holds no file or connection open between calls; closing it is a courtesy."""

    def __init__(self, datastore: Datastore) -> None:
        self._use(datastore)

    def _use(self, datastore: Datastore) -> None:
        self.datastore = datastore
        self.outputs = Outputs(datastore)
        self.runs = Runs(datastore)
        self.audit = Audit(datastore)

    def model(self, model_type: str, model_id: str, *, name: str | None = None) -> "Model":
        """A model instance; `name` is recorded as the tag `modelName` of what is put (default: the id)."""
        return Model(self.datastore, read.model_ref(model_type, model_id), name)

    def models(self, model_type: str | None = None) -> list["Model"]:
        """Every model that has data: all, or those of a type and of the types below it."""
        wanted = None if model_type is None else parse_model_type(model_type)
        return [Model(self.datastore, ref, None) for ref in read.models(self.datastore, wanted)]

    def query(
        self,
        predicate: str,
        *,
        select: str | None = None,
        order_by: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        cursor: str | None = None,
        history: bool = False,
        hydrate: bool = True,
        strict: bool = False,
        all_namespaces: bool = False,
    ) -> Answer:
        """The versions a CEL predicate matches (the latest of each name, unless history is asked for).

        Versions of other namespaces are among them only if the predicate mentions `ns`, or with `all_namespaces`.

        Rows are read when they are asked for: iterating holds one at a time, `rows`, `len` and `to_arrow` all.

        >>> import tempfile
        >>> store = open(tempfile.mkdtemp())
        >>> _ = store.model("aws/ec2/vpc", "vpc-1").put("state", {"cidr": "10.0.0.0/16"}, tags={"env": "prod"})
        >>> found = store.query("tags.env == 'prod' && attributes.cidr.startsWith('10.')")
        >>> [row["modelId"] for row in found]
        ['vpc-1']
        """
        asked = Query(
            predicate=predicate,
            select=select,
            order_by=order_by,
            limit=limit,
            offset=offset,
            cursor=cursor,
            history=history,
            hydrate=hydrate,
            strict=strict,
            all_namespaces=all_namespaces,
        )
        return query(self.datastore, asked)

    def find(self, model: str, name: str) -> dict[str, Any]:
        """The latest version of a name, with its content, by the name of its model.

        `router` is one of ours, `infra:router` one of the namespace infra, `*:router` whichever has one. A namespace
        before the colon is answered from there, and from nowhere else.

        >>> import tempfile
        >>> store = open(tempfile.mkdtemp())
        >>> _ = store.model("net/router", "r-1", name="router").put("state", {"up": True})
        >>> store.find("router", "state")["content"]
        {'up': True}
        """
        return find(self.datastore, model, name)

    def pull_catalogs(self, *namespaces: str) -> list[Imported]:
        """Import what other namespaces publish: those that are named, else all that are in the store.

        What became of each is told; none keeps another from being imported.
        """
        chosen = check_others(self.datastore, namespaces) if namespaces else others_of(self.datastore)
        return import_catalogs(self.datastore, chosen)

    def retain(self, *, dry_run: bool = False) -> Report:
        """Remove what lifetimes and version policies say has had its day; a dry run only says what that is."""
        return retain.retain(self.datastore, dry_run=dry_run)

    def prune(self, *, dry_run: bool = False) -> Report:
        """Remove the data of models whose definition is gone; a dry run only says which."""
        return prune.prune(self.datastore, dry_run=dry_run)

    def latest(self, model_type: str, model_id: str, name: str) -> Artifact:
        """The latest version of a name."""
        return self.model(model_type, model_id).get(name)

    def holds(self) -> list[HeldName]:
        """Every name with versions that retention must leave alone; a record that cannot be read is an error.

        >>> import tempfile
        >>> store = open(tempfile.mkdtemp())
        >>> model = store.model("aws/ec2/vpc", "vpc-1")
        >>> _ = model.put("state", {"cidr": "10.0.0.0/16"})
        >>> _ = model.hold_back("state", reason="audit until March")
        >>> [(held.name, item.version, item.reason) for held in store.holds() for item in held.holds.items]
        [('state', None, 'audit until March')]
        >>> _ = model.let_go("state")
        >>> store.holds()
        []
        """
        found = list(list_holds(self.datastore))
        for each in found:
            if isinstance(each, Finding):
                raise FormatError(f"what is held of {each.model} cannot be told: {each.message}", kind="damaged")
        return [each for each in found if isinstance(each, HeldName)]

    def hold(self) -> AbstractContextManager[Hold]:
        """Hold the whole datastore for structural work: waits for writers, and keeps new ones out."""
        return hold_global(self.datastore)

    def locks(self) -> list[LockReport]:
        """The locks that exist now."""
        return inspect_locks(self.datastore)

    @property
    def namespace(self) -> str:
        """Our own part of the store; empty without one."""
        return self.datastore.config.namespace

    def namespaces(self) -> "list[Registered]":
        """The namespaces of the store, by name, and which repository has each."""
        from mire.flow.registry import list_namespaces  # noqa: PLC0415 - few programs ask

        return list_namespaces(self.datastore)

    def set_namespace(self, name: str) -> None:
        """Claim a namespace and use it from now on; data at the root stays there until it is migrated.

        >>> import tempfile
        >>> store = open(tempfile.mkdtemp())
        >>> _ = store.model("aws/ec2/vpc", "vpc-1").put("state", {"cidr": "10.0.0.0/16"})
        >>> store.set_namespace("team-a")
        >>> store.namespace, store.models()
        ('team-a', [])
        >>> store.migrate_namespace().files
        3
        >>> [each.namespace for each in store.namespaces()]
        ['team-a']
        """
        from mire.flow.namespace import set_namespace  # noqa: PLC0415 - done once in the life of a repository

        set_namespace(self._settled(), name)
        self._reopen()

    def unset_namespace(self, *, keep: bool = False) -> None:
        """Use no namespace from now on, and give the name back; with `keep` data and claim stay."""
        from mire.flow.namespace import unset_namespace  # noqa: PLC0415 - done once in the life of a repository

        unset_namespace(self._settled(), keep=keep)
        self._reopen()

    def migrate_namespace(self, *, reverse: bool = False, dry_run: bool = False, adopt: bool = False) -> "Migration":
        """Move the data at the root into the namespace; in reverse to the root, which also leaves the namespace."""
        from mire.flow.namespace_migrate import migrate_namespace  # noqa: PLC0415 - done once in its life

        done = migrate_namespace(self._settled(), reverse=reverse, dry_run=dry_run, adopt=adopt)
        self._reopen()
        return done

    def examine_namespace(self, *, repair: bool = False, root: bool = False) -> "Contamination":
        """Find, and on request move out, what programs mixed up between namespaces."""
        from mire.flow.contamination import examine_namespace  # noqa: PLC0415 - few programs ask

        return examine_namespace(self.datastore, repair=repair, root=root)

    def _settled(self) -> str:
        """The repository, when its own settings say where this store is."""
        from mire.flow.namespace import check_origin  # noqa: PLC0415 - as above

        check_origin(self.datastore.config)
        return self.datastore.repo_dir

    def _reopen(self) -> None:
        ds = self.datastore
        close_catalog(ds)
        self._use(open_datastore(ds.repo_dir, host=ds.given_host, create=ds.may_initialize))

    def close(self) -> None:
        """Close what is kept open between calls; the store can still be used, and opens it again."""
        close_catalog(self.datastore)
        close_imports(self.datastore)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({self.datastore.repo_dir!r})"


class Model:
    """One model instance, by type and id."""

    def __init__(
        self, datastore: Datastore, ref: ModelRef, name: str | None, *, extra: Mapping[str, str] | None = None
    ) -> None:
        """`extra`: members of the metadata of what is put that nobody can give as a tag, an owner or content."""
        self._ds = datastore
        self._extra = extra or {}
        self.ref = ref
        self._name = None if name is None else _checked_text(name, "model name")

    @property
    def type(self) -> str:
        """The normalized type."""
        return self.ref.model_type

    @property
    def id(self) -> str:
        """The model id."""
        return self.ref.model_id

    def put(
        self,
        name: str,
        content: Content,
        *,
        tags: Mapping[str, str] | None = None,
        content_type: str | None = None,
        lifetime: str = INFINITE,
        version_policy: int | str = VERSIONS_KEPT,
        streaming: bool = False,
        owner: Owner | str | None = None,
        revive: bool = False,
    ) -> Metadata:
        """Write a new version.

        Args:
            name: The data name.
            content: Bytes, text, a dict or list (compact JSON), a path (`pathlib.Path`) or an open file.
            tags: Added to `type`, `specName` and `modelName`, which are set unless given here.
            content_type: MIME type; guessed from the kind of `content` when not given.
            lifetime: `infinite`, `ephemeral`, `job`, `workflow` or a duration such as `90d`.
            version_policy: Versions a retention run keeps (a number), or the age at which they go.
            streaming: Whether the version may grow by `append`.
            owner: The producer, as `Owner` or `TYPE:REF`; `manual:<model id>` when not given.
            revive: Write under a name that was renamed away, ending its forwarding.

        >>> import tempfile
        >>> log = open(tempfile.mkdtemp()).model("svc", "web-1").put("log", "started", lifetime="30d")
        >>> (log.version, log.content_type, log.lifetime, log.size_bytes)
        (1, 'text/plain', '30d', 7)
        """
        checked = parse_data_name(name)
        kind = content_type or _content_type_of(content)
        draft = Draft(
            content_type=_checked_text(kind, "content type"),
            owner=self._owner(owner),
            tags=self._tags(checked, kind, tags),
            lifetime=parse_lifetime(lifetime),
            version_policy=parse_version_policy(version_policy),
            streaming=streaming,
            extra=self._extra,
        )
        with _chunks_of(content) as chunks:
            return write.put(self._ds, self.ref, checked, chunks, draft, revive=revive)

    def append(self, name: str, content: Content) -> Metadata:
        """Add to the latest version of data that was put with `streaming=True`."""
        with _chunks_of(content) as chunks:
            return write.append(self._ds, self.ref, parse_data_name(name), chunks)

    def get(self, name: str, version: int | None = None) -> Artifact:
        """A version, or the latest; a name that was renamed answers with what it is called now."""
        settle.settle_before_read(self._ds, self.ref)
        number = None if version is None else parse_version(version)
        return read.get(self._ds, self.ref, parse_data_name(name), number)

    def latest(self, name: str) -> int:
        """The number of the latest version."""
        return self.get(name).version

    def versions(self, name: str) -> list[int]:
        """The version numbers of a name, ascending; empty when there are none."""
        settle.settle_before_read(self._ds, self.ref)
        return read.versions(self._ds, self.ref, parse_data_name(name))

    def history(self, name: str) -> list[Row]:
        """Every version of a name with its metadata, ascending; a damaged one says what is wrong."""
        settle.settle_before_read(self._ds, self.ref)
        return read.history(self._ds, self.ref, parse_data_name(name))

    def names(self) -> list[Row]:
        """The data names with their latest versions, tombstones and deletion markers included."""
        settle.settle_before_read(self._ds, self.ref)
        return read.names(self._ds, self.ref)

    def delete(self, name: str, version: int | None = None) -> Deleted:
        """Delete one version, or the name with all of them."""
        number = None if version is None else parse_version(version)
        return remove.delete(self._ds, self.ref, parse_data_name(name), number)

    def mark_deleted(self, name: str, *, method: str = "delete") -> Metadata:
        """Record that what the data describes is gone: history stays, the latest version says so."""
        return write.mark_deleted(self._ds, self.ref, parse_data_name(name), method=_checked_text(method, "method"))

    def rename(self, old: str, new: str) -> Renamed:
        """Give the latest version a new name; the old one forwards to it."""
        return rename.rename(self._ds, self.ref, parse_data_name(old), parse_data_name(new))

    def hold_back(self, name: str, version: int | None = None, *, reason: str | None = None) -> NameHold:
        """Keep a name, or one version of it, from retention and pruning until it is let go."""
        number = None if version is None else parse_version(version)
        why = None if reason is None else _checked_text(reason, "reason")
        return hold(self._ds, self.ref, parse_data_name(name), number, why)

    def let_go(self, name: str, version: int | None = None) -> NameHold:
        """End what `hold_back` began; holds of single versions stay when the whole name is let go."""
        return unhold(self._ds, self.ref, parse_data_name(name), None if version is None else parse_version(version))

    def hold(self) -> AbstractContextManager[Hold]:
        """Hold this model's lock over several writes; raises `LockLostError` if it is lost meanwhile."""
        return hold_models(self._ds, [self.ref])

    def __repr__(self) -> str:
        return f"Model({self.type!r}, {self.id!r})"

    def _owner(self, owner: Owner | str | None) -> Owner:
        if owner is None:
            return Owner(owner_type="manual", owner_ref=self.id)
        if not isinstance(owner, (str, Owner)):
            raise InputError(f"owner {shown(owner)} is a {type(owner).__name__}: give an Owner or TYPE:REF")
        return parse_owner(owner) if isinstance(owner, str) else owner

    def _tags(self, name: DataName, content_type: str, tags: Mapping[str, str] | None) -> dict[str, str]:
        kind = "resource" if content_type == "application/json" else "file"
        if not isinstance(tags or {}, Mapping):
            raise InputError(f"tags {shown(tags)} is a {type(tags).__name__}: give a dict of text to text")
        given: dict[Any, Any] = dict(tags or {})
        for key, value in given.items():
            if not isinstance(key, str) or not isinstance(value, str) or not key:
                raise InputError(f"tag {shown(key)}={shown(value)} is not text: give text keys and text values")
            if "\0" in key or "\0" in value:
                raise InputError(f"tag {shown(key)}={shown(value)} has a NUL character: remove it")
        return {"type": kind, "specName": name, "modelName": self._name or self.id, **given}


class Outputs:
    """Method executions.

    >>> import tempfile
    >>> outputs = open(tempfile.mkdtemp()).outputs
    >>> running = outputs.start("svc", "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603", "deploy")
    >>> outputs.finish(running, "failed", error="no route to host").status
    'failed'
    """

    def __init__(self, datastore: Datastore) -> None:
        self._ds = datastore

    def start(
        self, model_type: str, definition_id: str, method: str, *, provenance: dict[str, Any] | None = None
    ) -> Output:
        """Record that a method starts now."""
        new = record.new_output(model_type, definition_id, method, provenance=provenance)
        return record.start_output(self._ds, new)

    def finish(
        self, output: Output, status: str = "succeeded", *, error: str | None = None, artifacts: Any = None
    ) -> Output:
        """Record that it ended; `artifacts` are the metadata of what it put."""
        produced = None if artifacts is None else [_data_artifact(item) for item in artifacts]
        return self.save(record.ended_output(output, status, error=error, artifacts=produced))

    def save(self, output: Output) -> Output:
        """Write a record as it is, replacing the earlier state of the same execution."""
        return record.save_output(self._ds, output)

    def get(self, output_id: str) -> Output:
        """The execution with an id."""
        return record.get_output(self._ds, output_id)

    def list(self, model_type: str | None = None, method: str | None = None) -> Listing[Output]:
        """Executions, newest first."""
        return record.list_outputs(
            self._ds,
            None if model_type is None else parse_model_type(model_type),
            None if method is None else parse_method_name(method),
        )


class Runs:
    """Workflow runs.

    >>> import tempfile
    >>> runs = open(tempfile.mkdtemp()).runs
    >>> run = runs.start("9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21", "hourly-sweep")
    >>> runs.finish(run, "succeeded").status, len(runs.list())
    ('succeeded', 1)
    """

    def __init__(self, datastore: Datastore) -> None:
        self._ds = datastore

    def start(self, workflow_id: str, workflow_name: str, *, tags: dict[str, str] | None = None) -> Run:
        """Record that a workflow starts now."""
        return record.save_run(self._ds, record.new_run(workflow_id, workflow_name, tags=tags))

    def finish(self, run: Run, status: str = "succeeded") -> Run:
        """Record that it ended now."""
        return self.save(replace(run, status=status, completed_at=clock.now_instant()))

    def save(self, run: Run) -> Run:
        """Write a record as it is, replacing the earlier state of the same run."""
        return record.save_run(self._ds, run)

    def get(self, workflow_id: str, run_id: str) -> Run:
        """One run of a workflow."""
        return record.get_run(self._ds, workflow_id, run_id)

    def list(self, workflow_id: str | None = None) -> Listing[Run]:
        """Runs, newest first."""
        wanted = None if workflow_id is None else parse_uuid(workflow_id, "workflow id")
        return record.list_runs(self._ds, wanted)


class Audit:
    """Audit events, one file per UTC day.

    >>> import tempfile
    >>> audit = open(tempfile.mkdtemp()).audit
    >>> _ = audit.command("deploy web", exit_code=0)
    >>> [event.command for event in audit.list()]
    ['deploy web']
    """

    def __init__(self, datastore: Datastore) -> None:
        self._ds = datastore

    def command(
        self,
        command: str,
        *,
        cwd: str | None = None,
        session_id: str | None = None,
        exit_code: int | None = None,
        error: str | None = None,
        timestamp: str | None = None,
    ) -> AuditEvent:
        """Record that a command ran."""
        event = CommandEvent(
            timestamp=_instant(timestamp),
            command=command,
            cwd=cwd,
            session_id=session_id,
            exit_code=exit_code,
            error=error,
        )
        return record.append_event(self._ds, event)

    def vault(
        self, action: str, vault_name: str, vault_type: str, secret_key: str, *, caller_context: Any = None
    ) -> AuditEvent:
        """Record an access to a secret; its value is never recorded."""
        event = VaultEvent(
            timestamp=clock.now_instant(),
            action=action,
            vault_name=vault_name,
            vault_type=vault_type,
            secret_key=secret_key,
            caller_context=caller_context,
        )
        return record.append_event(self._ds, event)

    def append(self, event: AuditEvent) -> AuditEvent:
        """Record an event as it is."""
        return record.append_event(self._ds, event)

    def list(self, since: str | None = None) -> Listing[AuditEvent]:
        """Events of all kinds, newest first."""
        return record.list_events(self._ds, since)


def _instant(text: str | None) -> Any:
    return clock.now_instant() if text is None else parse_instant(text, "timestamp")


def _data_artifact(item: Metadata | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(item, Metadata):
        return {"dataId": item.id, "name": item.name, "version": item.version, "tags": dict(item.tags)}
    if isinstance(item, Mapping):
        return dict(item)
    raise InputError(f"artifact {shown(item)} is a {type(item).__name__}: give the metadata that put returned")


def _checked_text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} {shown(value)} is not a non-empty text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} {shown(value)} is not valid UTF-8: use characters that can be encoded") from None
    return value


def _content_type_of(content: Content) -> str:
    match content:
        case bytes() | bytearray() | memoryview():
            return "application/octet-stream"
        case str():
            return "text/plain"
        case Mapping() | list():
            return "application/json"
        case os.PathLike():
            import mimetypes  # noqa: PLC0415 - reads the system's tables, which only a path needs

            return mimetypes.guess_type(os.fspath(content))[0] or "application/octet-stream"
        case _:
            return "application/octet-stream"


@contextmanager
def _chunks_of(content: Content) -> Iterator[Iterable[bytes]]:
    """The content as pieces of bytes; what cannot be written is refused before anything is touched."""
    match content:
        case bytes() | bytearray() | memoryview():
            yield [bytes(content)]
        case str():
            try:
                yield [content.encode()]
            except UnicodeEncodeError:
                raise InputError(f"content {shown(content)} is not valid UTF-8 text: put bytes instead") from None
        case Mapping() | list():
            yield [_json_bytes(content)]
        case os.PathLike():
            if files.is_dir(os.fspath(content)):
                raise InputError(f"{shown(os.fspath(content))} is a directory: name a file")
            with files.open_read(os.fspath(content)) as file:
                yield files.chunks_from(file)
        case _ if hasattr(content, "read"):
            # The first piece is read before anything is touched: it shows whether the file is binary.
            pieces = _binary(files.chunks_from(content))
            first = next(pieces, b"")
            yield itertools.chain([first], pieces)
        case _:
            raise InputError(
                f"content {shown(content)} is a {type(content).__name__}: give bytes, text, a dict, a path or a"
                " file opened in binary mode"
            )


def _binary(chunks: Iterator[object]) -> Iterator[bytes]:
    while True:
        try:
            chunk = next(chunks, None)
        except OSError as error:  # of the source, not of the store
            raise RemoteError(f"the content cannot be read: {error.strerror or error}", kind="source") from error
        if chunk is None:
            return
        if not isinstance(chunk, bytes):
            raise InputError(f"the file gave {type(chunk).__name__}, not bytes: open it in binary mode ('rb')")
        yield chunk


def _json_value(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{shown(value)} is a {type(value).__name__}")


def _json_bytes(content: object) -> bytes:
    try:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_json_value)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"content {shown(content)} cannot be written as JSON: {error}") from None
