"""The partition rule: the reference's own answers, and what a scoped read and a mark need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import rels
from mire.model.artifact import ModelRef
from mire.model.names import DataName, ModelId, ModelType
from mire.testing.strategies import data_names, model_refs, versions
from mire.wire.layout import name_dir, version_dir
from mire.wire.partition import partition_of, partitions_for, partitions_near

TABLE = {
    "data/swamp/echo/ID/name/1/raw": "data--swamp--echo--ID",
    "data/swamp/echo/ID/name/1/metadata.yaml": "data--swamp--echo--ID",
    "data/swamp/echo/ID/name/latest": "data--swamp--echo",
    "data/aws/ec2/vpc/ID/name/1/raw": "data--aws--ec2--vpc--ID",
    "data/aws/ec2/vpc/ID/name/latest": "data--aws--ec2--vpc",
    "data/echo/ID/name/1/raw": "data--echo--ID",
    "data/echo/ID/name/latest": "data--echo--ID--name",
    "data/a/b/c": "data--a--b",
    "data/a/b": None,
    "outputs/swamp/echo/run/DEF-ts.yaml": "outputs--swamp--echo--run",
    "outputs/aws/ec2/vpc/create/DEF-ts.yaml": "outputs--aws--ec2",
    "outputs/a/b/c/d/e/f.yaml": "outputs--a--b--c",
    "outputs/echo/run/DEF-ts.yaml": "outputs--echo--run",
    "definitions-evaluated/swamp/echo/n.yaml": "definitions-evaluated--swamp--echo",
    "definitions-evaluated/aws/ec2/vpc/n.yaml": "definitions-evaluated--aws--ec2--vpc",
    "definitions-evaluated/a/b/c/d/n.yaml": "definitions-evaluated--a--b",
    "definitions-evaluated/echo/n.yaml": None,
    "workflow-runs/WF/workflow-run-1.yaml": "workflow-runs--WF",
    "workflow-runs/x.yaml": None,
    "workflows-evaluated/WF.yaml": "workflows-evaluated",
    ".catalog-export.json": "_root",
    ".1234.tmp": "_root",
    "data//x/y/z": "data----x--y",
    "audit/commands-2026-08-01.jsonl": "audit",
    "auto-definitions/command/shell/auto-1.yaml": "auto-definitions",
    "telemetry/a/b/c/d/e/f": "telemetry",
    "logs/x": "logs",
    "files/x": "files",
    "data": "_root",
    "": None,
    # Since newest §1.2 a first segment nobody knows is a shard of its own.
    ".locks/ns.lock": ".locks",
    "vault/x": "vault",
    "unknown/a/b": "unknown",
    "config/upstream_extensions.json": "config",
    "bundles/x": "bundles",
    "a/": "a",
    # These two would have no key, or that of the list.
    "/x": None,
    "_meta/x": None,
}


@pytest.mark.parametrize(("rel", "partition"), TABLE.items())
def test_the_rule(rel: str, partition: str | None) -> None:
    """Each path has the partition the reference gives it."""
    assert partition_of(rel) == partition


def paths_of(model: ModelRef, name: DataName, version: int) -> tuple[str, ...]:
    """What a store keeps of a name: its versions, its marker, and what stands beside them."""
    directory, below = name_dir(model, name), version_dir(model, name, version)
    return (f"{directory}/latest", f"{directory}/.hold", f"{below}/raw", f"{below}/metadata.yaml", f"{below}/deep/er")


@given(st.lists(model_refs(), min_size=1, max_size=3), data_names(), versions(), st.lists(rels(), max_size=5))
def test_a_scoped_read_misses_nothing(models: list[ModelRef], name: DataName, version: int, others: list[str]) -> None:
    """The partition of every path of a model is among those read for it, whatever else is listed."""
    paths = [path for model in models for path in paths_of(model, name, version)]
    listed = {partition: None for partition in map(partition_of, (*paths, *others)) if partition is not None}
    found = partitions_for(models, listed)
    assert {partition_of(path) for path in paths} <= set(found)
    assert list(found) == [partition for partition in listed if partition in found]


def test_a_scoped_read_takes_only_what_can_matter() -> None:
    """The model, the markers of its type, and what is below it; a type of one segment has its markers below."""
    listed = (
        *("_root", "data--aws--ec2", "data--aws--ec2--vpc", "data--aws--ec2--vpc--A", "data--aws--ec2--vpc--A--x"),
        *("data--aws--ec2--vpc--AB", "data--aws--ec2--vpc--B", "data--echo--A", "data--echo--A--n", "data--echo--B"),
    )
    vpc = ModelRef(model_type=ModelType("aws/ec2/vpc"), model_id=ModelId("A"))
    echo = ModelRef(model_type=ModelType("echo"), model_id=ModelId("A"))
    assert partitions_for([vpc], listed) == (
        "data--aws--ec2--vpc",
        "data--aws--ec2--vpc--A",
        "data--aws--ec2--vpc--A--x",
    )
    assert partitions_for([echo], listed) == ("data--echo--A", "data--echo--A--n")
    assert partitions_for([], listed) == ()
    assert partitions_for([vpc], ()) == ()


@given(rels(), st.lists(rels(), max_size=3))
def test_a_mark_reads_every_shard_it_can_concern(mark: str, below: list[str]) -> None:
    """The partition of a marked file, and of every path below a marked directory, is near the mark."""
    paths = [mark, *(f"{mark}/{rel}" for rel in below)]
    listed = [partition for partition in map(partition_of, paths) if partition is not None]
    assert set(partitions_near(mark, listed)) == set(listed)


def test_a_mark_reads_no_more() -> None:
    """The mark's own partition, those above it, those below it."""
    listed = ("_root", "audit", "data--a--b", "data--a--b--ID", "data--a--b--ID--x", "data--a--b--IE", "data--a--c")
    assert partitions_near("data/a/b/ID/name/1/raw", listed) == ("data--a--b", "data--a--b--ID")
    assert partitions_near("data/a/b/ID", listed) == ("data--a--b", "data--a--b--ID", "data--a--b--ID--x")
    assert partitions_near("data/a", listed) == listed[2:]
    assert partitions_near("audit", listed) == ("_root", "audit")
    assert partitions_near("", listed) == listed
