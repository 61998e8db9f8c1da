"""Which paths of an index may cross between a cache and a remote.

Owns: the internal paths of wire-format §1.4, which are ours, too, what an untrusted rel_path may look like, and which
paths are those of another tenant.
Must not know: what is under a path, or what links in a cache lead to.
Keeps: no path that could lead out of a cache passes; one that does not is told apart from the others, not dropped.
"""

import re
from collections.abc import Iterable
from typing import Final

from mire.errors import InputError, shown
from mire.model.names import (
    DATASTORE_SUBDIRS,
    PRIVATE_PREFIX,
    RESERVED_NAMESPACES,
    Namespace,
    is_namespace,
    parse_rel_path,
)
from mire.wire.control import CONTROL

INDEX_DIR: Final = "_index"
REL_BYTES_MAX: Final = 4096
"""The longest path a POSIX system takes; S3 and GCS stop at a quarter of it."""

_ROOT_FILES: Final = frozenset(
    (".datastore-index.json", ".push-queue.json", ".datastore.lock", ".datastore-sync-state.json")
)
_ROOT_DIRS: Final = frozenset((INDEX_DIR, CONTROL))
_TIER_NAMES: Final = frozenset(
    (
        *(name for name in DATASTORE_SUBDIRS if name not in ("files", "logs")),
        *(*_ROOT_FILES, *_ROOT_DIRS, ".namespace.json", ".catalog-export.json"),
    )
)
"""What gives the root of a tier away; directories called "files" or "logs" are anywhere."""
_NAMES: Final = frozenset((".lock", ".namespace.json", PRIVATE_PREFIX))
_SEGMENT: Final = r"[A-Za-z0-9_@-][A-Za-z0-9_@.-]{0,250}+"
_PLAIN: Final = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*+")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_TEMPORARY: Final = re.compile(r"\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp")


def is_internal(rel: str) -> bool:
    """Whether no client syncs a path; `rel` is relative to the namespace."""
    name = rel[rel.rfind("/") + 1 :]
    return (
        name in _NAMES
        or name.startswith(f"{PRIVATE_PREFIX}-")
        or rel in _ROOT_FILES
        or rel.partition("/")[0] in _ROOT_DIRS
    )


def is_temporary(rel: str) -> bool:
    """Whether a path is a file the reference is about to rename, or died before: it syncs them, nobody wants them."""
    return rel.endswith(".tmp") and _TEMPORARY.fullmatch(rel[rel.rfind("/") + 1 :]) is not None


def tenant_of(rel: str) -> Namespace | None:
    """The namespace whose data a path is, seen from the root of a store; None when it is that of no namespace.

    Told by its shape, `<slug>/<directory of a datastore>/…`, so `data/…` is never taken for the namespace "data".
    """
    top, _, rest = rel.partition("/")
    if top in RESERVED_NAMESPACES or rest.partition("/")[0] not in _TIER_NAMES or not is_namespace(top):
        return None
    return Namespace(top)


def has_tier(names: Iterable[str]) -> bool:
    """Whether a directory with these names in it looks like the root of a datastore tier."""
    return not _TIER_NAMES.isdisjoint(names)


def check_rel(rel: str) -> str | None:
    """Why a path from a remote must not be followed, or None when it may be."""
    if len(rel) <= REL_BYTES_MAX and _PLAIN.fullmatch(rel):
        return None
    try:
        parse_rel_path(rel)
    except InputError as error:
        return error.message
    if len(rel.encode()) > REL_BYTES_MAX:
        return f"path {shown(rel)} is longer than {REL_BYTES_MAX} bytes"
    return f"path {shown(rel)} begins with a drive letter" if _DRIVE.match(rel) else None
