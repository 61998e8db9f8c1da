"""Our side of a store, as rows: what happened in the cache since it was last agreed on.

Owns: how a look at the cache becomes a table.
Must not know: the remote, what is done about a change.
Keeps: nothing is changed; a file that cannot be read is told, and has no row of its own; memory does not grow with the
cache.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from mire.edge.tree import hash_file
from mire.errors import MireError
from mire.flow.change import Local, Look, open_look, resolved
from mire.flow.datastore import Datastore
from mire.flow.local import tier_path
from mire.flow.mark import pending_marks
from mire.flow.place import open_place
from mire.model.names import RelPath
from mire.pipeline.frames import LOCAL, streamed
from mire.plan.change import paired

_Row = tuple[str, str, int | None, str | None, bytes | None]


def local_side(stack: ExitStack, spark: SparkSession, ds: Datastore, troubles: list[str]) -> DataFrame:
    """The cache of a datastore as rows, until the stack ends; what cannot be looked at is put into `troubles`."""
    return streamed(stack, spark, _rows(ds, troubles), LOCAL)


def _rows(ds: Datastore, troubles: list[str]) -> Iterator[_Row]:
    with open_look(ds, pending_marks(ds), is_full=True) as look, open_place(ds) as place:
        base = ((row.rel, row) for row in place.state.all_base())
        for rel, local, row in paired(_looked(ds, look, troubles), base):
            if local is not None:
                yield _row(local, None if row is None else row.entry)
            elif row is not None:
                yield rel, "same" if row.identity is not None else "missing", None, None, row.entry
        troubles += [trouble.message for trouble in look.troubles]


def _looked(ds: Datastore, look: Look, troubles: list[str]) -> Iterator[tuple[str, Local]]:
    for local in look:
        try:
            found = resolved(ds, local)
            if found.here == "changed" and found.sha256 is None:
                found = replace(found, sha256=hash_file(tier_path(ds, RelPath(found.rel))).sha256)
        except MireError as error:
            troubles.append(error.message)
            continue
        yield found.rel, found


def _row(local: Local, base: bytes | None) -> _Row:
    size = None if local.file is None else local.file.size_bytes
    return local.rel, local.here, size, local.sha256, base
