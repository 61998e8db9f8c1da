"""What does not belong into a tenant's part of a store, told by its path.

Owns: which paths are strays, where each belongs, and what may be done with one.
Must not know: where the store is, what is in an object.
Keeps: a directory of a datastore is never taken for somebody's namespace, whatever others registered; the only copy of
anything is moved, never dropped.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from mire.model.names import Namespace, is_namespace
from mire.wire.control import CONTROL
from mire.wire.layout import DATA, METADATA
from mire.wire.relpath import is_internal, tenant_of

Kind = Literal["doubled", "foreign", "stripped"]
Action = Literal["drop", "home", "quarantine"]

QUARANTINE: Final = f"{CONTROL}/mire/quarantine/"
"""Where strays go that have no other place: no client syncs what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A path in our part that belongs elsewhere: at `home` of a tenant."""

    rel: str
    kind: Kind
    tenant: Namespace
    home: str


def tenants_among(rels: Iterable[str], namespace: Namespace) -> set[Namespace]:
    """The names at the root of a part that can be other namespaces."""
    tops = {rel.partition("/")[0] for rel in rels if "/" in rel}
    return {Namespace(top) for top in tops if top != namespace and is_namespace(top)}


def strays_among(rels: Iterable[str], namespace: Namespace, known: Collection[str] = ()) -> list[Stray]:
    """The strays among the paths of a tenant's part, in a namespace also its own name once more.

    Below the name of a `known` namespace everything is its, below another one only what looks like it.
    """
    return [stray for rel in rels if (stray := _stray_of(rel, namespace, known)) is not None]


def _stray_of(rel: str, namespace: Namespace, known: Collection[str]) -> Stray | None:
    if namespace and rel.startswith(f"{namespace}/"):
        home = rel
        while home.startswith(f"{namespace}/"):  # some hydrated again and again
            home = home.removeprefix(f"{namespace}/")
        return Stray(rel=rel, kind="doubled", tenant=namespace, home=home)
    top = rel.partition("/")[0]
    tenant = Namespace(top) if top in known and is_namespace(top) else tenant_of(rel)
    if tenant is None or rel == tenant:
        return None
    return Stray(rel=rel, kind="foreign", tenant=tenant, home=rel.removeprefix(f"{tenant}/"))


def copies_among(same: Collection[str]) -> frozenset[str]:
    """Of the paths that have the same bytes in two places those that are copies, and not alike by chance.

    Of data a version is one if its metadata, which has an id, is the same, and so are the markers of its name.
    """
    versions = {rel.rpartition("/")[0] for rel in same if rel.endswith(f"/{METADATA}")}
    names = {version.rpartition("/")[0] for version in versions}
    return frozenset(
        rel for rel in same if not rel.startswith(f"{DATA}/") or rel.rpartition("/")[0] in versions | names
    )


def plan_repair(stray: Stray, is_same_at_home: bool | None) -> Action:  # noqa: FBT001 - an answer, not a switch
    """What to do with a stray, by what is at its home: nothing (None), the same bytes, or others."""
    if is_same_at_home:
        return "drop"
    # Into another tenant's part nothing is written, and an index or lock is put nowhere it could be believed.
    is_ours = stray.kind == "doubled" and not is_internal(stray.home)
    return "home" if is_ours and is_same_at_home is None else "quarantine"
