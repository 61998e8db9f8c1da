"""Which keys of a store are a tenant's own: the one place that says it.

Owns: the rule, for namespaces and for those who have none, and for jobs that work in one part or read another.
Must not know: what the keys hold.
Keeps: besides its own part a tenant has the older key of its global lock, and reads the format marker; nothing else.
Nobody writes into a part that is not its own.
"""

from collections.abc import Collection

from mire.edge.fenced import READS, Allows, Fenced
from mire.edge.remote import Remote
from mire.model.config import Config
from mire.model.names import SOLO, Namespace
from mire.wire.control import CONTROL, FORMAT_RECORD, control_key
from mire.wire.layout import OLD_LOCKS, global_locks
from mire.wire.manifest import MANIFEST
from mire.wire.relpath import tenant_of

_MARKER = control_key(SOLO, FORMAT_RECORD)


def fenced(remote: Remote, config: Config) -> Remote:
    """A store in which only a tenant's own keys can be used."""
    return Fenced(remote, _inside(config.namespace) if config.namespace else _nobodys(config.directories))


def fenced_for_job(remote: Remote, namespace: Namespace, own: Collection[str], *, is_read_only: bool) -> Remote:
    """A store in which a job can use one part; `is_read_only` is for what it was only given to look at.

    To cut the listing of a part without a namespace it has to tell what is somebody's: so it sees the names at the
    top, and whether they have a manifest. Of a part that is not its own it sees no control record and no lock.
    """
    named = _shown if is_read_only else _inside
    allows = named(namespace) if namespace else _and_top(_nobodys(own))
    return Fenced(remote, _only_reading(allows) if is_read_only else allows)


def _and_top(allows: Allows) -> Allows:
    def allows_more(operation: str, key: str) -> bool:
        if operation == "list_level" and not key:
            return True
        is_manifest = key.partition("/")[2] == MANIFEST and operation in READS
        return is_manifest or allows(operation, key)

    return allows_more


def _shown(namespace: Namespace) -> Allows:
    prefix, hidden = f"{namespace}/", f"{namespace}/{CONTROL}/"

    def allows(operation: str, key: str) -> bool:
        del operation
        return key.startswith(prefix) and not key.startswith(hidden) and not key.endswith(".lock")

    return allows


def _only_reading(allows: Allows) -> Allows:
    def reads(operation: str, key: str) -> bool:
        return (operation in READS or operation.startswith("list")) and allows(operation, key)

    return reads


def _inside(namespace: Namespace) -> Allows:
    prefix, locks = f"{namespace}/", global_locks(namespace)

    def allows(operation: str, key: str) -> bool:
        return key.startswith(prefix) or key in locks or (key == _MARKER and operation in READS)

    return allows


def _nobodys(own: Collection[str]) -> Allows:
    """The part of those without a namespace: what is no namespace's; all of it cannot be listed, theirs would be."""

    def allows(operation: str, key: str) -> bool:
        if key.startswith(OLD_LOCKS) or (operation.startswith("list") and not key):
            return False
        return tenant_of(key) is None or key.partition("/")[0] in own

    return allows
