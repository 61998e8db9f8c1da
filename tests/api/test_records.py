"""Outputs, workflow runs and audit events: the paths and formats of the reference, read and written."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import mire

DEFINITION = "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603"
WORKFLOW = "9d7f3c10-2b6a-4e88-8c31-6f5a0e9b4d21"
RUN = "871d6d04-daf1-45d7-8523-71915fe88478"
OUTPUT = "96762942-6798-4127-8342-e606a845380f"
START = "2026-05-17T08:30:02.417Z"

Snapshot = Callable[[Path], dict[str, object]]


def an_output(**changes: Any) -> mire.Output:
    """An execution with known values."""
    return replace(
        mire.Output(
            model_type="aws/ec2/vpc",
            id=OUTPUT,
            definition_id=DEFINITION,
            method_name="create",
            status="succeeded",
            started_at=START,
            completed_at="2026-05-17T08:30:03.000Z",
            duration_ms=583,
            provenance={"definitionHash": "7e10932", "modelVersion": "2026.08.01.1", "triggeredBy": "manual"},
            artifacts={"dataArtifacts": [{"dataId": RUN, "name": "state", "version": 1, "tags": {"type": "resource"}}]},
            pid=7,
        ),
        **changes,
    )


def a_run(**changes: Any) -> mire.Run:
    """A run with known values."""
    return replace(
        mire.Run(
            id=RUN,
            workflow_id=WORKFLOW,
            workflow_name="sweep",
            status="succeeded",
            started_at=START,
            jobs=({"jobName": "j", "status": "succeeded", "steps": [{"stepName": "s", "status": "failed"}]},),
            tags={"env": "prod"},
        ),
        **changes,
    )


def test_an_output_is_where_and_what_the_reference_expects(store: mire.Store, repo: Path) -> None:
    """The path follows from type, method, definition and start; the document has the reference's members."""
    store.outputs.save(an_output())
    path = repo / f".swamp/outputs/aws/ec2/vpc/create/{DEFINITION}-2026-05-17T08-30-02-417Z.yaml"
    assert [str(found) for found in (repo / ".swamp/outputs").rglob("*") if found.is_file()] == [str(path)]
    document = yaml.safe_load(path.read_text())
    assert list(document.items()) == [
        ("id", OUTPUT),
        ("definitionId", DEFINITION),
        ("methodName", "create"),
        ("status", "succeeded"),
        ("startedAt", START),
        ("completedAt", "2026-05-17T08:30:03.000Z"),
        ("durationMs", 583),
        ("retryCount", 0),
        ("provenance", {"definitionHash": "7e10932", "modelVersion": "2026.08.01.1", "triggeredBy": "manual"}),
        (
            "artifacts",
            {"dataArtifacts": [{"dataId": RUN, "name": "state", "version": 1, "tags": {"type": "resource"}}]},
        ),
        ("pid", 7),
    ]
    assert "definitionHash: '7e10932'\n" in path.read_text()
    assert store.outputs.get(OUTPUT) == an_output()


def test_the_life_of_an_output(store: mire.Store, repo: Path) -> None:
    """Start and finish write the same file; what was put is linked, and an error is kept."""
    metadata = store.model("svc", DEFINITION).put("state", {"a": 1})
    running = store.outputs.start("Svc", DEFINITION, "deploy", provenance={"triggeredBy": "workflow"})
    assert store.outputs.get(running.id).status == "running"
    done = store.outputs.finish(running, artifacts=[metadata])
    assert len(list((repo / ".swamp/outputs/svc/deploy").iterdir())) == 1
    found = store.outputs.get(running.id)
    assert found == done
    assert found.artifacts == {
        "dataArtifacts": [{"dataId": metadata.id, "name": "state", "version": 1, "tags": dict(metadata.tags)}]
    }
    assert (found.status, found.provenance["triggeredBy"]) == ("succeeded", "workflow")
    failed = store.outputs.finish(running, "failed", error="no route to host")
    assert failed.error == {"message": "no route to host"}


def test_outputs_are_listed_newest_first(store: mire.Store) -> None:
    """By type and method or all of them."""
    first = store.outputs.save(an_output())
    second = store.outputs.save(an_output(id=RUN, started_at="2026-05-17T09:00:00.000Z", method_name="delete"))
    third = store.outputs.save(an_output(id=WORKFLOW, started_at="2026-05-17T10:00:00.000Z", model_type="docker"))
    assert list(store.outputs.list()) == [third, second, first]
    assert list(store.outputs.list("AWS::EC2::VPC")) == [second, first]
    assert list(store.outputs.list("aws/ec2/vpc", "create")) == [first]
    assert list(store.outputs.list(method="delete")) == [second]
    assert len(store.outputs.list("nothing")) == 0
    with pytest.raises(mire.NotFoundError):
        store.outputs.get(DEFINITION)


