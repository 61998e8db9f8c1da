"""Forgetting what was agreed with a remote, when there is no index any more that says so.

Owns: which part of the private state is about the remote's content.
Must not know: why it is forgotten.
Keeps: marks stay; whoever calls this marks everything first, so that nothing is taken for pushed.
"""

from collections.abc import Mapping
from typing import Final

from mire.edge.state import State

_FACTS: Final[Mapping[str, None]] = dict.fromkeys(
    ("generation", "meta", "meta_text", "meta_looked_ms", "monolith", "monolith_copy", "monolith_size", "unsettled")
)


def forget_remote(state: State) -> None:
    """Forget the base and every fingerprint."""
    with state.transaction():
        state.forget([row.rel for row in state.all_base()])
        state.set_facts(_FACTS)
        state.set_shard_tags(dict.fromkeys(state.shard_tags()))
