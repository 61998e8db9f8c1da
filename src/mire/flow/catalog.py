"""The catalog kept in step with the files: filled, refreshed, written through, rebuilt.

Owns: which names are looked at again, and what leaves the catalog.
Must not know: queries.
Keeps: the catalog is derived: any failure here costs time at the next query, never a write or an answer.
Nothing leaves it because of a directory that could not be listed.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from mire.edge import clock, walk
from mire.edge.catalog import SCHEMA, Broken, CatalogFile, SealedRow, discard, open_catalog, sealed
from mire.edge.catalogpool import close_kept, open_kept
from mire.edge.workers import Workers
from mire.errors import MireError
from mire.flow.datastore import Datastore
from mire.flow.scan import Known, NameScan, is_name_dir, key_of, present_identity, scan_names
from mire.model.artifact import ModelRef
from mire.model.names import PRIVATE_PREFIX, SOLO, DataName, RelPath
from mire.model.row import COLUMNS, NAMES, FileIdentity, NameKey
from mire.wire.layout import DATA, model_dir, name_dir

if TYPE_CHECKING:
    from concurrent.futures import Future

BATCH = 500
_NOTES_MAX = 3
_POOL_FROM = 4
"""Batches that are worth starting other processes for."""

_LATEST = NAMES.index("is_latest")
_VERSION = NAMES.index("version")
_KEY = "namespace=? AND model_type=? AND model_id=? AND name=?"
_CHEAP_MS = 50.0
WORTH_WEIGHING = 1000
"""Rows read by one look that may change which index is best."""
_SHARE = 20
"""A check that takes longer than a blink is repeated only after so many times its own duration."""

Progress = Callable[[int], None]
Scanner = Callable[[str, Iterator[str]], Iterator[list[NameScan]]]
"""Reads the names below a root, given by their paths, in batches."""


@dataclass(slots=True)
class Refreshed:
    """What a refresh did."""

    names: int = 0
    read: int = 0
    removed: int = 0
    errors: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    is_skipped: bool = False


def is_complete(ds: Datastore, catalog: CatalogFile) -> bool:
    """Whether everything was looked at once, so that a look reads only what changed."""
    return meta_of(catalog, "complete") == _tiers(ds)


def catalog_path(ds: Datastore) -> str:
    """Where the catalog is: local to the repository, under a name no client syncs, one per schema."""
    return os.path.join(ds.local, DATA, f"{PRIVATE_PREFIX}-mire-{SCHEMA}.sqlite")


@contextmanager
def opened(ds: Datastore) -> Iterator[CatalogFile]:
    """The catalog, healed if need be."""
    with open_kept(catalog_path(ds), COLUMNS) as catalog:
        yield catalog


@contextmanager
def fresh(
    ds: Datastore,
    *,
    model: ModelRef | None = None,
    force: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> Iterator[tuple[CatalogFile, Refreshed]]:
    """The catalog in step with the files (of one model, when that is all that is asked about)."""
    with opened(ds) as catalog:
        try:
            done = _refresh_if_due(ds, catalog, model=model, force=force, workers=workers, progress=progress)
        except Broken:
            done = None
        if done is not None:
            if catalog.is_in_memory:
                done.notices.append("the catalog cannot be written here, so it was built in memory for this answer")
            yield catalog, done
            return
    _discard(ds)
    with opened(ds) as catalog:
        done = refresh(ds, catalog, workers=workers, progress=progress)
        done.notices.append("the catalog was damaged and has been rebuilt")
        yield catalog, done


def _refresh_if_due(
    ds: Datastore, catalog: CatalogFile, *, model: ModelRef | None, force: bool, workers: int, progress: Progress | None
) -> Refreshed:
    # Always exact where looking is cheap. A store so large that looking takes longer is looked at again only
    # after a multiple of that time; what this repository writes itself is there at once in any case.
    is_known = is_complete(ds, catalog)
    if model is not None and is_known:
        return refresh(ds, catalog, model=model, workers=workers, progress=progress)
    cost_ms, checked_ms = float(meta_of(catalog, "cost_ms") or 0), float(meta_of(catalog, "checked_ms") or 0)
    age_ms = time.time() * 1000 - checked_ms
    if is_known and not force and cost_ms > _CHEAP_MS and 0 <= age_ms < cost_ms * _SHARE:
        return Refreshed(is_skipped=True)
    return refresh(ds, catalog, workers=workers, progress=progress)


def refresh(
    ds: Datastore,
    catalog: CatalogFile,
    *,
    model: ModelRef | None = None,
    deep: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
    scanner: Scanner | None = None,
) -> Refreshed:
    """Read what changed since the last look, whoever changed it; `deep` looks at every version's file.

    `scanner` reads the names instead of this process and its workers.
    """
    start = time.monotonic()
    done = Refreshed()
    _forget_others(catalog, ds)
    generation = meta_of(catalog, "generation")
    if model is None and catalog.one("SELECT 1 FROM version") is None:
        catalog.drop_indexes()  # made anew at the end, sorted, in a third of the time
    for index, root in enumerate(ds.data_roots()):
        read = scanner or partial(_scanned, ds, catalog, workers)
        _refresh_root(ds, catalog, index, root, done, model=model, deep=deep, read=read, progress=progress)
    if model is None:
        catalog.create_indexes()
        if done.read >= WORTH_WEIGHING:
            catalog.weigh_indexes()
        with catalog.transaction():
            set_meta(catalog, "complete", _tiers(ds))
            # A write that came in between may have been seen by neither look: then the next query looks again.
            is_quiet = meta_of(catalog, "generation") == generation
            set_meta(catalog, "checked_ms", str(time.time() * 1000 if is_quiet else 0))
            set_meta(catalog, "cost_ms", str((time.monotonic() - start) * 1000 if not done.read else 0))
    return done


def _refresh_root(
    ds: Datastore,
    catalog: CatalogFile,
    index: int,
    root: str,
    done: Refreshed,
    *,
    model: ModelRef | None,
    deep: bool,
    read: Scanner,
    progress: Progress | None,
) -> None:
    top = DATA if model is None else model_dir(model)
    began_ns = clock.now_ns()
    known = _known_names(catalog, index, None if model is None else top)
    # A directory that has names below it was entered before, so it is none itself; only a deep look asks again.
    entered = set() if deep else {path[: path.rindex("/")] for path in known}
    looking = walk.Walk()
    seen: set[str] = set()

    def changed() -> Iterator[str]:
        for path, identity in looking.directories(
            os.path.join(root, top),
            top,
            lambda path: path in known or (path not in entered and is_name_dir(root, path)),
        ):
            if ds.root_of(RelPath(path)) != root:
                continue  # left from other settings: not what a lookup by name would find
            seen.add(path)
            kept, streaming = known.get(path, ("", 0))
            if deep or not kept or kept != present_identity(root, path, identity, streaming):
                yield path

    for scans in read(root, changed()):
        _apply(ds, catalog, index, scans, done)
        if progress is not None:
            progress(done.read)
    done.names += len(seen)
    done.errors += [f"{path}: {reason}" for path, reason in looking.errors]
    blind = tuple(f"{path}/" for path, _ in looking.errors)
    gone = [path for path in known if path not in seen and not f"{path}/".startswith(blind)]
    for start in range(0, len(gone), BATCH):
        with catalog.transaction():
            for path in gone[start : start + BATCH]:
                if _scanned_ns(catalog, index, path) < began_ns:
                    done.removed += _forget(ds, catalog, index, path)


def _scanned(
    ds: Datastore, catalog: CatalogFile, workers: int, root: str, paths: Iterator[str]
) -> Iterator[list[NameScan]]:
    """The scans of many names, batch by batch, in as many processes as are worth it; memory stays bounded."""
    namespace = ds.config.namespace
    pool: Workers | None = None
    waiting: deque[Future[list[NameScan]]] = deque()
    try:
        for count, batch in enumerate(_batches(paths), start=1):
            known = {path: _known_versions(ds, catalog, path) for path in batch}
            if workers > 1 and count >= _POOL_FROM:
                pool = pool or Workers(workers)
                waiting.append(pool.submit(scan_names, root, namespace, batch, known))
                if len(waiting) > workers * 2:
                    yield waiting.popleft().result()
            else:
                yield scan_names(root, namespace, batch, known)
        while waiting:
            yield waiting.popleft().result()
    finally:
        if pool is not None:
            pool.close()


def _batches(paths: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for path in paths:
        batch.append(path)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _apply(ds: Datastore, catalog: CatalogFile, index: int, scans: Iterable[NameScan], done: Refreshed) -> None:
    rows: list[SealedRow] = []
    with catalog.transaction():
        for scan in scans:
            done.errors += scan.errors
            done.read += len(scan.rows)
            key = key_of(scan.path, ds.config.namespace)
            scanned_ns = _scanned_ns(catalog, index, scan.path)
            if key is None or scanned_ns > scan.scanned_ns:
                continue
            if scanned_ns:  # else nothing is known of the name that could be wrong
                done.removed += _settle(catalog, key, scan)
            rows += scan.rows
            catalog.run(
                "INSERT OR REPLACE INTO name VALUES (?,?,?,?,?,?)",
                (index, scan.path, scan.identity, scan.streaming, "\n".join(scan.errors), scan.scanned_ns),
            )
        catalog.insert(rows)


def _scanned_ns(catalog: CatalogFile, index: int, path: str) -> int:
    row = catalog.one("SELECT scanned_ns FROM name WHERE root=? AND path=?", (index, path))
    return 0 if row is None else int(row[0])


def _settle(catalog: CatalogFile, key: NameKey, scan: NameScan) -> int:
    """Remove the rows of versions that are gone, and let the right one be the latest; how many were removed."""
    where = (key.namespace, key.model.model_type, key.model.model_id, key.name)
    kept, removed = set(scan.numbers), 0
    for (number,) in list(catalog.rows(f"SELECT version FROM version WHERE {_KEY}", where)):  # noqa: S608
        if number not in kept:
            removed += catalog.run(f"DELETE FROM version WHERE {_KEY} AND version=?", (*where, number))  # noqa: S608
    sql = f"SELECT {','.join(NAMES)} FROM version WHERE {_KEY} AND is_latest <> (version = ?)"  # noqa: S608
    wrong = list(catalog.rows(sql, (*where, scan.latest or 0)))
    catalog.insert(sealed((*row[:_LATEST], int(row[_VERSION] == scan.latest), *row[_LATEST + 1 :])) for row in wrong)
    return removed


def note(ds: Datastore, model: ModelRef, *names: DataName) -> None:
    """Write through: look again at names that were just written, if there is a catalog at all.

    Called while the model is held. A failure only means that the next query looks for itself.
    """
    if not os.path.exists(catalog_path(ds)):
        return
    for _ in range(_NOTES_MAX):
        # The write is done and published by now: whatever is wrong with the look must not make it seem failed.
        with suppress(Broken, MireError, OSError), opened(ds) as catalog:
            _note(ds, catalog, model, names)
            if catalog.is_current:  # else it was replaced while we wrote, and what we wrote is gone
                return


def note_paths(ds: Datastore, rel_paths: Iterable[RelPath]) -> None:
    """Look again at the names whose files were changed by other means than our own verbs, such as a pull."""
    paths = sorted({path for rel in rel_paths if (path := name_above(rel)) is not None})
    if not paths or not os.path.exists(catalog_path(ds)):
        return
    for _ in range(_NOTES_MAX):
        with suppress(Broken, MireError, OSError), opened(ds) as catalog:
            _look_again(ds, catalog, paths, trusted=False)
            if catalog.is_current:
                return


def name_above(rel: RelPath) -> RelPath | None:
    """The name's directory that a file of model data is in: two levels up, or one for a marker."""
    directory = rel.rpartition("/")[0]
    above, _, last = directory.rpartition("/")
    found = above if last.isdigit() else directory
    return RelPath(found) if key_of(found, SOLO) is not None else None