def test_outputs_of_a_type_do_not_include_those_below_it(store: mire.Store) -> None:
    """`aws` is another type than `aws/ec2/vpc`, although its directory is above."""
    store.outputs.save(an_output())
    store.outputs.save(an_output(id=RUN, model_type="aws"))
    assert [output.model_type for output in store.outputs.list("aws")] == ["aws"]


def test_records_of_equal_times_in_different_forms_are_sorted_by_time(store: mire.Store) -> None:
    """Times are compared as times: `…02Z` is before `…02.417Z`."""
    later = store.outputs.save(an_output())
    earlier = store.outputs.save(an_output(id=RUN, started_at="2026-05-17T08:30:02Z"))
    assert list(store.outputs.list()) == [later, earlier]


def test_a_run_is_where_and_what_the_reference_expects(store: mire.Store, repo: Path) -> None:
    """The path follows from workflow and run; members we do not interpret stay as they are, in order."""
    store.runs.save(a_run(extra={"logFile": "x.log", "inputs": {"a": [1, {"b": None}]}, "triggerSource": "cron"}))
    path = repo / f".swamp/workflow-runs/{WORKFLOW}/workflow-run-{RUN}.yaml"
    assert list(yaml.safe_load(path.read_text()).items()) == [
        ("id", RUN),
        ("workflowId", WORKFLOW),
        ("workflowName", "sweep"),
        ("status", "succeeded"),
        ("startedAt", START),
        ("jobs", [{"jobName": "j", "status": "succeeded", "steps": [{"stepName": "s", "status": "failed"}]}]),
        ("logFile", "x.log"),
        ("tags", {"env": "prod"}),
        ("inputs", {"a": [1, {"b": None}]}),
        ("triggerSource", "cron"),
    ]
    found = store.runs.get(WORKFLOW, RUN)
    assert found.extra == {"logFile": "x.log", "inputs": {"a": [1, {"b": None}]}, "triggerSource": "cron"}


def test_the_life_of_a_run(store: mire.Store) -> None:
    """A run starts and ends under one id, and runs are listed newest first."""
    run = store.runs.start(WORKFLOW, "sweep", tags={"env": "prod"})
    assert store.runs.get(WORKFLOW, run.id).status == "running"
    done = store.runs.finish(run, "failed")
    assert store.runs.get(WORKFLOW, run.id) == done
    older = store.runs.save(a_run())
    assert list(store.runs.list()) == [done, older]
    assert list(store.runs.list(WORKFLOW)) == [done, older]
    assert len(store.runs.list(DEFINITION)) == 0
    with pytest.raises(mire.NotFoundError):
        store.runs.get(WORKFLOW, OUTPUT)


def test_saving_a_run_removes_the_references_summary(store: mire.Store, repo: Path) -> None:
    """The reference judges its index by the number of runs only, so a changed status needs it gone."""
    store.runs.save(a_run(status="running"))
    index = repo / f".swamp/workflow-runs/{WORKFLOW}/.runs-index.json"
    other = repo / f".swamp/workflow-runs/{DEFINITION}/.runs-index.json"
    other.parent.mkdir()
    for path in (index, other):
        path.write_text('{"version": 2, "entries": {}}')
    store.runs.save(a_run())
    assert (index.exists(), other.exists()) == (False, True)
    assert len(store.runs.list()) == 1


def test_the_summary_is_local_even_when_runs_are_shared(repo: Path, tmp_path: Path) -> None:
    """With a datastore elsewhere the run goes there, and the summary in the repository goes away."""
    (tmp_path / "share").mkdir()
    store = mire.open(repo, datastore=f"filesystem:{tmp_path}/share")
    index = repo / f".swamp/workflow-runs/{WORKFLOW}/.runs-index.json"
    index.parent.mkdir(parents=True)
    index.write_text("{}")
    store.runs.save(a_run())
    assert (tmp_path / f"share/workflow-runs/{WORKFLOW}/workflow-run-{RUN}.yaml").is_file()
    assert not index.exists()


