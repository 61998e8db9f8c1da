"""Dies before every file operation of a setup and looks at what is left; run as a script.

Usage: setup_crash.py DIRECTORY. Prints the number of deaths, or fails with what was seen.
"""

import os
import shutil
import sys
from pathlib import Path

import mire
from mire.edge.state import close_states
from mire.flow.prospect import Prospect, Wish, examine
from mire.flow.setup_remote import set_up
from mire.testing.crash import deaths

Files = dict[str, bytes]


def prepare(directory: Path) -> None:
    """A repository with two names, and a share where somebody else has data."""
    for name in ("repo", "other", "third", "share"):
        (directory / name).mkdir()
    mire.open(directory / "repo").model("svc", "web-1").put("state", "ours")
    share, other = directory / "share", directory / "other"
    mire.open(other).model("svc", "db-1").put("state", "theirs")
    assert set_up(examine(str(other), Wish(url=f"cached:{share}"))).is_switched
    shutil.rmtree(directory / "home/.swamp/repos")


def files_below(directory: Path) -> Files:
    """The data in a directory, by path."""
    found = (path for path in directory.glob("data/**/*") if path.is_file() and "_catalog.db" not in path.name)
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


def check(directory: Path, before: Files, settings: bytes) -> None:
    """The repository uses the old datastore or the new one; the old data is as it was; what is published is whole."""
    repo = directory / "repo"
    assert files_below(repo / ".swamp") == before
    is_switched = (repo / ".swamp.yaml").read_bytes() != settings
    store = mire.open(repo)
    assert (store.datastore.remote is not None) == is_switched
    assert store.model("svc", "web-1").get("state").text() == "ours"
    if is_switched:
        assert store.model("svc", "db-1").get("state").text() == "theirs"
    for rel, data in files_below(directory / "share").items():
        assert rel.startswith("data/svc/db-1") or before[rel] == data, rel


def check_next(directory: Path, before: Files) -> None:
    """The next run finishes the work, and a second repository sees all of it."""
    done = set_up(examine(str(directory / "repo"), wish(directory)))
    assert done.is_switched, (done.conflicts, done.findings)
    assert not list((directory / "home").rglob("mire-carried*"))
    published = files_below(directory / "share")
    assert {rel: data for rel, data in published.items() if rel in before} == before
    store = mire.open(directory / "repo")
    assert [store.model("svc", name).get("state").text() for name in ("web-1", "db-1")] == ["ours", "theirs"]
    third = mire.open(directory / "third")
    assert set_up(examine(str(directory / "third"), wish(directory))).is_switched
    third = mire.open(directory / "third")
    assert [third.model("svc", name).get("state").text() for name in ("web-1", "db-1")] == ["ours", "theirs"]


def wish(directory: Path) -> Wish:
    """The setup that is tried."""
    return Wish(url=f"cached:{directory / 'share'}")


def main(directory: Path) -> None:
    """Die everywhere once."""
    os.environ |= {"HOME": str(directory / "work/home")}
    work, origin = directory / "work", directory / "origin"
    (work / "home").mkdir(parents=True)
    prepare(work)
    mire.open(work / "third").model("a", "b").put("c", "d")
    shutil.rmtree(work / "third/.swamp")
    settings, before = (work / "repo/.swamp.yaml").read_bytes(), files_below(work / "repo/.swamp")
    shutil.copytree(work, origin)
    prospects: list[Prospect] = []

    def again() -> None:
        close_states()
        shutil.rmtree(work)
        shutil.copytree(origin, work)
        prospects[:] = [examine(str(work / "repo"), wish(work))]
        close_states()

    count = 0
    for _ in deaths(again, lambda: set_up(prospects[0]), most=5_000):
        count += 1
        check(work, before, settings)
        check_next(work, before)
    print(count)  # noqa: T201 - the result of the script


if __name__ == "__main__":
    main(Path(sys.argv[1]))
