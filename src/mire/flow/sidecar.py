"""The state file that all clients of a cache share, kept in step with our journal.

Owns: reading and writing it, and telling what others wrote into it from what we wrote.
Must not know: why a path is marked, what a push does.
Keeps: what others marked is in the journal when the file is changed; a file is replaced only by one that says
everything it said. Whoever changes it holds the write lock of the journal, so two of us never meet here.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from mire.edge import files
from mire.edge.state import State
from mire.errors import InternalError
from mire.flow.datastore import Datastore
from mire.model.state import ETAG, GENERATION, FingerprintKind, Sidecar
from mire.plan.mark import plan_cleared, plan_shown, strange_marks
from mire.wire.sidecar import PATHS_MAX, SIDECAR, decode_sidecar, encode_sidecar

_BYTES_MAX: Final = 16 << 20
_OURS: Final = "sidecar"
"""The fact that names the sidecar that says nothing new to us: the last one we read or wrote.

Only that one: somebody who writes an earlier one again says that all of it is to be looked at again.
"""


@dataclass(frozen=True, slots=True)
class _Seen:
    sidecar: Sidecar | None
    is_strange: bool


def show_marks(ds: Datastore, state: State, paths: Iterable[str], *, is_bulk: bool = False) -> None:
    """Show marks that the journal has; part of the transaction that records them."""
    with state.transaction():
        seen = _absorbed(ds, state)
        # Who wrote it last may have dropped ours: it keeps what it read at its start.
        ours = state.first_marked(PATHS_MAX + 1) if seen.is_strange else ()
        shown = plan_shown(seen.sidecar, [*paths, *ours], is_bulk=is_bulk, kind=kind_of(ds))
        _save(ds, state, seen, shown)


def settle_marks(ds: Datastore, state: State, *, create: bool = False) -> None:
    """Record in the journal what others marked, and show only what the journal then has."""
    with state.transaction():
        seen = _absorbed(ds, state)
        if seen.sidecar is not None or create:
            _save(ds, state, seen, _cleared(ds, state, seen))


def take_up_marks(ds: Datastore, state: State) -> None:
    """Record in the journal what others marked, if they did."""
    digest, _ = _read(ds)
    if digest != _ours(state):
        settle_marks(ds, state)


def update_sidecar(ds: Datastore, state: State, change: Callable[[Sidecar], Sidecar]) -> None:
    """Change what the sidecar says besides marks: fingerprint, `commit_seq`, whether content was left out."""
    with state.transaction():
        seen = _absorbed(ds, state)
        before = _cleared(ds, state, seen)
        after = change(before)
        if (after.dirty_paths, after.bulk_invalidated) != (before.dirty_paths, before.bulk_invalidated):
            raise InternalError("marks of a sidecar are changed by marking and acknowledging only")
        _save(ds, state, seen, after)


def kind_of(ds: Datastore) -> FingerprintKind:
    """How the datastore's remote tells one index from the next."""
    return ETAG if ds.remote is None or ds.remote.properties.content_fingerprint else GENERATION


def _path(ds: Datastore) -> str:
    return os.path.join(ds.base, SIDECAR)


def _read(ds: Datastore) -> tuple[str, bytes | None]:
    data = files.read_file(_path(ds), limit=_BYTES_MAX)
    return "none" if data is None else hashlib.sha256(data).hexdigest(), data


def _ours(state: State) -> str:
    return state.fact(_OURS) or "none"


def _absorbed(ds: Datastore, state: State) -> _Seen:
    digest, data = _read(ds)
    ours = _ours(state)
    sidecar = None if data is None else _decoded(data, kind_of(ds))
    if digest != ours:
        found = strange_marks(sidecar, cache=ds.base)
        state.note(found.paths)
        if found.is_bulk:
            state.mark_bulk()
        state.set_facts({_OURS: digest})
    return _Seen(sidecar, is_strange=digest != ours)


def _decoded(data: bytes, kind: FingerprintKind) -> Sidecar | None:
    sidecar = decode_sidecar(data)
    return sidecar if sidecar is not None and sidecar.kind == kind else None


def _cleared(ds: Datastore, state: State, seen: _Seen) -> Sidecar:
    listed = () if seen.sidecar is None else seen.sidecar.dirty_paths
    return plan_cleared(seen.sidecar, state.known(listed), is_clear=state.is_clear, kind=kind_of(ds))


def _save(ds: Datastore, state: State, seen: _Seen, sidecar: Sidecar) -> None:
    """Write it before the transaction ends: should we die in between, we read it as somebody else's."""
    if sidecar == seen.sidecar:
        return
    data = encode_sidecar(sidecar)
    files.write_file(_path(ds), [data])
    state.set_facts({_OURS: hashlib.sha256(data).hexdigest()})
