"""The state of a repository and its datastore: what is configured, and whether it can be used.

Owns: the health check.
Must not know: how it is shown.
"""

import os
from dataclasses import dataclass

from mire.edge import clock, files
from mire.errors import MireError
from mire.flow.backend import open_remote, reach
from mire.flow.control import check_remote_marker
from mire.flow.datastore import Datastore, Located, check_marker
from mire.model.config import Extension
from mire.wire.control import control_prefix

_NOT_YET = "not a repository yet: run 'mire init'"
_REQUEST_MS = 3_000
"""What one request may take: a status that hangs says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Whether the datastore can be read and written, and how long a small write takes."""

    is_healthy: bool
    message: str
    latency_ms: float


def check_remote_health(found: Located, target: Extension) -> tuple[str, Health]:
    """The name of an object store, and whether it can be reached and has a format we know; nothing is written."""
    remote = open_remote(target, repo_dir=found.repo_dir, origin=found.config.origin, timeout_ms=_REQUEST_MS)
    start = clock.monotonic_ms()
    try:
        reach(remote, control_prefix(found.config.namespace))
        reason = check_remote_marker(remote, found.config.namespace)
    except MireError as error:
        reason = error.message
    if not found.is_initialized:
        reason = _NOT_YET
    message = "reachable; 'mire doctor' proves what it can do" if reason is None else reason
    latency_ms = clock.monotonic_ms() - start
    return remote.properties.name, Health(is_healthy=reason is None, message=message, latency_ms=latency_ms)


def check_health(ds: Datastore) -> Health:
    """Look at the datastore and write, read back and remove a probe no client syncs."""
    start = clock.monotonic_ms()

    def verdict(message: str, *, is_healthy: bool = False) -> Health:
        return Health(is_healthy=is_healthy, message=message, latency_ms=clock.monotonic_ms() - start)

    if not ds.is_initialized:
        return verdict(_NOT_YET)
    if not files.is_dir(ds.base):
        if not os.path.lexists(ds.base) and ds.base == ds.local:
            return verdict("ready; nothing was written yet", is_healthy=True)
        return verdict(f"{ds.base} is not a directory: mount or create it")
    try:
        reason = check_marker(ds.base)
        if reason is not None:
            return verdict(reason)
        probe = files.temporary_beside(os.path.join(ds.base, "probe"))
        files.write_file(probe, [b"probe"])
        same = files.read_file(probe) == b"probe"
        files.remove_file(probe)
    except MireError as error:
        return verdict(error.message)
    return verdict("readable and writable" if same else "a file did not read back as written", is_healthy=same)
