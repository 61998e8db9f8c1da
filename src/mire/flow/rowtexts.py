"""Rows of our own catalog in the form that others read.

Owns: which names of a datastore are shown to others at all.
Must not know: where the published catalog is kept.
Keeps: what stays in the repository (excluded, or not shared) is not shown; memory does not grow with the store.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from mire.flow.catalog import fresh
from mire.flow.datastore import Datastore
from mire.flow.scan import key_of, scan_names
from mire.model.artifact import ModelRef
from mire.model.names import DataName, ModelId, ModelType, RelPath
from mire.model.row import NAMES
from mire.plan.publish import published_rows
from mire.wire.exporttext import NameKey, name_key, row_text
from mire.wire.layout import name_dir

_KEY = [NAMES.index(column) for column in ("model_type", "model_id", "name")]
_ALL = f"SELECT {','.join(NAMES)} FROM version ORDER BY model_type, model_id, name, version"  # noqa: S608 - our names


def texts_of(ds: Datastore, names: Iterable[RelPath]) -> dict[NameKey, Sequence[bytes]]:
    """The published rows of some names, read from their files; of a name that is gone there are none."""
    found: dict[NameKey, Sequence[bytes]] = {}
    shared = [name for name in names if ds.root_of(name) == ds.tier]
    for scan in scan_names(ds.tier, ds.config.namespace, sorted(shared), {}):
        key = key_of(scan.path, ds.config.namespace)
        if key is not None:
            rows = published_rows(row[:-1] for row in scan.rows)
            found[name_key(key.model, key.name)] = [row_text(row) for row in rows]
    return found


def all_texts(ds: Datastore) -> Iterator[tuple[NameKey, Sequence[bytes]]]:
    """The published rows of every name of the catalog, which is brought in step with the files first."""
    with fresh(ds, force=True) as (catalog, _):
        for (kind, model_id, name), group in groupby(catalog.rows(_ALL), key=_name_of):
            model = ModelRef(model_type=ModelType(kind), model_id=ModelId(model_id))
            rows = published_rows(group)
            if rows and ds.root_of(name_dir(model, DataName(name))) == ds.tier:
                yield name_key(model, name), [row_text(row) for row in rows]


def _name_of(row: Sequence[Any]) -> tuple[str, str, str]:
    kind, model_id, name = (row[place] for place in _KEY)
    return kind, model_id, name
