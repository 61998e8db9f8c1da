"""Dies before every file operation of a retention run and looks at what is left; run as a script.

Usage: retain_crash.py DIRECTORY. Prints the number of deaths, or fails with what was seen.
"""

import shutil
import sys
from datetime import timedelta
from pathlib import Path

import mire
from mire.edge import clock
from mire.errors import NotFoundError
from mire.flow.retain import retain
from mire.testing.crash import deaths

LATER = clock.now() + timedelta(days=10)
Seen = dict[str, dict[int, bytes]]


def prepare(repo: Path) -> None:
    """A name with versions beyond its policy, one that has expired, one that stays."""
    model = mire.open(repo).model("svc", "web-1")
    for number in range(1, 4):
        model.put("state", f"state {number}", version_policy=1)
    for number in range(1, 3):
        model.put("old", f"old {number}", lifetime="1d")
    model.put("kept", "kept")


def seen(repo: Path) -> Seen:
    """Every version with its verified content; what a lookup answers is the highest of them."""
    model = mire.open(repo).model("svc", "web-1")
    found: Seen = {}
    for name in ("state", "old", "kept"):
        numbers = model.versions(name)
        found[name] = {number: model.get(name, number).bytes() for number in numbers}
        try:
            assert model.get(name).version == max(numbers)
        except NotFoundError:
            assert not numbers, f"'latest' of {name} points to nothing, but there are {numbers}"
    assert [row.error for row in model.names()] == [None] * len([name for name in found.values() if name])
    return found


def check(repo: Path, before: Seen, after: Seen) -> None:
    """Each version is there or gone, and the lock of the dead still stands where work was left."""
    state = seen(repo)
    assert state["old"] in (before["old"], after["old"]), state["old"]
    assert state["kept"] == before["kept"]
    assert set(after["state"]) <= set(state["state"]), state
    assert all(before["state"][number] == data for number, data in state["state"].items())
    if state not in (before, after):
        assert (repo / ".swamp/.datastore.lock").exists(), "a removal was under way without the global lock"


def check_next(repo: Path, after: Seen) -> None:
    """The next run finishes the work, and no number is given out again."""
    store = mire.open(repo)
    retain(store.datastore, now=LATER)
    assert seen(repo) == after
    model = store.model("svc", "web-1")
    assert [path for path in (repo / ".swamp/data/svc/web-1/old").iterdir() if path.is_dir()] == []
    assert retain(store.datastore, now=LATER).decisions == ()
    assert (model.put("state", "next").version, model.put("old", "next").version) == (4, 3)


def main(directory: Path) -> None:
    """Die everywhere once."""
    origin, repo = directory / "origin", directory / "repo"
    origin.mkdir()
    prepare(origin)
    before = seen(origin)

    def again() -> None:
        shutil.rmtree(repo, ignore_errors=True)
        shutil.copytree(origin, repo)

    again()
    report = retain(mire.open(repo).datastore, now=LATER)
    assert (report.names_removed, report.versions_removed, report.findings) == (1, 4, ())
    after = seen(repo)
    assert (set(after["state"]), after["old"]) == ({3}, {})
    count = 0
    for _ in deaths(again, lambda: retain(mire.open(repo).datastore, now=LATER)):
        count += 1
        check(repo, before, after)
        check_next(repo, after)
    print(count)  # noqa: T201 - the result of the script


if __name__ == "__main__":
    main(Path(sys.argv[1]))
