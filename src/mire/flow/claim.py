"""Claiming a namespace of a remote: the first repository that registers it has it.

Owns: the manifest at the remote, and its copy in the cache.
Must not know: what is in the namespace.
Keeps: a claim is created, never replaced; of two who claim at once one is told that the other has it.
"""

import os

from mire.edge import clock, files
from mire.edge.remote import Absent, Remote, Unknown
from mire.errors import ConflictError, NotFoundError
from mire.flow.datastore import Datastore
from mire.model.manifest import Manifest
from mire.model.names import Namespace
from mire.wire.manifest import MANIFEST, decode_manifest, encode_manifest, encode_manifest_file, manifest_key


def fetch_claim(remote: Remote, namespace: Namespace) -> Manifest | None:
    """Who has a namespace, if anybody does."""
    key = manifest_key(namespace)
    try:
        return decode_manifest(remote.get(key).data, key)
    except NotFoundError:
        return None


def check_claim(claim: Manifest | None, repo_id: str) -> None:
    """Refuse a namespace that another repository has."""
    if claim is not None and claim.repo_id != repo_id:
        raise ConflictError(
            f"the namespace {claim.namespace} belongs to the repository {claim.repo_id} since {claim.registered_at}:"
            " choose another",
            kind="namespace_taken",
            namespace=claim.namespace,
            repo_id=claim.repo_id,
        )


def claim_namespace(ds: Datastore, repo_id: str) -> None:
    """Register our namespace at the remote of a datastore, and show it in the cache; nothing to do without one."""
    remote, namespace = ds.remote, ds.config.namespace
    if not namespace or remote is None:
        return
    claim = fetch_claim(remote, namespace)
    if claim is None:
        claim = Manifest(namespace=namespace, repo_id=repo_id, registered_at=clock.now_instant())
        outcome = remote.put_if(manifest_key(namespace), encode_manifest(claim), Absent(), token=clock.new_uuid())
        if isinstance(outcome, Unknown):
            raise outcome.error
        claim = fetch_claim(remote, namespace) or claim
    check_claim(claim, repo_id)
    files.make_dirs(ds.tier)
    files.write_file(os.path.join(ds.tier, MANIFEST), [encode_manifest_file(claim)])
