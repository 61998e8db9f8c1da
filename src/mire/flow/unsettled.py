"""Paths that must be looked at again although the index may not move: what could not be settled, or was settled early.

Owns: the list of them.
Must not know: why a path is on it.
Keeps: a path leaves only by being dealt with; a list that would grow too long is replaced by looking at everything.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from mire.edge.state import State
from mire.model.names import RelPath
from mire.wire.jsontext import decode_json, encode_compact

_FACT: Final = "unsettled"
_MOST: Final = 2_000
_FINGERPRINTS: Final[Mapping[str, None]] = {"monolith": None, "meta": None, "meta_text": None}


def load_unsettled(state: State) -> frozenset[RelPath]:
    """The paths to look at again."""
    text = state.fact(_FACT)
    return frozenset() if text is None else frozenset(map(RelPath, decode_json(text.encode(), _FACT)))


def keep_unsettled(state: State, paths: Iterable[RelPath]) -> bool:
    """Put paths on the list; False when there are too many, and everything will be looked at instead."""
    with state.transaction():
        before = load_unsettled(state)
        now = before | set(paths)
        if len(now) > _MOST:
            state.set_shard_tags(dict.fromkeys(state.shard_tags()))
            state.set_facts({_FACT: None, **_FINGERPRINTS})
            return False
        if now != before:
            _save(state, now)
        return True


def settle(state: State, paths: Collection[RelPath]) -> None:
    """Take paths that were dealt with off the list."""
    with state.transaction():
        before = load_unsettled(state)
        if not before.isdisjoint(paths):
            _save(state, before.difference(paths))


def _save(state: State, paths: Collection[RelPath]) -> None:
    state.set_facts({_FACT: encode_compact(sorted(paths)).decode() if paths else None})
