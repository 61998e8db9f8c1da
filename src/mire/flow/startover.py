"""Starting over with a remote that has no index any more, although there was one.

Owns: which part of the private state is about the remote's content, and when it is forgotten.
Must not know: what is pushed or pulled.
Keeps: marks stay, and everything is marked before anything is forgotten: nothing is taken for published. A pull that
finds no index forgets nothing: it may be there again in a moment.
"""

from collections.abc import Mapping
from typing import Final

from mire.flow.mark import mark_all
from mire.flow.place import Place

_GONE: Final = "index_gone"
_FACTS: Final[Mapping[str, None]] = dict.fromkeys(
    (
        *("generation", "meta", "meta_text", "meta_looked_ms", "monolith", "monolith_copy", "monolith_size"),
        *("unsettled", "lazy", _GONE),
    )
)


def offer_again(place: Place) -> None:
    """Let the next push look whether there is an index, and offer everything if there is none."""
    mark_all(place.ds)
    place.state.set_facts({_GONE: "1"})


def is_offered_again(place: Place) -> bool:
    """Whether a push has to look although nothing changed here."""
    return place.state.fact(_GONE) is not None


def start_over(place: Place) -> list[str]:
    """Forget what was agreed, so that everything here is offered; the paths whose content is not here, so is lost."""
    mark_all(place.ds)
    state = place.state
    lost = [row.rel for row in state.unhydrated()]
    with state.transaction():
        state.forget([row.rel for row in state.all_base()])
        state.set_facts(_FACTS)
        state.set_shard_tags(dict.fromkeys(state.shard_tags()))
    return lost


def go_on(place: Place) -> None:
    """There is an index after all."""
    place.state.set_facts({_GONE: None})
