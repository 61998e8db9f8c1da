"""Publishing a whole catalog because somebody asks for it.

Owns: what is brought before, so that it is whole.
Must not know: how a catalog is composed.
"""

from mire.errors import ConfigError
from mire.flow.datastore import Datastore
from mire.flow.exchange import pull_now, push_now
from mire.flow.place import open_place
from mire.flow.publish import ask_for_all
from mire.flow.publishdir import Shown, is_shown, publish_directory
from mire.flow.push import Pushed
from mire.flow.within import Watch
from mire.wire.repo import PUBLISH


def publish_now(ds: Datastore, *, watch: Watch | None = None) -> Shown | Pushed:
    """Let other namespaces see exactly what is there: all rows are written anew, in a directory or by a push."""
    if not ds.config.namespace:
        raise ConfigError(
            "without a namespace there is nobody to publish a catalog for: 'mire namespace set NAME' gives one",
            kind="no_namespace",
        )
    if not ds.config.publishes_catalog:
        raise ConfigError(f".swamp.yaml says {PUBLISH}: false, so nothing is published: change it first")
    if is_shown(ds):
        ds.check_writable()
        return publish_directory(ds)
    pull_now(ds, watch=watch)
    with open_place(ds) as place:
        ask_for_all(place)
    return push_now(ds, watch=watch)
