"""The base: per path, what this cache and the remote last agreed on.

Owns: `BaseRow`.
Must not know: what an entry says beyond what decisions compare, where rows are kept.
"""

from dataclasses import dataclass

from mire.model.row import FileIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRow:
    """One path, without its namespace; `identity` is None when the content is not here (un-hydrated)."""

    rel: str
    entry: bytes
    """The index entry as JSON, as it was agreed."""
    size_bytes: int
    sha256: str | None
    last_modified: str
    partition: str
    identity: FileIdentity | None = None
    looked_ns: int = 0
    """When the identity was taken, by the wall clock: a file that changed right before could change again unseen."""
