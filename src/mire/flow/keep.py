"""Content of other namespaces that was read once, kept so that it is not asked for again.

Owns: where it is, under which key, and what is thrown away.
Must not know: how it is fetched, what is verified.
Keeps: outside of every tier, and by the identity of one version in one namespace of one store: bytes of ours, or of
another namespace, are never found under it. What does not match its checksum is not found at all.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from mire.edge import files
from mire.errors import MireError
from mire.flow.datastore import Datastore
from mire.model.names import PRIVATE_PREFIX, Namespace
from mire.model.row import NAMES, RowValues

_DIRECTORY: Final = f"{PRIVATE_PREFIX}-mire-others"
_DIGITS: Final = 64
IDENTITY: Final = ("namespace", "model_type", "model_id", "name", "version", "id", "created_at", "size")
"""What tells a version from every other, whichever number it has."""
_PLACES: Final = tuple(NAMES.index(column) for column in IDENTITY)

Identity = tuple[str | int, ...]
"""The values of `IDENTITY`, in its order."""


def store_name(ds: Datastore) -> str:
    """The store that other namespaces are in."""
    return ds.base if ds.remote is None else ds.remote.properties.name


def find_content(ds: Datastore, identity: Identity) -> bytes | None:
    """What is kept of a version."""
    with suppress(MireError):
        data = files.read_file(_path(ds, identity))
        if data is not None and hashlib.sha256(data[_DIGITS:]).hexdigest().encode() == data[:_DIGITS]:
            return data[_DIGITS:]
    return None


def keep_content(ds: Datastore, identity: Identity, data: bytes) -> None:
    """Keep what was read of a version; a disk that refuses costs only that it is asked for again."""
    path = _path(ds, identity)
    with suppress(MireError):
        files.make_dirs(os.path.dirname(path))
        files.write_file(path, (hashlib.sha256(data).hexdigest().encode(), data))


def sweep_content(ds: Datastore, namespace: Namespace, rows: Iterable[RowValues]) -> None:
    """Throw away what is kept of a namespace, but for the versions of these rows."""
    directory = _directory(ds, namespace)
    if not files.is_dir(directory):
        return
    wanted = {os.path.basename(_path(ds, tuple(row[place] for place in _PLACES))) for row in rows}
    with suppress(MireError):
        for entry in files.list_dir(directory):
            if entry.name not in wanted:
                files.remove_tree(os.path.join(directory, entry.name))


def _path(ds: Datastore, identity: Sequence[str | int]) -> str:
    key = hashlib.sha256(json.dumps([store_name(ds), *identity]).encode()).hexdigest()
    return os.path.join(_directory(ds, Namespace(str(identity[0]))), key)


def _directory(ds: Datastore, namespace: Namespace) -> str:
    return os.path.join(ds.local, _DIRECTORY, namespace)
