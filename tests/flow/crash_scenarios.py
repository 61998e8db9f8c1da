"""Dies before every file operation of one verb and compares what a new process then sees; run as a script.

Usage: crash_scenarios.py SCENARIO DIRECTORY. Prints the number of deaths, or fails with what was seen.
"""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mire
from mire.api import Store
from mire.errors import MireError
from mire.flow.lock import hold_models
from mire.flow.together import together
from mire.model.names import DataName
from mire.testing.crash import deaths

TYPE, ID, PEER = "svc/web", "web-1", "web-2"
OTHER = "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603"
Before = Callable[[mire.Store], object]


def base(store: mire.Store) -> None:
    """Three versions of one name, one of another, a streaming log."""
    model = store.model(TYPE, ID)
    for number in (1, 2, 3):
        model.put("state", {"n": number})
    model.put("other", "x")
    model.put("log", "one\n", streaming=True)


def model_of(store: mire.Store) -> mire.Model:
    """The model all scenarios write."""
    return store.model(TYPE, ID)


def deleted_top(store: mire.Store) -> None:
    """The base, with the highest version of `state` gone."""
    base(store)
    model_of(store).delete("state", 3)


def renamed(store: mire.Store) -> None:
    """The base, with `state` renamed away and back."""
    base(store)
    model_of(store).rename("state", "status")


def put_together(store: mire.Store) -> None:
    """Versions of old and new names in two models, which belong together."""
    counts = {
        store.model(TYPE, ID).ref: {DataName("state"): 2},
        store.model(TYPE, PEER).ref: {DataName("fresh"): 1},
    }
    with hold_models(store.datastore, counts) as hold, together(store.datastore, hold, counts) as ds:
        for model, names in counts.items():
            for name in (name for name, count in names.items() for _ in range(count)):
                Store(ds).model(TYPE, model.model_id).put(name, {"together": True})


SCENARIOS: dict[str, tuple[Before, Before]] = {
    "first-put": (lambda _: None, lambda store: model_of(store).put("state", {"n": 1})),
    "put": (base, lambda store: model_of(store).put("state", {"n": 4})),
    "put-new-name": (base, lambda store: model_of(store).put("fresh", "first")),
    "put-file": (base, lambda store: model_of(store).put("other", Path(__file__))),
    "append": (base, lambda store: model_of(store).append("log", "two\n")),
    "delete-latest": (base, lambda store: model_of(store).delete("state", 3)),
    "delete-middle": (base, lambda store: model_of(store).delete("state", 2)),
    "delete-only": (base, lambda store: model_of(store).delete("other", 1)),
    "delete-name": (base, lambda store: model_of(store).delete("state")),
    "delete-next": (deleted_top, lambda store: model_of(store).delete("state", 2)),
    "put-after-delete": (deleted_top, lambda store: model_of(store).put("state", {"n": 5})),
    "rename": (base, lambda store: model_of(store).rename("state", "status")),
    "rename-back": (renamed, lambda store: model_of(store).rename("status", "state")),
    "mark-deleted": (base, lambda store: model_of(store).mark_deleted("state")),
    "together": (base, put_together),
    "output": (base, lambda store: store.outputs.start("svc", OTHER, "deploy")),
    "run": (base, lambda store: store.runs.start(OTHER, "sweep")),
    "audit": (base, lambda store: store.audit.command("deploy")),
}


def seen(repo: Path) -> dict[str, Any]:
    """Everything a new process sees: versions with their contents, and what each name answers."""
    store = mire.open(repo)
    state: dict[str, Any] = {}
    for model, prefix in ((model_of(store), ""), (store.model(TYPE, PEER), f"{PEER} ")):
        for row in model.names():
            assert row.metadata is not None, row.error
            contents = {number: content(model, row.name, number) for number in model.versions(row.name)}
            state[f"{prefix}{row.name}"] = (contents, content(model, row.name, None))
    state["outputs"] = [output.method_name for output in store.outputs.list()], store.outputs.list().damaged
    state["runs"] = [run.workflow_name for run in store.runs.list()], store.runs.list().damaged
    state["audit"] = [getattr(event, "command", "") for event in store.audit.list()]
    return state


def content(model: mire.Model, name: str, version: int | None) -> object:
    """A version's verified content without its times, or the kind of error a reader gets."""
    try:
        found = model.get(name, version)
        if found.metadata.is_deleted:
            return "tombstone", found.metadata.renamed_to
        return found.name, found.bytes()
    except MireError as error:
        return error.kind


def numbers_in(state: dict[str, Any]) -> dict[str, set[int]]:
    """The version numbers of each name."""
    names = {name: value[0] for name, value in state.items() if isinstance(value, tuple)}
    return {name: set(versions) for name, versions in names.items() if isinstance(versions, dict)}


def check_next_put(repo: Path, before: dict[str, Any], current: dict[str, Any]) -> None:
    """The next write succeeds, takes a number never seen before, and brings nothing deleted back."""
    model = model_of(mire.open(repo))
    for name in ("state", "other"):
        number = model.put(name, "next", revive=True, content_type="application/json").version
        known = set().union(*(numbers_in(s).get(name, set()) for s in (before, current)))
        assert number not in known, f"number {number} of {name} was given out twice"
        now = {n: content(model, name, n) for n in model.versions(name)}
        for old, data in current.get(name, ({}, None))[0].items():
            assert now.get(old) == data, f"version {old} of {name} changed from {data} to {now.get(old)}"
        gone = numbers_in(before).get(name, set()) - numbers_in(current).get(name, set())
        assert not gone & set(now), f"deleted versions {gone & set(now)} of {name} came back"


def main(scenario: str, directory: Path) -> None:
    """Run one scenario."""
    prepare, act = SCENARIOS[scenario]
    origin, repo = directory / "origin", directory / "repo"
    origin.mkdir()
    prepare(mire.open(origin))
    before = seen(origin)
    shutil.copytree(origin, repo, symlinks=True)
    act(mire.open(repo))
    after = seen(repo)
    assert before != after, "the scenario changes nothing"

    def again() -> None:
        shutil.rmtree(repo)
        shutil.copytree(origin, repo, symlinks=True)

    count = 0
    states = set()
    # Of the longest, every fourth step: all of them take as long as those of all the others together.
    for step in deaths(again, lambda: act(mire.open(repo)), every=4 if scenario == "together" else 1):
        count += 1
        state = seen(repo)
        assert state in (before, after), f"dying before operation {step} shows neither state:\n{state}"
        states.add(state == after)
        check_next_put(repo, before, state)
    assert count > 3, "the scenario has no file operations to die between"
    print(count, sorted(states), os.linesep, end="")  # noqa: T201 - the result of the script


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
