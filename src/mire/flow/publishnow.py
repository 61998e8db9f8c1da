"""Publishing a whole catalog because somebody asks for it, withdrawing it, and whether it waits to be published.

Owns: what is brought before, so that it is whole.
Must not know: how a catalog is composed.
"""

from mire.errors import ConfigError, ConflictError
from mire.flow.datastore import Datastore
from mire.flow.exchange import check_gate, pull_now, push_now
from mire.flow.place import open_place
from mire.flow.publish import ask_for_all, has_due
from mire.flow.publishdir import Shown, is_put_off, is_shown, publish_directory, withdraw
from mire.flow.push import Pushed
from mire.flow.relocate_remote import drop_export, open_side
from mire.flow.within import Watch, within_timeout
from mire.wire.repo import PUBLISH


def publish_now(ds: Datastore, *, watch: Watch | None = None) -> Shown | Pushed:
    """Let other namespaces see exactly what is there: all rows are written anew, in a directory or by a push."""
    _check_namespace(ds)
    if not ds.config.publishes_catalog:
        raise ConfigError(f".swamp.yaml says {PUBLISH}: false, so nothing is published: change it first")
    if is_shown(ds):
        ds.check_writable()
        return publish_directory(ds)
    pull_now(ds, watch=watch)
    with open_place(ds) as place:
        ask_for_all(place)
    return push_now(ds, watch=watch)


def unpublish_now(ds: Datastore, *, watch: Watch | None = None) -> bool:
    """Take back what other namespaces can see, once nothing is published any more; whether there was something."""
    _check_namespace(ds)
    if ds.config.publishes_catalog:
        raise ConflictError(
            f"the next write would publish it again: say {PUBLISH}: false in the datastore block of .swamp.yaml first",
            kind="publishing",
        )
    if ds.remote is None:
        ds.check_writable()
        return withdraw(ds)
    check_gate(ds)
    with open_side(within_timeout(ds, watch), ds.config.namespace) as place:
        was_there = drop_export(place)
    return withdraw(ds) or was_there


def is_waiting(ds: Datastore) -> bool | None:
    """Whether others do not see everything yet, because that was put off or failed; None where nothing is published."""
    if not ds.config.namespace or not ds.config.publishes_catalog:
        return None
    return is_put_off(ds) if ds.remote is None else has_due(ds)


def _check_namespace(ds: Datastore) -> None:
    if not ds.config.namespace:
        raise ConfigError(
            "without a namespace there is nobody to publish a catalog for: 'mire namespace set NAME' gives one",
            kind="no_namespace",
        )
