"""Walking everything: the names of all models, a model at a time.

Owns: the order (by type, id, name), and that one model that cannot be listed does not end the walk.
Must not know: what is done with a name.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mire.edge import files
from mire.errors import MireError
from mire.flow.datastore import Datastore
from mire.flow.read import models
from mire.model.artifact import ModelRef
from mire.model.names import PRIVATE_PREFIX, DataName, parse_data_name
from mire.wire.layout import model_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that was left as it is, and why; `name` is None when it is about the model."""

    model: ModelRef
    name: str | None
    message: str


def walk_names(
    ds: Datastore, wanted: Iterable[ModelRef] | None = None
) -> Iterator[tuple[ModelRef, DataName] | Finding]:
    """Every directory of a data name, of all models or of some; what no data name can be is a finding."""
    for model in models(ds) if wanted is None else wanted:
        try:
            listed = _listed(ds, model)
        except MireError as error:
            yield Finding(model=model, name=None, message=error.message)
            continue
        for name in listed:
            try:
                yield model, parse_data_name(name)
            except MireError as error:
                yield Finding(model=model, name=name, message=error.message)


def _listed(ds: Datastore, model: ModelRef) -> list[str]:
    found = {
        entry.name
        for root in ds.roots()
        for entry in files.list_dir(os.path.join(root, model_dir(model)))
        if entry.is_dir and not entry.name.startswith(PRIVATE_PREFIX)
    }
    return sorted(found)
