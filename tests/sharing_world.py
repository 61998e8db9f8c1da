"""Namespaces that share one store: a directory, a remote in memory, or a server; each with a repository of its own."""

from pathlib import Path
from typing import Any

import mire
from mire.edge.remote import Remote
from mire.edge.state import close_states
from mire.flow.imports import Imported
from mire.model.artifact import Metadata
from mire.wire.export import EXPORT
from sync_world import Client, Recorded, World


class Tenant:
    """A repository in a namespace, and what a test asks of it."""

    def __init__(self, store: mire.Store, client: Client | None = None) -> None:
        self.store = store
        self.client = client
        self.ds = store.datastore

    def put(self, model: str, content: Any, name: str = "state", **options: Any) -> Metadata:
        """Write a version of a router, published as far as the kind of store needs that to be said."""
        done = self.router(model).put(name, content, **options)
        self.publish()
        return done

    def delete(self, model: str, name: str = "state", version: int | None = None) -> None:
        """Delete a version, or a name."""
        self.router(model).delete(name, version)
        self.publish()

    def router(self, model: str) -> mire.Model:
        """A model; its name is the same in every namespace."""
        return self.store.model("net/router", model, name=f"router-{model}")

    def publish(self) -> None:
        """Push, where there is something to push to."""
        if self.client is not None:
            assert self.client.push().is_whole

    def pull(self, *names: str) -> list[Imported]:
        """Import catalogs."""
        return self.store.pull_catalogs(*names)

    def query(self, predicate: str, **options: Any) -> list[tuple[str, str, int]]:
        """Namespace, model and version of what is found, sorted."""
        found = self.store.query(predicate, **options)
        return sorted((row["namespace"], row["modelId"], row["version"]) for row in found)


class Tenants:
    """One store and the namespaces in it."""

    def __init__(self, root: Path, remote: Remote | None) -> None:
        self.root = root
        self.recorded = None if remote is None else Recorded(remote)
        self.world = None if remote is None else World(root / "world")
        self.share = root / "share"
        self._stores: list[Tenant] = []

    def tenant(self, namespace: str, *, publishing: bool = True) -> Tenant:
        """A new repository in a namespace."""
        if self.world is not None:
            client = self.world.client(self.recorded, namespace=namespace, lazy=True, publishing=publishing)
            made = Tenant(client.store, client)
        else:
            made = Tenant(mire.open(self.repository(namespace, publishing=publishing)))
        self._stores.append(made)
        return made

    def repository(self, namespace: str, *, publishing: bool = True) -> Path:
        """A repository that points at the shared directory."""
        self.share.mkdir(exist_ok=True)
        path = self.root / f"repo-{len(self._stores)}-{namespace or 'solo'}"
        path.mkdir()
        (path / ".swamp.yaml").write_text(
            f'swampVersion: "2026.08.12.1"\ninitializedAt: "2026-01-01T00:00:00.000Z"\nrepoId: "{path.name}"\n'
            f"datastore:\n  type: filesystem\n  path: {self.share}\n"
            + (f"  namespace: {namespace}\n" if namespace else "")
            + ("" if publishing else "  publishCatalog: false\n")
        )
        return path

    def damage(self, namespace: str, rel: str, content: bytes) -> None:
        """Replace what a namespace has under a path."""
        if self.recorded is not None:
            self.recorded.put(f"{namespace}/{rel}", content)
        else:
            (self.share / namespace / rel).write_bytes(content)

    def remove(self, namespace: str, rel: str) -> None:
        """Take away what a namespace has under a path."""
        if self.recorded is not None:
            self.recorded.delete(f"{namespace}/{rel}")
        else:
            (self.share / namespace / rel).unlink()

    def published(self, namespace: str) -> bytes:
        """What a namespace publishes."""
        if self.recorded is not None:
            return self.recorded.get(f"{namespace}/{EXPORT}").data
        return (self.share / namespace / EXPORT).read_bytes()

    def take(self) -> list[tuple[str, str]]:
        """What was asked of the remote since the last time; a directory is not asked."""
        return [] if self.recorded is None else self.recorded.take()

    @property
    def is_remote(self) -> bool:
        """Whether requests can be counted."""
        return self.recorded is not None

    def close(self) -> None:
        """Close what is open."""
        for each in self._stores:
            each.store.close()
            close_states(each.ds.base)
