"""The namespaces of a store, found as a job needs them: all that have anything, whoever registered them.

Owns: what of the top level of a store is a namespace.
Must not know: what a job does with one.
Keeps: nothing below the top level of a namespace is looked at; the part without a namespace is none.
"""

from collections.abc import Collection

from mire.edge import pool
from mire.edge.remote import Remote
from mire.model.names import SOLO, Namespace, is_namespace
from mire.pipeline.store import StoreSpec, open_spec
from mire.wire.relpath import has_tier

_AT_ONCE = 16


def namespaces_in(spec: StoreSpec, known: Collection[Namespace] = ()) -> tuple[Namespace, ...]:
    """Every namespace of a store, by name: one listing of the top level, and one for each name that is not `known`."""
    root = open_spec(spec.to_read().within(SOLO))
    names = [Namespace(name) for each in root.list_level("").prefixes if is_namespace(name := each.removesuffix("/"))]
    asked = [name for name in names if name not in known and name not in spec.own]
    found = {name for name, has_any in pool.run(lambda name: _has_any(root, name), asked, at_once=_AT_ONCE) if has_any}
    return tuple(sorted(name for name in names if name in found or name in known))


def _has_any(root: Remote, name: Namespace) -> bool:
    """Whether the directory looks like a part of a store: a solo tenant may have others of its own."""
    prefix = f"{name}/"
    level = root.list_level(prefix)
    keys = (*level.prefixes, *(stat.key for stat in level.objects))
    return has_tier(key.removeprefix(prefix).removesuffix("/") for key in keys)
