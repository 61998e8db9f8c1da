"""Paths: the table of the format, and the reference's own tree."""

from pathlib import Path

import pytest
from hypothesis import given

from mire.model.artifact import ModelRef
from mire.model.instant import Instant
from mire.model.names import (
    PRIVATE_PREFIX,
    DataName,
    MethodName,
    ModelId,
    ModelType,
    Namespace,
    Uuid,
    parse_method_name,
    parse_model_type,
    parse_rel_path,
)
from mire.testing.strategies import data_names, model_refs
from mire.wire import layout
from mire.wire.metadata import decode_metadata
from mire.wire.record import COMMANDS, VAULT, VAULT_LEGACY, decode_output, decode_run

GOLDEN = Path(__file__).parent.parent / "golden" / "tree"
MODEL = ModelRef(model_type=ModelType("aws/ec2/vpc"), model_id=ModelId("m-1"))
U1 = Uuid("55cf1725-549d-4c93-8485-559583974233")
U2 = Uuid("871d6d04-daf1-45d7-8523-71915fe88478")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (layout.model_dir(MODEL), "data/aws/ec2/vpc/m-1"),
        (layout.name_dir(MODEL, DataName("a b")), "data/aws/ec2/vpc/m-1/a b"),
        (layout.version_dir(MODEL, DataName("log"), 12), "data/aws/ec2/vpc/m-1/log/12"),
        (layout.intent_path(MODEL), "data/aws/ec2/vpc/m-1/_catalog.db-rename.json"),
        (layout.output_dir(ModelType("docker"), MethodName("create")), "outputs/docker/create"),
        (
            layout.output_path(ModelType("docker"), MethodName("create"), U1, Instant("2026-08-01T12:02:47.947Z")),
            f"outputs/docker/create/{U1}-2026-08-01T12-02-47-947Z.yaml",
        ),
        (layout.run_dir(U1), f"workflow-runs/{U1}"),
        (layout.run_path(U1, U2), f"workflow-runs/{U1}/workflow-run-{U2}.yaml"),
        (layout.audit_path(COMMANDS, "2026-08-01"), "audit/commands-2026-08-01.jsonl"),
        (layout.audit_path(VAULT, "2026-08-01"), "audit/vault-audit-2026-08-01.jsonl"),
        (layout.audit_path(VAULT_LEGACY, "2026-08-01"), "audit/vault-reads-2026-08-01.jsonl"),
        (layout.data_root(Namespace("")), "data"),
        (layout.data_root(Namespace("green")), "green/data"),
        (layout.model_lock(Namespace(""), MODEL), "data/aws/ec2/vpc/m-1/.lock"),
        (layout.model_lock(Namespace("green"), MODEL), "green/data/aws/ec2/vpc/m-1/.lock"),
    ],
)
def test_paths_are_those_of_the_format(path: str, text: str) -> None:
    """Every path is spelled as the reference spells it."""
    assert path == text
    assert parse_rel_path(path) == path


def test_the_global_lock_has_two_generations_of_keys() -> None:
    """Solo stores have one key; namespaced ones the August key, then the newer one."""
    assert layout.global_locks(Namespace("")) == (".datastore.lock",)
    assert layout.global_locks(Namespace("green")) == (".locks/green.lock", "green/.datastore.lock")


def test_our_own_files_are_private() -> None:
    """Files the reference does not know begin with the one prefix that no client syncs."""
    assert layout.INTENT.startswith(PRIVATE_PREFIX)
    assert layout.TEMPORARY_PREFIX.startswith(PRIVATE_PREFIX)


@given(model_refs(), data_names())
def test_paths_of_parsed_names_stay_in_the_store(model: ModelRef, name: DataName) -> None:
    """Whatever the names, a version's directory is a clean relative path below its model's."""
    path = layout.version_dir(model, name, 1)
    assert parse_rel_path(path) == path
    assert path.startswith(f"data/{model.model_type}/{model.model_id}/")
    assert path.count("/") == model.model_type.count("/") + 4


def test_the_reference_s_versions_stand_where_we_look() -> None:
    """Every version of the golden tree is in the directory its metadata leads us to."""
    found = sorted(GOLDEN.glob("data/**/metadata.yaml"))
    for path in found:
        metadata = decode_metadata(path.read_bytes())
        *kind, model_id = path.parent.parent.parent.relative_to(GOLDEN / "data").parts
        model = ModelRef(model_type=parse_model_type("/".join(kind)), model_id=ModelId(model_id))
        assert layout.version_dir(model, metadata.name, metadata.version) == str(path.parent.relative_to(GOLDEN))
    assert len(found) == 49


def test_the_reference_s_records_stand_where_we_look() -> None:
    """Every output and run of the golden tree has the name its content leads us to."""
    outputs, runs = sorted(GOLDEN.glob("outputs/**/*.yaml")), sorted(GOLDEN.glob("workflow-runs/*/*.yaml"))
    for path in outputs:
        *kind, method = path.parent.relative_to(GOLDEN / "outputs").parts
        output = decode_output(path.read_bytes(), parse_model_type("/".join(kind)))
        assert output.method_name == parse_method_name(method)
        assert layout.output_path(
            output.model_type, output.method_name, output.definition_id, output.started_at
        ) == str(path.relative_to(GOLDEN))
    for path in runs:
        run = decode_run(path.read_bytes())
        assert layout.run_path(run.workflow_id, run.id) == str(path.relative_to(GOLDEN))
    assert (len(outputs), len(runs)) == (10, 2)
