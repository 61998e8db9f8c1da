"""Bringing content that a lazy pull left at the remote: of one file, or of exactly those that are asked for.

Owns: what is asked for when content is read, and the error when it does not come.
Must not know: who reads it.
Keeps: what is here is never fetched again; without a remote nothing is asked.
"""

import os
from collections.abc import Sequence

from mire.errors import NotFoundError, RemoteError
from mire.flow.datastore import Datastore
from mire.flow.place import open_place
from mire.flow.pull import Pulled, bring_content
from mire.model.names import RelPath


def hydrate(ds: Datastore, rels: Sequence[RelPath]) -> Pulled:
    """Bring the content of some paths that is not here yet; what did not come is among the findings."""
    done = Pulled()
    missing = [rel for rel in rels if not os.path.lexists(os.path.join(ds.tier, rel))]
    if ds.remote is None or not missing:
        return done
    with open_place(ds) as place:
        bring_content(place, missing, done)
    return done


def hydrate_content(ds: Datastore, rel: RelPath) -> None:
    """Bring one file that somebody is about to read; an error says why it did not come."""
    done = hydrate(ds, [rel])
    if done.findings:
        raise RemoteError(f"the content is not here, and could not be brought: {done.findings[0]}", kind="not_hydrated")
    if not os.path.lexists(os.path.join(ds.tier, rel)):
        raise NotFoundError(f"the content {rel} is neither here nor at the remote", kind="content_missing", key=rel)
