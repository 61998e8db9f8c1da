"""The doors to every object store: memory, a local directory, S3 and what speaks like it, Google Cloud Storage.

Owns: which module opens which store.
Must not know: how any of them works.
Keeps: a client library is imported only when a store of its kind is opened.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mire.edge.remote import Remote
    from mire.model.backend import GcsSettings, S3Settings


def open_memory(*, content_fingerprint: bool = True) -> "Remote":
    """A new, empty remote in memory; its fingerprints are like those of S3, or like generations of GCS."""
    from mire.edge.memory import MemoryRemote  # noqa: PLC0415 - only what is used is imported

    return MemoryRemote(content_fingerprint=content_fingerprint)


def open_local(directory: str, *, must_exist: bool = False) -> "Remote":
    """The remote whose objects are the files below a directory, which else is made when the first one is stored."""
    from mire.edge.local import LocalRemote  # noqa: PLC0415 - only what is used is imported

    return LocalRemote(directory, must_exist=must_exist)


def open_s3(settings: "S3Settings", *, quote_etags: bool = True, is_ordered: bool | None = None) -> "Remote":
    """The bucket of S3 or of a store that speaks like it, below its prefix.

    `quote_etags=False` is for stores that know an ETag in a condition only without its quotes. `is_ordered` says
    whether listings come in the order of keys; by default they do from AWS, and those of others are sorted here.
    """
    from mire.edge.s3 import S3Remote  # noqa: PLC0415 - only what is used is imported

    return _below(S3Remote(settings, quote_etags=quote_etags, is_ordered=is_ordered), settings.prefix)


def open_gcs(settings: "GcsSettings") -> "Remote":
    """The bucket of Google Cloud Storage, below its prefix."""
    from mire.edge.gcs import GcsRemote  # noqa: PLC0415 - only what is used is imported

    return _below(GcsRemote(settings), settings.prefix)


def _below(remote: "Remote", prefix: str) -> "Remote":
    from mire.edge.prefixed import Prefixed  # noqa: PLC0415 - only what is used is imported

    return Prefixed(remote, prefix) if prefix else remote
