"""Which keys of a store are a tenant's own: the one place that says it.

Owns: the rule, for namespaces and for those who have none.
Must not know: what the keys hold.
Keeps: besides its own part a tenant has the older key of its global lock, and reads the format marker; nothing else.
"""

from collections.abc import Collection

from mire.edge.fenced import READS, Allows, Fenced
from mire.edge.remote import Remote
from mire.model.config import Config
from mire.model.names import SOLO, Namespace
from mire.wire.control import FORMAT_RECORD, control_key
from mire.wire.layout import OLD_LOCKS, global_locks
from mire.wire.relpath import tenant_of

_MARKER = control_key(SOLO, FORMAT_RECORD)


def fenced(remote: Remote, config: Config) -> Remote:
    """A store in which only a tenant's own keys can be used."""
    return Fenced(remote, _inside(config.namespace) if config.namespace else _nobodys(config.directories))


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
