"""What the format markers of a remote allow: everything, reading only, or nothing.

Owns: the decision over the datastore's marker and over one that was moved into our namespace.
Must not know: where markers are kept, or how they are read.
Keeps: what could not be read forbids writing; only a marker that is really absent allows it.
"""

from mire.errors import FormatError, RemoteError
from mire.wire.marker import check_format

Look = bytes | RemoteError | None
"""A marker as it was read: its bytes, None when there is none, or why nobody knows."""


def writing_ban(datastore: Look, namespace: Look = None) -> str | None:
    """Why nothing may be written, or None; raises when the datastore must not even be read.

    Programs older than the marker move it from the root of the datastore into the namespace they work in. Found
    there it does not count for reading, as others do not look there, but nothing is written past it.
    """
    if isinstance(datastore, RemoteError):
        return f"the datastore's format marker could not be read, so nothing is written: {datastore.message}"
    check_format(datastore)
    if isinstance(namespace, RemoteError):
        return f"the namespace's own format marker could not be read, so nothing is written: {namespace.message}"
    try:
        check_format(namespace)
    except FormatError as error:
        return f"an older program moved the format marker into the namespace, so nothing is written: {error.message}"
    return None
