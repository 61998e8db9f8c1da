"""How old our knowledge of the remote is: when everything was last pulled.

Owns: what is said where nothing was pulled yet.
Must not know: what was pulled.
Keeps: without a remote there is no age; asking costs no request.
"""

from typing import Final

from mire.flow.datastore import Datastore
from mire.flow.mark import open_cache_state

_FACT: Final = "pulled_ms"


def pulled_ms(ds: Datastore) -> float | None:
    """When everything was last pulled, by our clock; None when it never was."""
    if ds.remote is None:
        return None
    with open_cache_state(ds) as state:
        text = state.fact(_FACT)
    return None if text is None else float(text)


def hint_never_pulled(ds: Datastore) -> str:
    """What to add to "there is nothing" in a cache that was never filled; empty in all others."""
    if ds.remote is None or pulled_ms(ds) is not None:
        return ""
    return f" (this cache of {ds.remote.properties.name} was never filled: run 'mire pull')"
