"""What of an index is another one than at an earlier look.

Owns: the parts of an index by name, and a view of only some of them.
Must not know: what the parts say, why somebody asks.
Keeps: a part with the fingerprint that it had is the one it was.
"""

from collections.abc import Collection
from dataclasses import replace

from mire.flow.place import META, MONOLITH
from mire.pipeline.view import IndexView


def parts_of(view: IndexView) -> dict[str, str]:
    """Every object of an index with its fingerprint: shards by their names, its list and its monolith by their keys."""
    rest = {META: view.meta_tag, MONOLITH: view.monolith_tag}
    return {**view.shards, **{key: tag for key, tag in rest.items() if tag is not None}}


def changed_parts(before: IndexView, after: IndexView) -> set[str]:
    """What came, went, or was replaced."""
    return {name for name, _ in parts_of(before).items() ^ parts_of(after).items()}


def only(view: IndexView, names: Collection[str]) -> IndexView:
    """A view of some shards of a sharded index."""
    meta = view.meta
    return replace(
        view,
        meta=None
        if meta is None
        else replace(meta, partitions=tuple(name for name in meta.partitions if name in names)),
        shards={name: tag for name, tag in view.shards.items() if name in names},
    )
