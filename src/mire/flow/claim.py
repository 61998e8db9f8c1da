"""Claiming a namespace of a store: the first repository that registers it has it.

Owns: the manifest, in a directory or at a remote, and its copy in a cache.
Must not know: what is in the namespace.
Keeps: a claim is created, never replaced; of two who claim at once one is told that the other has it. Only the
repository that has a namespace gives it back.
"""

import os

from mire.edge import clock, files
from mire.edge.remote import Absent, Remote, Unknown
from mire.errors import NotFoundError
from mire.flow.datastore import Datastore, check_claim, load_claim
from mire.model.manifest import Manifest
from mire.model.names import Namespace
from mire.wire.manifest import MANIFEST, decode_manifest, encode_manifest, encode_manifest_file, manifest_key


def fetch_claim(remote: Remote, namespace: Namespace) -> Manifest | None:
    """Who has a namespace of a remote, if anybody does."""
    key = manifest_key(namespace)
    try:
        return decode_manifest(remote.get(key).data, key)
    except NotFoundError:
        return None


def claim_of(ds: Datastore, namespace: Namespace) -> Manifest | None:
    """Who has a namespace of a datastore's store."""
    return load_claim(ds.base, namespace) if ds.remote is None else fetch_claim(ds.remote, namespace)


def claim_namespace(ds: Datastore, repo_id: str) -> None:
    """Register the namespace of a datastore; nothing to do without one. In a cache a copy shows it, too."""
    namespace = ds.config.namespace
    if not namespace:
        return
    claim = claim_of(ds, namespace)
    if claim is None:
        claim = Manifest(namespace=namespace, repo_id=repo_id, registered_at=clock.now_instant())
        _create(ds, claim)
        claim = claim_of(ds, namespace) or claim
    check_claim(claim, repo_id)
    if ds.remote is not None:
        files.make_dirs(ds.tier)
        files.write_file(os.path.join(ds.tier, MANIFEST), [encode_manifest_file(claim)])


def _create(ds: Datastore, claim: Manifest) -> None:
    if ds.remote is None:
        files.make_dirs(ds.tier)
        files.create_file(os.path.join(ds.tier, MANIFEST), encode_manifest_file(claim))
        return
    key = manifest_key(ds.config.namespace)
    outcome = ds.remote.put_if(key, encode_manifest(claim), Absent(), token=clock.new_uuid())
    if isinstance(outcome, Unknown):
        raise outcome.error


def release_namespace(ds: Datastore, repo_id: str) -> None:
    """Give the namespace of a datastore back, if it is ours: the name is free for others."""
    namespace = ds.config.namespace
    claim = claim_of(ds, namespace)
    if claim is not None and claim.repo_id == repo_id:
        if ds.remote is not None:
            ds.remote.delete(manifest_key(namespace))
        files.remove_file(os.path.join(ds.tier, MANIFEST))