def test_records_of_both_tiers_are_read(repo: Path, tmp_path: Path) -> None:
    """What the reference wrote locally and what is in the shared datastore appear in one listing."""
    (tmp_path / "share").mkdir()
    local = mire.open(repo)
    local.outputs.save(an_output())
    local.runs.save(a_run())
    local.audit.command("local", timestamp=START)
    shared = mire.open(repo, datastore=f"filesystem:{tmp_path}/share")
    shared.outputs.save(an_output(id=RUN, method_name="delete"))
    shared.runs.save(a_run(id=OUTPUT))
    shared.audit.command("shared", timestamp="2026-05-17T10:00:00.000Z")
    assert {output.id for output in shared.outputs.list()} == {OUTPUT, RUN}
    assert {run.id for run in shared.runs.list()} == {OUTPUT, RUN}
    assert [event.command for event in shared.audit.list()] == ["shared", "local"]
    assert shared.runs.get(WORKFLOW, RUN).id == RUN


def test_events_of_one_millisecond_are_newest_first(store: mire.Store) -> None:
    """Of events with one time, the one that was written last comes first."""
    for command in ("one", "two", "three"):
        store.audit.command(command, timestamp=START)
    assert [event.command for event in store.audit.list()] == ["three", "two", "one"]


def test_audit_lines_are_what_the_reference_writes(store: mire.Store, repo: Path) -> None:
    """One file per kind and UTC day, one compact JSON object per line."""
    store.audit.command("model run", cwd="/x", session_id="s", exit_code=0, timestamp="2026-05-17T23:59:59.999Z")
    store.audit.command("data list", error="käse", timestamp="2026-05-18T00:00:00.000Z")
    store.audit.append(
        mire.VaultEvent(
            timestamp="2026-05-17T12:00:00.000Z",
            action="put",
            vault_name="v",
            vault_type="local",
            secret_key="k",  # noqa: S106 - the name of a secret
            caller_context={"model": "m"},
        )
    )
    assert {path.name: path.read_text() for path in (repo / ".swamp/audit").iterdir()} == {
        "commands-2026-05-17.jsonl": '{"timestamp":"2026-05-17T23:59:59.999Z","command":"model run","cwd":"/x",'
        '"sessionId":"s","exitCode":0}\n',
        "commands-2026-05-18.jsonl": '{"timestamp":"2026-05-18T00:00:00.000Z","command":"data list","error":"käse"}\n',
        "vault-audit-2026-05-17.jsonl": '{"action":"put","timestamp":"2026-05-17T12:00:00.000Z","vaultName":"v",'
        '"vaultType":"local","secretKey":"k","callerContext":{"model":"m"}}\n',
    }
    events = store.audit.list()
    assert [event.timestamp[:13] for event in events] == ["2026-05-18T00", "2026-05-17T23", "2026-05-17T12"]
    assert [event.timestamp[:13] for event in store.audit.list("2026-05-17T23:00:00.000Z")] == [
        "2026-05-18T00",
        "2026-05-17T23",
    ]


@pytest.mark.parametrize("since", ["2026-05-17T10:00Z", "2026-05-17T10:00:00Z", "2026-05-17T10:00:00.000000Z"])
def test_since_is_a_time_not_a_text(store: mire.Store, since: str) -> None:
    """An event at or after the given moment is listed, however the moment is written."""
    store.audit.command("x", timestamp="2026-05-17T10:00:00.000Z")
    store.audit.command("y", timestamp="2026-05-17T10:00:00.500Z")
    assert [event.command for event in store.audit.list(since)] == ["y", "x"]


def test_old_vault_files_are_read(store: mire.Store, repo: Path) -> None:
    """The older prefix and a line without an action mean a read."""
    path = repo / ".swamp/audit/vault-reads-2026-05-17.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"timestamp":"2026-05-17T10:00:00.000Z","vaultName":"v","vaultType":"t","secretKey":"k"}\n')
    (event,) = store.audit.list()
    assert isinstance(event, mire.VaultEvent)
    assert event.action == "get"


def test_a_torn_last_line_costs_only_itself(store: mire.Store, repo: Path) -> None:
    """What a dead writer left is counted as damaged and closed before the next line."""
    store.audit.command("one", timestamp=START)
    path = repo / ".swamp/audit/commands-2026-05-17.jsonl"
    path.write_bytes(path.read_bytes() + b'{"timestamp":"2026-05-17T08:31')
    listing = store.audit.list()
    assert [event.command for event in listing] == ["one"]
    assert [item.path for item in listing.damaged] == [f"{path}:2"]
    store.audit.command("two", timestamp="2026-05-17T09:00:00.000Z")
    listing = store.audit.list()
    assert [event.command for event in listing] == ["two", "one"]
    assert len(listing.damaged) == 1
    assert len(path.read_bytes().splitlines()) == 3


