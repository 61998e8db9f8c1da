"""What other namespaces show: their manifests, their published catalogs, and content that is asked for by its name.

Owns: which keys outside our own namespace may be read at all.
Must not know: what is in a manifest or a catalog, why somebody asks.
Keeps: this view can only read, only one named object at a time, and only in a namespace: never the solo tenant's, never
an index, a lock or a control record of anybody; nothing can be listed.
"""

from mire.edge.local import LocalRemote
from mire.edge.remote import Body, Remote, Stat, Stream
from mire.errors import InputError, NotFoundError, shown
from mire.flow.datastore import Datastore
from mire.model.manifest import Manifest
from mire.model.names import Namespace, RelPath, is_namespace
from mire.wire.export import EXPORT
from mire.wire.manifest import MANIFEST, decode_manifest, manifest_key
from mire.wire.relpath import check_rel, is_internal, is_temporary

_PUBLISHED = (MANIFEST, EXPORT)


class ForeignView:
    """The read-only look into other namespaces of a store."""

    def __init__(self, store: Remote) -> None:
        self._store = store

    def get(self, namespace: Namespace, rel: str) -> Body:
        """An object of a namespace, all at once; `NotFoundError` when there is none."""
        return self._store.get(_permitted(namespace, rel))

    def get_if_changed(self, namespace: Namespace, rel: str, fingerprint: str) -> Body | None:
        """The object, or None when it still has this fingerprint."""
        return self._store.get_if_changed(_permitted(namespace, rel), fingerprint)

    def get_stream(self, namespace: Namespace, rel: str) -> Stream:
        """The object in pieces, for what may be large."""
        return self._store.get_stream(_permitted(namespace, rel))

    def head(self, namespace: Namespace, rel: str) -> Stat:
        """What is known of the object; `NotFoundError` when there is none."""
        return self._store.head(_permitted(namespace, rel))

    def manifest(self, namespace: Namespace) -> Manifest | None:
        """Who has a namespace, if anybody does."""
        try:
            return decode_manifest(self.get(namespace, MANIFEST).data, manifest_key(namespace))
        except NotFoundError:
            return None


def foreign_view(ds: Datastore) -> ForeignView:
    """The look from a datastore into the other namespaces of its store, be it a directory or a remote."""
    return ForeignView(ds.whole or ds.remote or LocalRemote(ds.base))


def _permitted(namespace: Namespace, rel: str) -> str:
    """The key of what may be read; whatever else is asked for is refused before anything is sent."""
    if not is_namespace(namespace):
        raise InputError(f"namespace {shown(namespace)} cannot be looked into: name one", kind="bad_name")
    if rel not in _PUBLISHED:
        why = check_rel(rel)
        if why is not None:
            raise InputError(why, kind="bad_name", path=shown(rel))
        if is_internal(rel) or is_temporary(rel) or "/" not in rel:
            raise InputError(
                f"path {shown(rel)} of the namespace {namespace} is its own affair: only content can be read",
                kind="not_shared",
                path=shown(rel),
            )
    return f"{namespace}/{RelPath(rel)}"
