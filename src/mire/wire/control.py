"""Keys of the control plane: small records beside the data, at `_control/` of the store or of a namespace.

Owns: which key holds a control record, and which names such records can have.
Must not know: what a record says, or who writes it.
Keeps: no record of one namespace is found under the keys of another, or outside `_control/`.
"""

from typing import Final

from mire.errors import InputError, shown
from mire.model.names import SOLO, Namespace, parse_rel_path

CONTROL: Final = "_control"
FORMAT_RECORD: Final = "datastore-format"
"""The format marker of a remote; it counts at the root of the store, whatever namespace we are in."""

_KEY_BYTES_MAX = 900
"""What S3 and GCS accept, less room for `_control/`, a namespace and a prefix of the bucket."""


def control_key(namespace: Namespace, key: str) -> str:
    """Where a record is kept; a name that could lead elsewhere is refused."""
    return f"{control_prefix(namespace)}{_checked(key, key)}"


def control_prefix(namespace: Namespace, prefix: str = "") -> str:
    """Below which key all records are that are below `prefix`; a final '/' may be left out."""
    root = f"{CONTROL}/" if namespace == SOLO else f"{namespace}/{CONTROL}/"
    below = prefix.removesuffix("/")
    return f"{root}{_checked(below, prefix)}/" if prefix else root


def _checked(key: str, given: str) -> str:
    try:
        parse_rel_path(key)
    except InputError:
        raise _refuse(given, "is no name of a control record: use segments like 'heartbeats/web-1'") from None
    if len(key.encode()) > _KEY_BYTES_MAX:
        raise _refuse(given, f"is longer than {_KEY_BYTES_MAX} bytes: shorten it")
    return key


def _refuse(key: str, why: str) -> InputError:
    return InputError(f"control key {shown(key)} {why}", kind="bad_key", key=shown(key))
