"""Repositories that share one store, each a tenant of it: in namespaces of their own, or without one."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

import mire
from mire.edge.remote import Remote
from mire.edge.state import close_states
from mire.flow.namespace import set_namespace
from mire.flow.setup import init
from mire.wire.repo import replace_datastore


class Tenant:
    """A repository whose datastore is a remote in memory, or a directory."""

    def __init__(self, repo: Path, remote: Remote | None, block: dict[str, object] | None = None) -> None:
        self.repo, self.remote = repo, remote
        if not repo.exists():
            init(str(repo))
            settings = repo / ".swamp.yaml"
            if remote is not None:
                share = repo.parent / "share"
                share.mkdir(exist_ok=True)
                block = {"type": "@mire/file-datastore", "config": {"path": str(share), **(block or {})}}
            if block is not None:
                settings.write_bytes(replace_datastore(settings.read_bytes(), block))

    @property
    def repo_id(self) -> str:
        """The id by which it claims a namespace."""
        return str(self.settings["repoId"])

    @property
    def settings(self) -> dict[str, object]:
        """What its settings file says."""
        found: dict[str, object] = yaml.safe_load((self.repo / ".swamp.yaml").read_text())
        return found

    @contextmanager
    def home(self) -> Iterator[None]:
        """Caches below the directory of this world, and the remote in memory behind every address."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SWAMP_HOME", str(self.repo.parent / "home"))
            patch.setattr("mire.flow.cached._opened", lambda _: self.remote)
            yield

    @contextmanager
    def open(self) -> Iterator[mire.Store]:
        """Its store, as a new process opens it."""
        with self.home(), mire.open(self.repo) as store:
            try:
                yield store
            finally:
                close_states(store.datastore.base)

    def put(self, model: str, content: str, name: str = "state") -> None:
        """Write a version, and publish it."""
        with self.open() as store:
            store.model("aws/ec2/vpc", model).put(name, content)

    def get(self, model: str, name: str = "state") -> str:
        """Read the latest version."""
        with self.open() as store:
            return store.model("aws/ec2/vpc", model).get(name).text()

    def take(self, namespace: str) -> None:
        """Take a namespace."""
        with self.home():
            set_namespace(str(self.repo), namespace)


def is_within(operation: str, key: str, namespace: str, others: Iterable[str]) -> bool:
    """Whether a request is about nothing but a tenant's own part, and what every tenant may look at."""
    if operation == "server_time_ms":
        return True
    if key == "_control/datastore-format" and operation in ("get", "get_stream", "head"):
        return True
    if namespace:
        return key.startswith(f"{namespace}/") or key == f".locks/{namespace}.lock"
    # The solo tenant's part is what is no namespace's; listing all of it would list theirs.
    is_listing = operation.startswith("list")
    return key.partition("/")[0] not in (*others, ".locks") and (key != "" or not is_listing)
