"""The namespaces of a store: who registered which.

Owns: finding them, in a directory and at a remote alike.
Must not know: what is in a namespace, how a name is claimed.
Keeps: the top level is listed and nothing below it; besides that only manifests are read.
"""

from dataclasses import dataclass

from mire.edge import files, pool
from mire.errors import FormatError
from mire.flow.datastore import Datastore
from mire.flow.foreign import foreign_view
from mire.model.names import Namespace, is_namespace

_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """One namespace of a store."""

    namespace: Namespace
    repo_id: str
    """Empty when its manifest is not understood: it is somebody's all the same."""
    registered_at: str
    is_ours: bool
    trouble: str | None = None


def list_namespaces(ds: Datastore) -> list[Registered]:
    """Every registered namespace, by name: one listing of the top level, and one manifest for each name there."""
    view = foreign_view(ds)

    def look(name: Namespace) -> Registered | None:
        is_ours = name == ds.config.namespace
        try:
            found = view.manifest(name)
        except FormatError as error:
            return Registered(namespace=name, repo_id="", registered_at="", is_ours=is_ours, trouble=error.message)
        if found is None:
            return None
        return Registered(namespace=name, repo_id=found.repo_id, registered_at=found.registered_at, is_ours=is_ours)

    found = (each for _, each in pool.run(look, top_names(ds), at_once=_AT_ONCE))
    return sorted((each for each in found if each is not None), key=lambda each: each.namespace)


def top_names(ds: Datastore) -> list[Namespace]:
    """The names at the top level of a store that a namespace can have."""
    whole = ds.whole or ds.remote
    if whole is None:
        names = [entry.name for entry in files.list_dir(ds.base) if entry.is_dir]
    else:
        names = [prefix.removesuffix("/") for prefix in whole.list_level("").prefixes]
    return sorted(Namespace(name) for name in names if is_namespace(name))