def _note(ds: Datastore, catalog: CatalogFile, model: ModelRef, names: tuple[DataName, ...]) -> None:
    # We hold the model and wrote these names ourselves: versions that were known before are as they were.
    _look_again(ds, catalog, [name_dir(model, name) for name in names], trusted=True)


def _look_again(ds: Datastore, catalog: CatalogFile, paths: Iterable[RelPath], *, trusted: bool) -> None:
    if meta_of(catalog, "tiers") != _tiers(ds):
        return
    by_root: dict[str, list[str]] = {}
    for path in paths:
        by_root.setdefault(ds.root_of(path), []).append(path)
    for root, names in by_root.items():
        known = {path: _known_versions(ds, catalog, path) for path in names}
        scans = scan_names(root, ds.config.namespace, names, known, trusted=trusted)
        _apply(ds, catalog, ds.data_roots().index(root), scans, Refreshed())
    with catalog.transaction():
        set_meta(catalog, "generation", str(int(meta_of(catalog, "generation") or 0) + 1))


def close_catalog(ds: Datastore) -> None:
    """Close what is kept open for the next query."""
    close_kept(catalog_path(ds))


def _discard(ds: Datastore) -> None:
    close_catalog(ds)
    discard(catalog_path(ds))


def rebuild(
    ds: Datastore,
    *,
    workers: int = 1,
    progress: Progress | None = None,
    scanner: Scanner | None = None,
    dry_run: bool = False,
) -> Refreshed:
    """Throw the catalog away and read everything again; a dry run does that with another one.

    What a `scanner` reads is put into another one, too, which takes the place of ours when it is whole.
    """
    place = os.path.dirname(catalog_path(ds))
    if dry_run or (scanner is not None and os.access(place, os.W_OK)):
        with TemporaryDirectory(prefix=f"{PRIVATE_PREFIX}-mire-", dir=None if dry_run else place) as directory:
            catalog = open_catalog(os.path.join(directory, "catalog"), COLUMNS)
            try:
                done = refresh(ds, catalog, workers=workers, progress=progress, scanner=scanner)
                # What was written meanwhile is noted in ours: the next query looks again.
                set_meta(catalog, "checked_ms", "0")
            finally:
                catalog.close()
            if not dry_run and catalog.path is not None:
                _discard(ds)
                os.rename(catalog.path, catalog_path(ds))
            return done
    _discard(ds)
    with opened(ds) as catalog:
        return refresh(ds, catalog, workers=workers, progress=progress, scanner=scanner)


