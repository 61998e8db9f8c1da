"""What every kind of datastore must declare, as a function that a package runs against its own backend.

Owns: the checks of the reference's suites for the structure of a datastore and for its verifier, translated.
Must not know: pytest, which backend is checked.
Keeps: a failed check says its number and what was expected; what the doctor wrote to try the store it removes.

A package runs `check_backend(BACKEND, valid=[...], invalid=[...])` with configurations of a store that it can reach.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mire.edge.lockobject import ObjectLocks
from mire.edge.lockplace import LockPlace
from mire.edge.remote import Remote
from mire.errors import ConfigError, MireError
from mire.flow.backend import Backend, Installed, settings_of
from mire.flow.doctor import examine
from mire.model.config import Extension
from mire.model.doctor import Report
from mire.plan.backend import is_type
from mire.plan.doctor import report_of
from mire.testing.conformance_lock import ConformanceError, check_lock, expect
from mire.testing.synccache import Cut

_ORIGIN: Final = "conformance"
_METHODS: Final = tuple(name for name in vars(Remote) if not name.startswith("_") and name != "properties")


def check_backend(
    backend: Backend[Any], *, valid: Sequence[Mapping[str, Any]], invalid: Sequence[Mapping[str, Any]] = ()
) -> None:
    """A backend says what it is, tells good configurations from bad ones, opens a remote, and can be examined."""
    _check_schema(backend)
    expect(3, holds=bool(valid), what="no valid configuration was given: give at least one")
    for config in invalid:
        expect(3, holds=_is_refused(backend, config), what=f"the configuration {dict(config)} is accepted")
    for config in valid:
        try:
            settings = _settings(backend, config)
        except ConfigError as error:
            raise ConformanceError(f"check 3: the configuration {dict(config)} is refused: {error}") from error
        remote = backend.open(settings)
        _check_remote(remote)
        _check_verifier(backend, remote)


def _check_schema(backend: Backend[Any]) -> None:
    schema = backend.schema
    expect(1, holds=is_type(schema.type), what=f"the type is {schema.type!r}, not @collective/name")
    for what, text in (("title", schema.title), ("description", schema.description)):
        expect(2, holds=bool(text.strip()), what=f"the {what} is {text!r}")


def _settings(backend: Backend[Any], config: Mapping[str, Any]) -> object:
    target = Extension(type=backend.schema.type, config=config)
    return settings_of(Installed(backend=backend, package=_ORIGIN), target, repo_dir="/", origin=_ORIGIN)


def _is_refused(backend: Backend[Any], config: Mapping[str, Any]) -> bool:
    try:
        _settings(backend, config)
    except ConfigError:
        return True
    return False


def _check_remote(remote: Remote) -> None:
    missing = [name for name in _METHODS if not callable(getattr(remote, name, None))]
    expect(4, holds=not missing, what=f"what is opened has no {', '.join(missing)}")
    name = remote.properties.name
    expect(5, holds=bool(name), what=f"the remote is called {name!r}")

    def place() -> LockPlace:
        return ObjectLocks(remote)

    try:
        check_lock(place)
    except (ConformanceError, MireError) as error:
        raise ConformanceError(f"check 6: what is opened cannot hold a lock: {error}") from error


def _check_verifier(backend: Backend[Any], remote: Remote) -> None:
    report = _report(backend, remote)
    expect(20, holds=report.is_healthy, what=f"the store is not healthy: {report.message}")
    cut = Cut(remote)
    cut.after(0)
    broken = _report(backend, cut)
    expect(20, holds=not broken.is_healthy, what="a store that cannot be reached is healthy")
    for each in (report, broken):
        expect(20, holds=bool(each.message) and each.latency_ms >= 0, what=f"the report is {each}")
        expect(20, holds=each.datastore_type == backend.schema.type, what=f"the report is on {each.datastore_type}")


def _report(backend: Backend[Any], remote: Remote) -> Report:
    return report_of(
        examine(remote),
        schema=backend.schema,
        name=remote.properties.name,
        relies_on_delete=remote.properties.conditional_delete,
        allow_untrusted=False,
    )
