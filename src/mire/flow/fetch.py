"""The bytes of one object as the remote has it, past the cache.

Owns: which keys may be asked for.
Must not know: what is in the cache, what the index says.
Keeps: nothing is written anywhere; None means that the store said so, and never that asking failed.
"""

from mire.errors import InputError, shown
from mire.flow.datastore import Datastore
from mire.flow.place import Same, fetch, view_of
from mire.wire.relpath import check_rel


def fetch_content(ds: Datastore, key: str) -> bytes | None:
    """The object at a path of the cache, which begins with the namespace if there is one; None when there is none.

    The bytes are not compared with an index, which may say something else by now.
    """
    view, namespace = view_of(ds), ds.config.namespace
    why = check_rel(key)
    if why is not None:
        raise InputError(f"{why}: give a path of the cache, with '/' between its parts", kind="bad_key", key=key)
    inside = key.removeprefix(f"{namespace}/") if namespace else key
    if namespace and inside == key:
        raise InputError(
            f"path {shown(key)} is not in the namespace {namespace}: begin it with '{namespace}/'",
            kind="bad_key",
            key=key,
        )
    body = fetch(view, inside)
    return None if body is None or isinstance(body, Same) else body.data