def _known_names(catalog: CatalogFile, index: int, below: str | None) -> dict[str, tuple[str, int]]:
    sql, parameters = "SELECT path, identity, streaming FROM name WHERE root=?", [index]
    rows = catalog.rows(sql, parameters)
    if below is not None:
        rows = catalog.rows(f"{sql} AND path >= ? AND path < ?", (index, f"{below}/", f"{below}0"))
    return {path: (identity, streaming) for path, identity, streaming in rows}


def _known_versions(ds: Datastore, catalog: CatalogFile, path: str) -> dict[int, Known]:
    key = key_of(path, ds.config.namespace)
    if key is None:
        return {}
    where = (key.namespace, key.model.model_type, key.model.model_id, key.name)
    columns = "version, streaming, file_mtime_ns, file_ctime_ns, file_size, file_inode"
    return {
        version: (FileIdentity(*identity), bool(streaming))
        for version, streaming, *identity in catalog.rows(f"SELECT {columns} FROM version WHERE {_KEY}", where)  # noqa: S608
    }


def _forget(ds: Datastore, catalog: CatalogFile, index: int, path: str) -> int:
    key = key_of(path, ds.config.namespace)
    catalog.run("DELETE FROM name WHERE root=? AND path=?", (index, path))
    if key is None:
        return 0
    where = (key.namespace, key.model.model_type, key.model.model_id, key.name)
    return catalog.run(f"DELETE FROM version WHERE {_KEY}", where)  # noqa: S608


def _forget_others(catalog: CatalogFile, ds: Datastore) -> None:
    """Forget everything if it is about another store or namespace than the repository points at now."""
    if meta_of(catalog, "tiers") == _tiers(ds):
        return
    with catalog.transaction():
        if meta_of(catalog, "tiers") == _tiers(ds):
            return  # another reader was first, and may be about to answer from what it read
        catalog.run("DELETE FROM version")
        catalog.run("DELETE FROM name")
        catalog.run("DELETE FROM meta")
        set_meta(catalog, "tiers", _tiers(ds))


def _tiers(ds: Datastore) -> str:
    return "\n".join((*ds.data_roots(), *ds.config.exclude, ds.config.namespace))


def meta_of(catalog: CatalogFile, key: str) -> str | None:
    """One fact about a catalog."""
    row = catalog.one("SELECT value FROM meta WHERE key=?", (key,))
    return None if row is None else str(row[0])


def set_meta(catalog: CatalogFile, key: str, value: str) -> None:
    """Record a fact about a catalog."""
    catalog.run("INSERT OR REPLACE INTO meta VALUES (?,?)", (key, value))
