"""Dies before every step of a migration into a namespace or out of it, and looks at what is left; run as a script.

Usage: namespace_crash.py forward|reverse directory|v1|v2 DIRECTORY. Prints the number of deaths. In a directory a step
is every file operation; at a remote what changes something: a file, a commit of private state, a request that writes.
"""

import os
import shutil
import sys
from pathlib import Path

from sync_crash import Shelf, survives

import mire
from mire.edge.prefixed import Prefixed
from mire.edge.state import close_states
from mire.flow.namespace_migrate import migrate_namespace
from mire.testing.crash import survives as survives_file_operation
from mire.wire.export import EXPORT
from mire.wire.relpath import is_internal
from sync_world import committed
from tenants import Tenant

OURS = "team-a"
Files = dict[str, bytes]


class Scene:
    """A store with another tenant, and the repository that moves."""

    def __init__(self, top: Path, kind: str) -> None:
        self.top, self.kind = top, kind
        top.mkdir(parents=True, exist_ok=True)
        self.shared = top / "shared"
        self.shared.mkdir(exist_ok=True)
        self.remote = None if kind == "directory" else Shelf(top / "remote")
        block: dict[str, object] | None = {"type": "filesystem", "path": "../shared"}
        if self.remote is not None:
            block = {"index": "sharded" if kind == "v2" else "dual"}
        self.one = Tenant(top / "one", self.remote, block)
        self.other = Tenant(top / "other", self.remote, block)

    def objects(self) -> Files:
        """Every file or object of data, by its path in the store."""
        if self.remote is not None:
            memory = self.remote.memory
            return {stat.key: memory.get(stat.key).data for stat in memory.list() if not _is_internal(stat.key)}
        found = (path for path in self.shared.rglob("*") if path.is_file())
        keys = {str(path.relative_to(self.shared)): path for path in found}
        return {key: path.read_bytes() for key, path in keys.items() if not _is_internal(key)}

    def listed(self) -> Files:
        """What can be read: in a directory what is there; at a remote what an index lists, with its bytes."""
        if self.remote is None:
            return self.objects()
        memory, found = self.remote.memory, {}
        for namespace in ("", OURS, "other"):
            part = Prefixed(memory, namespace) if namespace else memory
            found |= {f"{namespace}/{rel}".lstrip("/"): part.get(rel).data for rel in committed(part)}
        return found

    def move(self, *, reverse: bool) -> None:
        """Migrate, as a new process does it."""
        with self.one.home():
            migrate_namespace(str(self.one.repo), reverse=reverse, adopt=True)


def _is_internal(key: str) -> bool:
    # Temporary files of a dead process are nobody's data.
    below = key.partition("/")[2] if key.startswith((f"{OURS}/", "other/", ".locks/")) else key
    return is_internal(below) or key.startswith(".locks/") or "_catalog.db-" in key


def build(scene: Scene, *, reverse: bool) -> None:
    """Data of both tenants; that of ours at the root, or in its namespace; one file is in both places already."""
    scene.other.take("other")
    scene.other.put("m", "theirs")
    if reverse:
        scene.one.take(OURS)
    scene.one.put("m", "first")
    scene.one.put("m", "second")
    if scene.remote is None:
        with scene.one.open() as store:
            store.model("svc", "web").put("log", "a log")
    if not reverse:
        scene.one.take(OURS)
    if scene.remote is None:
        here, there = (scene.shared, scene.shared / OURS) if not reverse else (scene.shared / OURS, scene.shared)
        twice = next(here.glob("data/svc/web/log/1/raw")).relative_to(here)
        (there / twice).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(here / twice, there / twice)


def moved(before: Files, *, reverse: bool) -> Files:
    """The store as it must be in the end; the published catalog of a namespace ends with it."""
    before = {key: data for key, data in before.items() if key != f"{OURS}/{EXPORT}"}
    theirs = {key: data for key, data in before.items() if key.startswith("other/")}
    ours = {key.removeprefix(f"{OURS}/"): data for key, data in before.items() if key not in theirs}
    return {**theirs, **{rel if reverse else f"{OURS}/{rel}": data for rel, data in ours.items()}}


def check(scene: Scene, before: Files, number: int, *, reverse: bool) -> None:
    """Everything can still be read in one place or the other; the next run finishes it, and all is where it belongs."""
    wanted = moved(before, reverse=reverse)
    listed = scene.listed()
    for key, data in wanted.items():
        rel = key.removeprefix(f"{OURS}/")
        assert data in (listed.get(key), listed.get(rel), listed.get(f"{OURS}/{rel}")), f"{number}: {key} is lost"
    if reverse and "namespace" not in str(scene.one.settings.get("datastore")):
        assert listed == wanted, f"{number}: the namespace was left too early"
        with scene.one.home():  # dead after the setting: taking the namespace again and leaving it ends it
            scene.one.take(OURS)
    scene.move(reverse=reverse)
    assert scene.objects() == wanted, f"{number}: {scene.objects().keys() ^ wanted.keys()}"
    assert scene.listed() == wanted, f"{number}: the index says something else"
    assert scene.one.get("m") == "second", number
    assert scene.other.get("m") == "theirs", number
    with scene.one.open() as store:
        store.model("aws/ec2/vpc", "m").put("state", "third")


def main(way: str, kind: str, top: Path) -> None:
    """Die before each step in turn."""
    reverse = way == "reverse"
    build(Scene(top / "clean", kind), reverse=reverse)
    before = Scene(top / "clean", kind).objects()
    close_states()
    die = survives_file_operation if kind == "directory" else survives
    for number in range(1, 2_000):
        shutil.rmtree(top / "run", ignore_errors=True)
        shutil.copytree(top / "clean", top / "run", symlinks=True)
        for settings in (top / "run").glob("*/.swamp.yaml"):
            settings.write_text(settings.read_text().replace(str(top / "clean"), str(top / "run")))
        scene = Scene(top / "run", kind)

        def work(scene: Scene = scene) -> None:
            scene.move(reverse=reverse)

        if die(work, number):
            sys.stdout.write(str(number - 1))
            return
        try:
            check(Scene(top / "run", kind), before, number, reverse=reverse)
        except mire.MireError as error:
            raise AssertionError(f"{number}: {error}") from error
        close_states()


if __name__ == "__main__":
    os.environ.pop("SWAMP_DATASTORE", None)
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