@pytest.mark.parametrize(
    "line",
    [b"[]", b"7", b"\xff", b'{"command":"x"}', b'{"timestamp":"now","command":"x"}', b"[" * 100_000, b'{"a":NaN'],
)
def test_bad_audit_lines_are_counted_not_hidden(store: mire.Store, repo: Path, line: bytes) -> None:
    """Lines of the wrong shape are reported with file and line, and the others are read."""
    store.audit.command("good", timestamp=START)
    path = repo / ".swamp/audit/commands-2026-05-17.jsonl"
    path.write_bytes(line + b"\n\n" + path.read_bytes())
    listing = store.audit.list()
    assert [event.command for event in listing] == ["good"]
    assert [item.path for item in listing.damaged] == [f"{path}:1"]
    assert "\n" not in listing.damaged[0].message


@pytest.mark.parametrize("data", [b"id: [\n", b"", b"\xff", b"id: x\n", b"- a\n"])
def test_damaged_records_are_listed_beside_the_good_ones(store: mire.Store, repo: Path, data: bytes) -> None:
    """One bad file does not hide a directory; what is wrong is told with its path."""
    store.outputs.save(an_output())
    store.runs.save(a_run())
    output = repo / f".swamp/outputs/aws/ec2/vpc/create/{DEFINITION}-bad.yaml"
    run = repo / f".swamp/workflow-runs/{WORKFLOW}/workflow-run-{OUTPUT}.yaml"
    for path in (output, run):
        path.write_bytes(data)
    assert (len(store.outputs.list()), [item.path for item in store.outputs.list().damaged]) == (1, [str(output)])
    assert (len(store.runs.list()), [item.path for item in store.runs.list().damaged]) == (1, [str(run)])
    assert store.outputs.get(OUTPUT).id == OUTPUT
    with pytest.raises(mire.FormatError):
        store.runs.get(WORKFLOW, OUTPUT)


def test_files_that_are_no_records_are_left_alone(store: mire.Store, repo: Path) -> None:
    """Logs, summaries and temporary files beside records are neither read nor counted as damage."""
    store.outputs.save(an_output())
    store.runs.save(a_run())
    for path in (
        f"outputs/aws/ec2/vpc/create/{DEFINITION}.log",
        "outputs/aws/ec2/vpc/create/.5b0c8a52.tmp",
        f"workflow-runs/{WORKFLOW}/.runs-index.json",
        f"workflow-runs/{WORKFLOW}/workflow-run-{RUN}.log",
        f"workflow-runs/{WORKFLOW}/notes.yaml",
        "audit/readme.txt",
    ):
        target = repo / ".swamp" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("not a record")
    for listing in (store.outputs.list(), store.runs.list(), store.audit.list()):
        assert listing.damaged == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "x"},
        {"definition_id": "../../x"},
        {"method_name": "../x"},
        {"method_name": ""},
        {"model_type": "a/../b"},
        {"status": "done"},
        {"started_at": "2026-05-17"},
        {"started_at": "../x"},
        {"completed_at": 7},
        {"duration_ms": -1},
        {"duration_ms": "1"},
        {"retry_count": "x"},
        {"error": "text"},
        {"error": {}},
        {"provenance": {}},
        {"provenance": {"definitionHash": "x", "modelVersion": "1", "triggeredBy": "robot"}},
        {"artifacts": ["x"]},
        {"log_file": 7},
        {"extra": {"x": object()}},
        {"extra": {7: "x"}},
        {"extra": {"x": "\ud800"}},
    ],
    ids=",".join,
)
def test_a_bad_output_is_refused(store: mire.Store, repo: Path, snapshot: Snapshot, changes: dict[str, Any]) -> None:
    """Nothing the reference would refuse is written."""
    with pytest.raises(mire.InputError) as caught:
        store.outputs.save(an_output(**changes))
    assert "\n" not in caught.value.message
    assert snapshot(repo) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "../x"},
        {"workflow_id": "../../x"},
        {"workflow_id": ""},
        {"workflow_name": ""},
        {"workflow_name": 7},
        {"status": "done"},
        {"started_at": "now"},
        {"jobs": ({"a": object()},)},
        {"jobs": ("x",)},
        {"tags": {"a": 1}},
        {"extra": {"x": {1, 2}}},
    ],
    ids=",".join,
)
def test_a_bad_run_is_refused(store: mire.Store, repo: Path, snapshot: Snapshot, changes: dict[str, Any]) -> None:
    """Nothing the reference would refuse is written."""
    with pytest.raises(mire.InputError) as caught:
        store.runs.save(a_run(**changes))
    assert "\n" not in caught.value.message
    assert snapshot(repo) == {}


