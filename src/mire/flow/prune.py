"""Pruning: the data of models whose definition is gone.

Owns: finding the definitions there are.
Must not know: how a name is removed (`flow/retain`), which models are orphans (`plan/retention`).
Keeps: a model is an orphan only if every definition there is could be read; a held name stays.
"""

import os
from collections.abc import Iterable, Iterator

from mire.edge import files
from mire.errors import FormatError, MireError, NotFoundError, shown
from mire.flow.datastore import Datastore
from mire.flow.hold import load_holds
from mire.flow.read import models, naming
from mire.flow.retain import Decide, Outcome, Report, carry_out, plan_names, report_of, whole_name
from mire.flow.walk import Finding
from mire.model.artifact import ModelRef
from mire.model.names import DataName, RelPath, is_uuid
from mire.plan.retention import Definitions, standing_of
from mire.wire.yamltext import decode_yaml

_MODELS = "models"
_WORKFLOWS = "workflows"
_AUTO = RelPath("auto-definitions")
_SUFFIXES = (".yaml", ".yml")


def prune(ds: Datastore, *, dry_run: bool = False) -> Report:
    """Remove the data of models without a definition; a dry run takes no lock and changes nothing."""
    found = plan_prune(ds)
    return report_of(found) if dry_run else carry_out(ds, found, lambda: look_again(ds))


def plan_prune(ds: Datastore) -> Iterator[Outcome]:
    """What pruning would remove, name by name; definitions that cannot be read are an error at once."""
    definitions = load_definitions(ds)
    return _plan(ds, definitions)


def _plan(ds: Datastore, definitions: Definitions) -> Iterator[Outcome]:
    for model in models(ds):
        match standing_of(model, definitions):
            case "orphan":
                yield from plan_names(ds, [model], lambda model, name: _decide(ds, model, name))
            case "unknown":
                message = f"left alone: the repository has no '{_WORKFLOWS}' directory, so nobody can tell"
                yield Finding(model=model, name=None, message=message)
            case "live":
                pass


def look_again(ds: Datastore) -> Decide:
    """How to decide about a name by the definitions there are now."""
    # Somebody may have brought a definition back between the look and the lock.
    definitions = load_definitions(ds)

    def decide(model: ModelRef, name: DataName) -> Iterable[Outcome]:
        return _decide(ds, model, name) if standing_of(model, definitions) == "orphan" else ()

    return decide


def _decide(ds: Datastore, model: ModelRef, name: DataName) -> Iterator[Outcome]:
    decision = whole_name(ds, model, name)
    if decision is None:
        return
    holds = load_holds(ds, model, name)
    if any(map(holds.is_held, decision.versions)):
        yield Finding(model=model, name=name, message="left alone: its model has no definition, but it is held")
    else:
        yield decision


def load_definitions(ds: Datastore) -> Definitions:
    """The ids of all definitions; raises if one of them cannot be read, because its id is then unknown."""
    own = os.path.join(ds.repo_dir, _MODELS)
    if not files.is_dir(own):
        raise NotFoundError(
            f"{shown(ds.repo_dir)} has no '{_MODELS}' directory, so all data would look orphaned: run this in the"
            " repository that has the definitions",
            kind="no_definitions",
            path=own,
        )
    workflows = os.path.join(ds.repo_dir, _WORKFLOWS)
    places = {own, ds.path_of(_AUTO), os.path.join(ds.local, _AUTO)}
    return Definitions(
        models=frozenset(found for place in sorted(places) for found in _ids_below(place)),
        workflows=frozenset(_ids_below(workflows)) if files.is_dir(workflows) else None,
    )


def _ids_below(directory: str) -> Iterator[str]:
    """The ids in the definitions below; links are followed, because what is behind one is a definition too."""
    pending, visited = [directory], set()
    while pending:
        place = os.path.realpath(pending.pop())
        if place in visited:
            continue
        visited.add(place)
        for entry in files.list_dir(place):
            path = os.path.join(place, entry.name)
            if entry.is_dir:
                pending.append(path)
            elif files.is_link(path) and files.size_of(path) is None:
                raise _unreadable(path, "the symbolic link leads nowhere")
            elif entry.name.endswith(_SUFFIXES):
                yield from _ids_of(path)


def _ids_of(path: str) -> Iterator[str]:
    if not files.is_regular(os.path.realpath(path)):
        raise _unreadable(path, "it is not a regular file")
    stem = os.path.splitext(os.path.basename(path))[0].removeprefix("workflow-")
    if is_uuid(stem):  # the reference's file name of a definition whose own name would not do
        yield stem.lower()
    data = files.read_file(path)
    try:
        with naming(path):
            document = decode_yaml(data or b"")
    except MireError as error:
        raise _unreadable(path, error.message) from None
    if isinstance(document, dict) and document.get("id") is not None:
        yield str(document["id"]).lower()


def _unreadable(path: str, why: str) -> FormatError:
    return FormatError(
        f"the definition {shown(path)} cannot be read, so nobody can tell whose data is orphaned: {why}",
        kind="bad_definition",
        path=path,
    )
