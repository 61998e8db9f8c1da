"""Rows of other namespaces, imported from what they publish or read from their metadata, in a catalog beside ours.

Owns: what is known of whom, and since when; the outcome for each namespace that is asked.
Must not know: queries, content.
Keeps: our own rows and theirs never share a file, so that a rebuild of one neither loses nor mixes the other; the rows
of a namespace are replaced all at once, and go when it publishes nothing any more. What could not be read changes
nothing, and never keeps another namespace from being imported.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from mire.edge import clock
from mire.edge.catalog import SCHEMA, CatalogFile, sealed
from mire.edge.catalogpool import close_kept, open_kept
from mire.errors import DeniedError, FormatError, InputError, MireError, NotFoundError, RemoteError, shown
from mire.flow.catalog import WORTH_WEIGHING, meta_of, set_meta
from mire.flow.datastore import Datastore
from mire.flow.foreign import ForeignView, foreign_view
from mire.flow.keep import store_name, sweep_content
from mire.flow.registry import top_names
from mire.flow.within import within_timeout
from mire.model.names import PRIVATE_PREFIX, SOLO, Namespace, parse_namespace
from mire.model.row import COLUMNS, NAMES, RowValues
from mire.wire.export import EXPORT, decode_export, export_key, import_row
from mire.wire.layout import DATA

Outcome = Literal["imported", "unchanged", "missing", "denied", "damaged", "unreachable"]
GOOD: Final = ("imported", "unchanged")
_FACT: Final = "namespace/"
_SOURCE: Final = "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of one namespace."""

    namespace: Namespace
    outcome: Outcome
    rows: int
    """How many of its rows queries see now."""
    refused: int = 0
    """Rows of it that are none of a catalog, or name something outside of it."""
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A namespace whose rows are here."""

    namespace: Namespace
    rows: int
    fingerprint: str
    """Of the published catalog the rows come from; empty when they were read from metadata."""
    pulled_ms: float


def imports_path(ds: Datastore) -> str:
    """Where rows of others are: beside our own catalog, under a name no client syncs."""
    return os.path.join(ds.local, DATA, f"{PRIVATE_PREFIX}-mire-others-{SCHEMA}.sqlite")


@contextmanager
def open_imports(ds: Datastore) -> Iterator[CatalogFile]:
    """The rows of other namespaces of this store; what was imported from another store is forgotten."""
    with open_kept(imports_path(ds), COLUMNS) as catalog:
        source = store_name(ds)
        if meta_of(catalog, _SOURCE) != source:
            with catalog.transaction():
                catalog.run("DELETE FROM version")
                catalog.run("DELETE FROM meta")
                set_meta(catalog, _SOURCE, source)
        yield catalog


def close_imports(ds: Datastore) -> None:
    """Close what is kept open for the next query."""
    close_kept(imports_path(ds))


def has_imports(ds: Datastore) -> bool:
    """Whether anything was ever imported."""
    return os.path.exists(imports_path(ds))


def known_imports(ds: Datastore) -> list[Known]:
    """The namespaces whose rows are here, by name."""
    if not has_imports(ds):
        return []
    with open_imports(ds) as catalog:
        return sorted(_all_known(catalog).values(), key=lambda each: each.namespace)


def others_of(ds: Datastore) -> list[Namespace]:
    """The names at the top level of the store that can be other namespaces: one listing."""
    return [name for name in top_names(ds) if name != ds.config.namespace]


def check_others(ds: Datastore, names: Sequence[str]) -> list[Namespace]:
    """Names that were given, as namespaces to import from; our own, and what is no name, is refused."""
    found: list[Namespace] = []
    for name in names:
        namespace = parse_namespace(name)
        if namespace == SOLO:
            raise InputError(
                "an empty name is no namespace to pull from: give names such as infra,web", kind="bad_name"
            )
        if namespace == ds.config.namespace:
            raise InputError(f"{namespace} is our own namespace: its rows are here already; leave it out")
        if namespace not in found:
            found.append(namespace)
    return found


def import_catalogs(ds: Datastore, namespaces: Sequence[Namespace]) -> list[Imported]:
    """Bring the published rows of namespaces here: one request each, which brings nothing if nothing changed."""
    if ds.lifecycle is not None:
        ds.lifecycle.gate()  # a newer format must not even be read; one that must not be written may be
    view = foreign_view(within_timeout(ds))
    with _open_to_write(ds) as catalog:
        known = _all_known(catalog)
        return [_import(ds, view, catalog, namespace, known.get(namespace)) for namespace in namespaces]


def replace_imports(
    ds: Datastore,
    namespace: Namespace,
    rows: Sequence[RowValues],
    *,
    keeps: Callable[[RowValues], bool],
    dry_run: bool = False,
) -> int:
    """Let these be the rows of a namespace, read from its metadata, and of the known ones those that `keeps` says."""
    with _open_to_write(ds) as catalog:
        known = catalog.rows(f"SELECT {','.join(NAMES)} FROM version WHERE namespace=?", (namespace,))  # noqa: S608
        found = {row[:5]: row for row in (*(row for row in known if keeps(row)), *rows)}
        if dry_run:
            return len(found)
        _replace(catalog, namespace, list(found.values()), "")
    sweep_content(ds, namespace, found.values())
    return len(found)


@contextmanager
def _open_to_write(ds: Datastore) -> Iterator[CatalogFile]:
    with open_imports(ds) as catalog:
        if catalog.is_in_memory:
            raise RemoteError(f"{shown(imports_path(ds))} cannot be written: nothing can be imported", kind="io")
        yield catalog


def forget_imports(ds: Datastore, namespaces: Sequence[Namespace]) -> int:
    """Drop the rows of namespaces, and what is kept of their content; how many rows."""
    count = 0
    with open_imports(ds) as catalog:
        for namespace in namespaces:
            count += _forget(catalog, namespace)
            sweep_content(ds, namespace, ())
    return count


def _import(
    ds: Datastore, view: ForeignView, catalog: CatalogFile, namespace: Namespace, known: Known | None
) -> Imported:
    before = 0 if known is None else known.rows
    try:
        if known is None or not known.fingerprint:
            body = view.get(namespace, EXPORT)
        else:
            changed = view.get_if_changed(namespace, EXPORT, known.fingerprint)
            if changed is None:
                return Imported(namespace=namespace, outcome="unchanged", rows=before)
            body = changed
        rows, refused, why = _taken(body.data, namespace)
        if refused and not rows:
            raise FormatError(f"none of its {refused} rows is one of a catalog: {why}")
    except NotFoundError:
        _forget(catalog, namespace)
        sweep_content(ds, namespace, ())
        return Imported(namespace=namespace, outcome="missing", rows=0, message="it publishes no catalog")
    except MireError as error:
        return Imported(namespace=namespace, outcome=outcome_of(error), rows=before, message=error.message)
    _replace(catalog, namespace, rows, body.stat.fingerprint)
    sweep_content(ds, namespace, rows)
    return Imported(namespace=namespace, outcome="imported", rows=len(rows), refused=refused, message=why)


def outcome_of(error: MireError) -> Outcome:
    """What a failure to read a namespace comes to."""
    if isinstance(error, DeniedError):
        return "denied"
    return "damaged" if isinstance(error, FormatError) else "unreachable"


def _taken(data: bytes, namespace: Namespace) -> tuple[list[RowValues], int, str | None]:
    """The rows of a published catalog, how many were refused, and why the first of them was."""
    rows: dict[tuple[str | int, ...], RowValues] = {}
    refused, why = 0, None
    for each in decode_export(data, export_key(namespace)):
        try:
            row = import_row(each, namespace)
        except FormatError as error:
            refused, why = refused + 1, why or error.message
        else:
            rows[row[:5]] = row  # namespace, type, id, name and version
    return list(rows.values()), refused, why


def _replace(catalog: CatalogFile, namespace: Namespace, rows: Sequence[RowValues], fingerprint: str) -> None:
    fact = {"fingerprint": fingerprint, "rows": len(rows), "pulledMs": clock.now_ns() / 1e6}
    with catalog.transaction():
        catalog.run("DELETE FROM version WHERE namespace=?", (namespace,))
        catalog.insert(map(sealed, rows))
        set_meta(catalog, f"{_FACT}{namespace}", json.dumps(fact))
    if len(rows) >= WORTH_WEIGHING:
        catalog.weigh_indexes()


def _forget(catalog: CatalogFile, namespace: Namespace) -> int:
    with catalog.transaction():
        catalog.run("DELETE FROM meta WHERE key=?", (f"{_FACT}{namespace}",))
        return catalog.run("DELETE FROM version WHERE namespace=?", (namespace,))


def _all_known(catalog: CatalogFile) -> dict[Namespace, Known]:
    found: dict[Namespace, Known] = {}
    for key, value in catalog.rows("SELECT key, value FROM meta"):
        if str(key).startswith(_FACT):
            namespace, fact = Namespace(str(key).removeprefix(_FACT)), json.loads(value)
            found[namespace] = Known(
                namespace=namespace,
                rows=fact["rows"],
                fingerprint=fact["fingerprint"],
                pulled_ms=fact["pulledMs"],
            )
    return found
