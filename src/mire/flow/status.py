"""The state of a repository and its datastore: what is configured, and whether it can be used.

Owns: the health check.
Must not know: how it is shown.
"""

import os
from dataclasses import dataclass

from mire.edge import clock, files
from mire.errors import MireError
from mire.flow.datastore import Datastore, check_marker


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Whether the datastore can be read and written, and how long a small write takes."""

    is_healthy: bool
    message: str
    latency_ms: float


def check_health(ds: Datastore) -> Health:
    """Look at the datastore and write, read back and remove a probe no client syncs."""
    start = clock.monotonic_ms()

    def verdict(message: str, *, is_healthy: bool = False) -> Health:
        return Health(is_healthy=is_healthy, message=message, latency_ms=clock.monotonic_ms() - start)

    if not ds.is_initialized:
        return verdict("not a repository yet: run 'mire init'")
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
