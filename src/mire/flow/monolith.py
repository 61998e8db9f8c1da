"""Our copy of a monolith whose entries are all dealt with: the next one is compared with it.

Owns: where the copy is, and that it is the one whose fingerprint is remembered.
Must not know: what is read from the remote, what is done with entries.
Keeps: a copy has a name of its own, so that two processes never pair the fingerprint of one with the text of another.
"""

import os
from collections.abc import Mapping
from typing import Final

from mire.edge import clock, files
from mire.errors import FormatError
from mire.flow.place import Place
from mire.wire.indextext import IndexText
from mire.wire.monolith import decode_monolith
from mire.wire.relpath import INDEX_DIR

_PREFIX: Final = "mire-monolith-"


def fetch_copy(place: Place) -> IndexText | None:
    """Our copy, as of the fingerprint we remember; None when it is not whole."""
    name, size = place.state.fact("monolith_copy"), place.state.fact("monolith_size")
    data = None if name is None else files.read_file(os.path.join(place.ds.base, INDEX_DIR, name))
    if data is None or str(len(data)) != size:
        return None
    try:
        return decode_monolith(data)
    except FormatError:
        return None  # it is read from the remote instead


def remember_copy(place: Place, data: bytes, tag: str, facts: Mapping[str, str | None]) -> None:
    """Keep a monolith, and facts that are true with it."""
    directory = os.path.join(place.ds.base, INDEX_DIR)
    name = f"{_PREFIX}{clock.new_uuid()}.json"
    files.make_dirs(directory)
    files.write_file(os.path.join(directory, name), [data])
    place.state.set_facts({"monolith": tag, "monolith_copy": name, "monolith_size": str(len(data)), **facts})
    # One that another process is about to remember may be among them: it is then read from the remote.
    for entry in files.list_dir(directory):
        if entry.name.startswith(_PREFIX) and entry.name != name:
            files.remove_file(os.path.join(directory, entry.name))


def forget_copy(place: Place) -> None:
    """Compare everything the next time."""
    place.state.set_facts({"monolith": None, "monolith_copy": None, "monolith_size": None})
