"""Backends: from a datastore's type and configuration to an open remote.

Owns: which kinds there are, built in or installed; the way of a configuration through its checks.
Must not know: what is done with a remote.
Keeps: nothing installed can take the place of what is built in, and a broken package breaks only itself.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from mire.edge import clock, objectstore, plugin, process
from mire.edge.etags import EitherEtags
from mire.edge.mounted import Mounted
from mire.edge.remote import Remote
from mire.errors import ConfigError, InputError, MireError, MissingBucketError, NotFoundError, RemoteError, shown
from mire.model.backend import FileSettings, S3Settings, Schema
from mire.model.config import Extension, Filesystem, Target
from mire.model.names import SOLO, Namespace, is_namespace
from mire.plan.backend import (
    FILE_SCHEMA,
    FILESYSTEM_SCHEMA,
    GCS_SCHEMA,
    S3_SCHEMA,
    TIMEOUT,
    is_type,
    parse_file,
    parse_filesystem,
    parse_gcs,
    parse_s3,
)
from mire.plan.option import check_config
from mire.wire.control import control_key
from mire.wire.layout import LOCK, OLD_LOCKS

GROUP: Final = "mire.backends"
"""The group of entry points; the name of one is the type of its backend."""

WITNESS: Final = "mire-store"
"""The control record by which a directory that is set up is known again."""

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend(Generic[S]):
    """A kind of object store: its schema, its settings from a checked configuration, and its remote from those."""

    schema: Schema
    parse: Callable[[Mapping[str, Any]], S]
    open: Callable[[S], Remote]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A backend and the package it comes with."""

    backend: Backend[Any]
    package: str

    @property
    def schema(self) -> Schema:
        """What it is called, and what its configuration may say."""
        return self.backend.schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A backend that was announced but cannot be used, and why."""

    name: str
    package: str
    message: str


def new_probe_key(asked: str = "") -> str:
    """A key to try conditional writes on, as the reference calls it: in the part of the store that a key is of."""
    top, _, rest = asked.removeprefix(OLD_LOCKS).partition("/")
    name = top.removesuffix(LOCK) if asked.startswith(OLD_LOCKS) else top if rest else ""
    return control_key(Namespace(name) if is_namespace(name) else SOLO, f"conditional-write-probe-{clock.new_uuid()}")


def _open_s3(settings: S3Settings) -> Remote:
    return EitherEtags(
        objectstore.open_s3(settings),
        objectstore.open_s3(settings, quote_etags=False),
        new_probe_key,
        conditional_delete=settings.conditional_delete,
    )


def _open_file(settings: FileSettings) -> Remote:
    witness = None if settings.store is None else (control_key(SOLO, WITNESS), settings.store)
    return Mounted(objectstore.open_local(settings.path), settings.path, witness)


FILESYSTEM_BACKEND: Final = Backend(schema=FILESYSTEM_SCHEMA, parse=parse_filesystem, open=objectstore.open_local)
S3_BACKEND: Final = Backend(schema=S3_SCHEMA, parse=parse_s3, open=_open_s3)
GCS_BACKEND: Final = Backend(schema=GCS_SCHEMA, parse=parse_gcs, open=objectstore.open_gcs)
FILE_BACKEND: Final = Backend(schema=FILE_SCHEMA, parse=parse_file, open=_open_file)

OURS: Final = "mire"
"""The package of what is built in."""

_OURS = (FILESYSTEM_BACKEND, S3_BACKEND, GCS_BACKEND, FILE_BACKEND)
_BUILT_IN = tuple(Installed(backend=backend, package=OURS) for backend in _OURS)


def list_backends() -> tuple[list[Installed], list[Broken]]:
    """Every kind of datastore there is, the built-in ones first, and what is installed but broken."""
    found, broken = list(_BUILT_IN), list[Broken]()
    for entry in sorted(_announced(), key=lambda entry: (entry.name, entry.package)):
        try:
            one = _load(entry)
            _check_new(one, found)
            found.append(one)
        except ConfigError as error:
            broken.append(Broken(name=entry.name, package=entry.package, message=error.message))
    return found, broken


def find_backend(type: str, *, origin: str) -> Installed:
    """The kind of datastore with this type or alias; only the package that announces it is loaded."""
    wanted = type.lower()
    for one in _BUILT_IN:
        if wanted in (one.schema.type, *one.schema.aliases):
            return one
    entries = [entry for entry in _announced() if entry.name == wanted]
    if len(entries) > 1:
        packages = " and ".join(sorted(entry.package for entry in entries))
        raise ConfigError(f"{shown(type)} is announced by {packages}: remove one of them", kind="broken_backend")
    if entries:
        return _load(entries[0])
    known = list_backends()[0]
    for one in known:
        if wanted in one.schema.aliases:
            return one
    near = difflib.get_close_matches(wanted, [one.schema.type for one in known], n=1)
    advice = f"did you mean '{near[0]}'?" if near else "install its package, or choose one that 'mire backends' lists"
    raise ConfigError(
        f"datastore type {shown(type)} (from {origin}) is not known to this mire: {advice}", kind="unknown_datastore"
    )


def _announced() -> list[plugin.Announced]:
    # Ours are announced, too, for others to see; we know them without looking.
    return [entry for entry in plugin.announced(GROUP) if not entry.package.startswith(f"{OURS} ")]


def open_remote(target: Target, *, repo_dir: str, origin: str, timeout_ms: int | None = None) -> Remote:
    """The remote of a datastore, open but not asked anything; `timeout_ms` bounds its requests further."""
    if isinstance(target, Filesystem):
        return objectstore.open_local(target.path)
    one = find_backend(target.type, origin=origin)
    settings = settings_of(one, target, repo_dir=repo_dir, origin=origin, timeout_ms=timeout_ms)
    try:
        return one.backend.open(settings)
    except MireError:
        raise
    except Exception as error:
        if one.package == OURS:
            raise
        raise RemoteError(
            f"{one.schema.type} of the package {one.package} cannot be opened ({_said(error)}): see its documentation",
            kind="broken_backend",
        ) from error


def reach(remote: Remote, prefix: str) -> bool:
    """Ask for the first page of a listing: the cheapest proof of address, bucket and credentials."""
    try:
        for _ in remote.list(prefix):
            break
    except NotFoundError as error:
        # A bucket that is missing has an error of its own: whoever answers so is no object store.
        raise MissingBucketError(f"{error.message}: check the endpoint and the bucket") from None
    return True


def settings_of(
    one: Installed, target: Extension, *, repo_dir: str, origin: str, timeout_ms: int | None = None
) -> object:
    """The settings a configuration comes to, checked without opening anything."""
    environ = process.environ()
    config = check_config(target.config, one.schema, repo_dir=repo_dir, environ=environ, what=origin)
    if timeout_ms is not None and isinstance(config.get(TIMEOUT), int):
        config[TIMEOUT] = min(config[TIMEOUT], timeout_ms)
    try:
        return one.backend.parse(config)
    except InputError as error:
        raise ConfigError(f"{origin}: {error.message}", kind=error.kind) from None
    except Exception as error:
        raise ConfigError(
            f"{origin}: {one.schema.type} of the package {one.package} refuses its configuration ({_said(error)})"
        ) from error


def _load(entry: plugin.Announced) -> Installed:
    loaded = entry.load()
    if not isinstance(loaded, Backend):
        raise _unusable(entry, f"is a {type(loaded).__name__}, not a mire.Backend")
    if not is_type(loaded.schema.type) or loaded.schema.type != entry.name:
        raise _unusable(entry, f"calls itself {shown(loaded.schema.type)}: both must be one @collective/name")
    if not loaded.schema.title or not loaded.schema.description:
        raise _unusable(entry, "has no title or no description")
    return Installed(backend=loaded, package=entry.package)


def _check_new(one: Installed, found: list[Installed]) -> None:
    for other in found:
        shared = {one.schema.type, *one.schema.aliases} & {other.schema.type, *other.schema.aliases}
        if shared:
            raise ConfigError(f"{shown(min(shared))} is already the name of a backend of {other.package}")


def _unusable(entry: plugin.Announced, why: str) -> ConfigError:
    return ConfigError(
        f"{shown(entry.name)} of the package {entry.package} {why}: upgrade or remove the package",
        kind="broken_backend",
    )


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
