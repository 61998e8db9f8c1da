"""Versions that belong together: invisible until it is decided, then visible whoever finishes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import mire
from mire.api import Store
from mire.errors import LockLostError, MireError
from mire.flow import together as module
from mire.flow.lock import hold_models
from mire.flow.settle import decisions, finish_intent
from mire.flow.together import finish_decided, together
from mire.model.artifact import ModelRef
from mire.model.names import DataName, ModelId, ModelType

NEW, OLD = DataName("new"), DataName("old")
MODELS = [ModelRef(model_type=ModelType("svc"), model_id=ModelId(name)) for name in ("a", "b")]
COUNTS: Mapping[ModelRef, Mapping[DataName, int]] = {model: {OLD: 2, NEW: 1} for model in MODELS}


def write(store: mire.Store, check: Any = lambda: None) -> None:
    """Three versions in each of two models; `check` is called before it is decided."""
    with hold_models(store.datastore, MODELS) as hold, together(store.datastore, hold, COUNTS) as ds:
        for model in MODELS:
            for name in (OLD, OLD, NEW):
                Store(ds).model("svc", model.model_id).put(name, "x")
        check()


def seen(store: mire.Store) -> list[tuple[list[int], list[int]]]:
    """The versions of both names in each model."""
    models = [store.model("svc", model.model_id) for model in MODELS]
    return [(model.versions(OLD), model.versions(NEW)) for model in models]


@pytest.fixture
def begun(store: mire.Store) -> mire.Store:
    """A store with a version of one of the names in each model."""
    for model in MODELS:
        store.model("svc", model.model_id).put(OLD, "before")
    return store


BEFORE, AFTER = [([1], [])] * 2, [([1, 2, 3], [1])] * 2


def test_nothing_is_visible_before_the_end(begun: mire.Store) -> None:
    """Inside of the block everything is written, and nobody sees any of it; afterwards all of it is there."""

    def look() -> None:
        assert seen(mire.open(begun.datastore.repo_dir)) == BEFORE

    write(begun, look)
    assert seen(begun) == AFTER
    assert decisions(begun.datastore) == []


def test_what_fails_leaves_nothing_visible(begun: mire.Store) -> None:
    """An error inside of the block undoes all of it, and no number is given out twice."""

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(begun, fail)
    assert seen(begun) == BEFORE
    assert begun.model("svc", "a").put(OLD, "next").version == 4


def test_versions_without_a_marker_stay_visible(begun: mire.Store) -> None:
    """A name whose marker was lost shows its versions during the block, and after one that failed."""
    (Path(begun.datastore.tier) / "data/svc/a/old/latest").unlink()

    def look() -> None:
        assert seen(mire.open(begun.datastore.repo_dir)) == BEFORE
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(begun, look)
    assert seen(begun) == BEFORE


def test_what_was_decided_is_finished_by_the_next(begun: mire.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that loses its locks while it publishes leaves the rest to whoever comes next, who finds all of it."""
    done: list[ModelRef] = []

    def once(ds: Any, model: ModelRef, *arguments: Any) -> None:
        if done:
            raise LockLostError("lost", lock_key="x")
        done.append(model)
        finish_intent(ds, model, *arguments)

    monkeypatch.setattr(module, "finish_intent", once)
    with pytest.raises(MireError, match="lost"):
        write(begun)
    assert len(decisions(begun.datastore)) == 1
    finish_decided(begun.datastore)
    assert decisions(begun.datastore) == []
    assert not list(Path(begun.datastore.tier).rglob("_catalog.db-rename.json"))
    assert seen(begun) == AFTER


def test_who_lives_is_left_alone(begun: mire.Store) -> None:
    """While the models are held nobody finishes or undoes anything."""

    def other() -> None:
        ds = mire.open(begun.datastore.repo_dir).datastore
        path = Path(ds.tier) / "_control/mire-writes"
        path.mkdir(parents=True)
        (path / "9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21").write_text('[["svc", "a"]]')
        (path / "other").write_text("{")

    write(begun, other)
    finish_decided(begun.datastore)
    assert seen(begun) == AFTER
    assert decisions(begun.datastore) == ["other"]