@pytest.mark.parametrize("value", ["../x", "..", "", "not-a-uuid", "../../../../etc", None, 7, "x" * 300])
def test_ids_of_records_are_checked(store: mire.Store, repo: Path, snapshot: Snapshot, value: Any) -> None:
    """Workflow, run, definition and output ids are UUIDs, so that none of them can be a path."""
    calls: list[Callable[[], object]] = [
        lambda: store.runs.start(value, "sweep"),
        lambda: store.runs.get(value, RUN),
        lambda: store.runs.get(WORKFLOW, value),
        lambda: store.outputs.start("t", value, "create"),
        lambda: store.outputs.get(value),
    ]
    if value is not None:
        calls.append(lambda: store.runs.list(value))
    for call in calls:
        with pytest.raises(mire.InputError) as caught:
            call()
        assert repr(value)[:60] in caught.value.message
    assert snapshot(repo) == {}


@pytest.mark.parametrize("method", ["../x", "..", ".", "a/b", "a\\b", "", "x\0y", "\ud800", "x" * 256, 7])
def test_method_names_are_checked(store: mire.Store, repo: Path, snapshot: Snapshot, method: Any) -> None:
    """A method is a directory, so it is held to the same rule as other names."""
    for call in (lambda: store.outputs.start("t", DEFINITION, method), lambda: store.outputs.list("t", method)):
        with pytest.raises(mire.InputError) as caught:
            call()
        assert repr(method)[:40] in caught.value.message
    assert snapshot(repo) == {}


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": ""},
        {"command": 7},
        {"command": "\ud800"},
        {"command": "x", "exit_code": "0"},
        {"command": "x", "exit_code": True},
        {"command": "x", "cwd": 7},
        {"command": "x", "timestamp": "now"},
        {"command": "x", "timestamp": "../x"},
        {"command": "x", "timestamp": "2026-05-17T08:30:02+02:00"},
    ],
    ids=",".join,
)
def test_a_bad_audit_event_is_refused(
    store: mire.Store, repo: Path, snapshot: Snapshot, arguments: dict[str, Any]
) -> None:
    """An event that could not be read back is not written."""
    with pytest.raises(mire.InputError) as caught:
        store.audit.command(**arguments)
    assert "\n" not in caught.value.message
    assert snapshot(repo) == {}


def deep() -> list[Any]:
    """A list nested deeper than Python's stack."""
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize("context", [object(), float("nan"), {1: {2, 3}}, deep()], ids=["object", "nan", "set", "deep"])
def test_a_context_that_is_not_json_is_refused(
    store: mire.Store, repo: Path, snapshot: Snapshot, context: object
) -> None:
    """A caller's context that JSON cannot hold is bad input."""
    with pytest.raises(mire.InputError):
        store.audit.vault("get", "v", "t", "k", caller_context=context)
    assert snapshot(repo) == {}


def test_a_provenance_nested_too_deep_is_refused(store: mire.Store, repo: Path, snapshot: Snapshot) -> None:
    """What no reader could take is not written."""
    with pytest.raises(mire.InputError):
        store.outputs.start("t", DEFINITION, "create", provenance={"x": deep()})
    assert snapshot(repo) == {}


def test_artifacts_of_the_wrong_kind_are_refused(store: mire.Store) -> None:
    """What a method produced is given as metadata or as maps."""
    running = store.outputs.start("t", DEFINITION, "create")
    with pytest.raises(mire.InputError):
        store.outputs.finish(running, artifacts=[7])


def test_json_lines_survive_odd_text(store: mire.Store, repo: Path) -> None:
    """Line separators of other worlds inside a command stay inside its line."""
    command = "echo 'a\nb' \u2028 \u0085 \x0b 🐊"
    store.audit.command(command, timestamp=START)
    (event,) = store.audit.list()
    assert event.command == command
    (path,) = (repo / ".swamp/audit").iterdir()
    assert json.loads(path.read_bytes())["command"] == command
