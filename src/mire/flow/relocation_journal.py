"""The journal of a migration between a namespace and the root, in the control records of the namespace.

Owns: where it is kept: beside the data, so that whoever comes next finds it, on whichever machine.
Must not know: what is moved.
Keeps: it is there from before the first step until after the last one.
"""

import os

from mire.edge import files
from mire.edge.remote import Stat
from mire.flow.control import ControlStore
from mire.flow.datastore import Datastore
from mire.wire.control import control_key
from mire.wire.relocated import RECORD, Direction, Relocated, decode_relocated, encode_relocated


def load_journal(ds: Datastore) -> Relocated | None:
    """The migration of our namespace that did not come to its end, if there is one."""
    if ds.remote is not None:
        data = ControlStore(ds.remote, lambda: ds.config.namespace).get(RECORD)
    else:
        data = files.read_file(_path(ds))
    return None if data is None else decode_relocated(data)


def save_journal(ds: Datastore, direction: Direction, objects: dict[str, Stat]) -> None:
    """Say that a migration is under way, and which objects leave their old place at its end."""
    told = {rel: f"{stat.modified_ms} {stat.size_bytes} {stat.fingerprint}" for rel, stat in objects.items()}
    data = encode_relocated(Relocated(direction=direction, objects=told))
    if ds.remote is not None:
        ControlStore(ds.remote, lambda: ds.config.namespace).put(RECORD, data)
        return
    files.make_dirs(os.path.dirname(_path(ds)))
    files.write_file(_path(ds), [data])


def stats_in(journal: Relocated | None) -> dict[str, Stat]:
    """The objects a journal names, as they were."""
    found: dict[str, Stat] = {}
    for rel, told in ({} if journal is None else journal.objects).items():
        modified, size, fingerprint = told.split(" ", 2)
        found[rel] = Stat(key=rel, size_bytes=int(size), fingerprint=fingerprint, modified_ms=int(modified))
    return found


def forget_journal(ds: Datastore) -> None:
    """Say that a migration has come to its end."""
    if ds.remote is not None:
        ControlStore(ds.remote, lambda: ds.config.namespace).delete(RECORD)
        return
    files.remove_file(_path(ds))
    for directory in (os.path.dirname(_path(ds)), os.path.dirname(os.path.dirname(_path(ds)))):
        files.remove_empty([directory])


def _path(ds: Datastore) -> str:
    return os.path.join(ds.base, control_key(ds.config.namespace, RECORD))
