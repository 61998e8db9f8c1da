"""The second cache of a repository that moves from one remote to another, until it takes the place of the first.

Owns: where it is, and the exchange of the two directories.
Must not know: what is in them, when the settings are switched.
Keeps: the settings say which of the two counts. Whoever opens a repository whose settings are switched finishes the
exchange; the old cache stays, under another name.
"""

import os

from mire.edge import clock, files
from mire.edge.bound import bound_to
from mire.edge.state import close_states


def moving_dir(base: str) -> str:
    """Where the cache of the new remote is made."""
    return f"{base}.moving"


def finish_move(base: str, name: str) -> str | None:
    """Put the cache of the remote of this name in its place, if it waits for that; where the old one is now."""
    fresh = moving_dir(base)
    if not files.is_dir(fresh) or bound_to(fresh) != name or bound_to(base) == name:
        return None
    for each in (base, fresh):
        close_states(os.path.realpath(each))
    was = f"{base}.was-{clock.new_uuid()[:8]}"
    with files.mapped(base):
        if os.path.lexists(base):
            os.rename(base, was)
        os.rename(fresh, base)
    files.sync_dir(os.path.dirname(base))
    return was
