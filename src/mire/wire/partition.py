"""The partition rule: in which shard of the index a path is listed.

Owns: the table of wire-format §3.2, with the last row of newest §1.2, and which shards a model or a mark concerns.
Must not know: what is in a shard.
Keeps: names are those every client derives; a rel_path without a partition has none, it is not given another.

The rule counts segments and knows no meaning. So a model's `latest` markers are listed with its type
(`data--aws--ec2--vpc`) and its versions with the model (`data--aws--ec2--vpc--ID`); with a type of one segment the
markers are below the model (`data--echo--ID--NAME`). Names are not invertible: `a--b/c` and `a/b--c` share one.
"""

import re
from collections.abc import Iterable
from typing import Final

from mire.model.artifact import ModelRef
from mire.wire.layout import model_dir

ROOT: Final = "_root"
META: Final = "_meta"
JOINT: Final = "--"

_DEEP: Final = ((6, -3), (4, -1))
_RULES: Final = {
    "data": _DEEP,
    "outputs": _DEEP,
    "definitions-evaluated": _DEEP,
    "workflow-runs": ((3, 2),),
    # Without a name, and with that of the list itself, there is no key for a shard.
    "": (),
    META: (),
}
"""By first segment: from so many segments on, the name is made of those up to here; the first row that fits counts."""
_OTHERS: Final = ((2, 1),)
_JOINTS: Final = re.compile(f"(?={JOINT})")


def partition_of(rel: str) -> str | None:
    """The partition of a path, or None when no index can list it."""
    segments = rel.split("/")
    count = len(segments)
    if count == 1:
        return ROOT if rel else None
    for least, end in _RULES.get(segments[0], _OTHERS):
        if count >= least:
            return JOINT.join(segments[:end])
    return None


def partitions_for(models: Iterable[ModelRef], listed: Iterable[str]) -> tuple[str, ...]:
    """Those of the listed partitions that can list data of these models, in their order."""
    exact: set[str | None] = set()
    above: set[str] = set()
    for model in models:
        directory = model_dir(model)
        exact |= {partition_of(f"{directory}/name/latest"), partition_of(f"{directory}/name/1/raw")}
        above.add(directory.replace("/", JOINT))
    return tuple(name for name in listed if name in exact or not above.isdisjoint(_prefixes(name)))


def partitions_near(mark: str, listed: Iterable[str]) -> tuple[str, ...]:
    """Those of the listed partitions that can list a marked file, or anything below a marked directory."""
    own, joined = partition_of(mark), mark.replace("/", JOINT)
    return tuple(
        name
        for name in listed
        if not mark
        or name in (own, joined)
        or joined.startswith(f"{name}{JOINT}")
        or name.startswith(f"{joined}{JOINT}")
    )


def _prefixes(name: str) -> list[str]:
    return [name, *(name[: joint.start()] for joint in _JOINTS.finditer(name))]
