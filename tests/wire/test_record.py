"""Outputs, workflow runs and audit events: the reference's files, the schemas, what survives a rewrite."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from mire.errors import FormatError
from mire.model.names import ModelType
from mire.model.record import CommandEvent, VaultEvent
from mire.testing.strategies import unknown_members
from mire.wire.record import (
    decode_event,
    decode_output,
    decode_run,
    encode_event,
    encode_output,
    encode_run,
    event_document,
    output_document,
    run_document,
)
from mire.wire.yamltext import decode_yaml_mapping, encode_yaml

TREE = Path(__file__).parent.parent / "golden" / "tree"
OUTPUTS = sorted(TREE.glob("outputs/**/*.yaml"))
RUNS = sorted(TREE.glob("workflow-runs/*/*.yaml"))
EVENTS = [line for path in sorted(TREE.glob("audit/*.jsonl")) for line in path.read_bytes().splitlines()]
DOCKER = ModelType("docker")

U1 = "618c2d79-21b8-4127-883c-278efa47565f"
U2 = "025204bc-a4d4-4147-8f4b-51897d3b2486"
START, END = "2026-08-01T12:02:47.947Z", "2026-08-01T12:02:48.447Z"
OUTPUT: dict[str, Any] = {
    "id": U1,
    "definitionId": U2,
    "methodName": "create",
    "status": "failed",
    "startedAt": START,
    "completedAt": END,
    "durationMs": 500,
    "error": {"message": "no", "stack": "at x", "cause": None},
    "retryCount": 2,
    "provenance": {
        "definitionHash": "7e10932",
        "modelVersion": 3,
        "triggeredBy": "workflow",
        "workflowId": U1,
        "future": None,
    },
    "artifacts": {"dataArtifacts": [{"dataId": U1, "name": "result", "version": 3, "tags": {"type": "resource"}}]},
    "logFile": ".swamp/outputs/x.log",
    "pid": 4711,
}
RUN: dict[str, Any] = {
    "id": U1,
    "workflowId": U2,
    "workflowName": "deploy",
    "status": "suspended",
    "startedAt": START,
    "completedAt": END,
    "jobs": [
        {"jobName": "j", "status": "waiting_approval", "steps": [{"stepName": "s", "output": {"any": [1, None]}}]},
        {},
    ],
    "workflowDataArtifacts": [],
    "logFile": "x.log",
    "pid": 4711,
    "tags": {"a": "b"},
    "inputs": {"x": None},
    "stepProgress": {"completed": 1, "total": 2},
}
COMMAND = {
    "timestamp": START,
    "command": "data list",
    "cwd": "/work",
    "sessionId": "s-1",
    "exitCode": -9,
    "error": "killed",
    "future": None,
}
ACCESS = {
    "action": "put",
    "timestamp": START,
    "vaultName": "v",
    "vaultType": "local",
    "secretKey": "k",
    "callerContext": {"model": "x"},
    "future": [1],
}


def yaml_of(document: dict[str, Any], **members: Any) -> bytes:
    """The document with some members changed, as YAML."""
    return encode_yaml({**document, **members}).encode()


def line_of(document: dict[str, Any], **members: Any) -> bytes:
    """The event with some members changed, as a line."""
    return json.dumps({**document, **members}).encode()


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.stem[:8])
def test_the_reference_s_outputs_survive(path: Path) -> None:
    """An output written by the reference is read, and written again with equal values in the same order."""
    data = path.read_bytes()
    again = encode_output(decode_output(data, DOCKER))
    assert decode_yaml_mapping(again) == decode_yaml_mapping(data)
    assert list(decode_yaml_mapping(again)) == list(decode_yaml_mapping(data))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem[-8:])
def test_the_reference_s_runs_survive(path: Path) -> None:
    """A run written by the reference is read, and written again with equal values in the same order."""
    data = path.read_bytes()
    again = encode_run(decode_run(data))
    assert decode_yaml_mapping(again) == decode_yaml_mapping(data)
    assert list(decode_yaml_mapping(again)) == list(decode_yaml_mapping(data))


@pytest.mark.parametrize("line", EVENTS)
def test_the_reference_s_events_are_written_byte_for_byte(line: bytes) -> None:
    """An event written by the reference is read, and encoding it gives the same line."""
    assert encode_event(decode_event(line, is_vault=False)) == line + b"\n"


def test_there_are_golden_records() -> None:
    """The tree the tests rely on is there."""
    assert (len(OUTPUTS), len(RUNS), len(EVENTS)) == (10, 2, 2)


def test_an_output_with_everything_survives() -> None:
    """Every member of an output survives in its place, with what is nested and null below it."""
    output = decode_output(yaml_of(OUTPUT, future=None), DOCKER)
    assert output.model_type == DOCKER
    assert (output.status, output.duration_ms, output.retry_count, output.pid) == ("failed", 500, 2, 4711)
    document = decode_yaml_mapping(encode_output(output))
    assert document == output_document(output) == {**OUTPUT, "future": None}
    assert list(document) == [*OUTPUT, "future"]


def test_a_run_with_everything_survives() -> None:
    """Every member of a run survives in its place, with what is nested and null below it."""
    run = decode_run(yaml_of(RUN))
    assert (run.status, run.workflow_name, run.tags, len(run.jobs)) == ("suspended", "deploy", {"a": "b"}, 2)
    document = decode_yaml_mapping(encode_run(run))
    assert document == run_document(run) == RUN
    assert list(document) == list(RUN)


@given(unknown_members())
def test_unknown_members_survive(extra: dict[str, Any]) -> None:
    """Members of a newer writer survive in every kind of record."""
    assert decode_output(yaml_of(OUTPUT, **extra), DOCKER).extra == extra
    assert decode_yaml_mapping(encode_output(decode_output(yaml_of(OUTPUT, **extra), DOCKER))) == {**OUTPUT, **extra}
    assert decode_yaml_mapping(encode_run(decode_run(yaml_of(RUN, **extra)))) == {**RUN, **extra}


def test_little_is_needed() -> None:
    """Optional members may be missing; where the reference always writes one, we do too."""
    keep = ("id", "definitionId", "methodName", "status", "startedAt", "provenance")
    small = {key: OUTPUT[key] for key in keep}
    assert output_document(decode_output(yaml_of(small), DOCKER)) == {**small, "retryCount": 0}
    small = {key: RUN[key] for key in ("id", "workflowId", "workflowName", "status")}
    assert run_document(decode_run(yaml_of(small))) == {**small, "jobs": [], "tags": {}}


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("id", "x"),
        ("id", None),
        ("definitionId", 1),
        ("methodName", "a/b"),
        ("methodName", ""),
        ("status", "suspended"),
        ("status", 1),
        ("startedAt", "2026-08-01"),
        ("startedAt", None),
        ("completedAt", "soon"),
        ("durationMs", -1),
        ("durationMs", 0.5),
        ("error", "no"),
        ("retryCount", True),
        ("provenance", None),
        ("provenance", []),
        ("artifacts", []),
        ("logFile", 1),
        ("pid", "x"),
    ],
)
def test_a_bad_member_of_an_output_is_named(key: str, bad: object) -> None:
    """An output that breaks the schema is refused in one line that names the member."""
    with pytest.raises(FormatError, match=f"output.*'{key}'") as caught:
        decode_output(yaml_of(OUTPUT, **{key: bad}), DOCKER)
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("provenance", {"modelVersion": "1", "triggeredBy": "manual"}),
        ("provenance", {"definitionHash": "", "modelVersion": "1", "triggeredBy": "manual"}),
        ("provenance", {"definitionHash": "a", "triggeredBy": "manual"}),
        ("provenance", {"definitionHash": "a", "modelVersion": [], "triggeredBy": "manual"}),
        ("provenance", {"definitionHash": "a", "modelVersion": "1", "triggeredBy": "cron"}),
        ("error", {}),
        ("error", {"message": 1}),
    ],
)
def test_a_bad_inner_member_is_named(outer: str, inner: dict[str, object]) -> None:
    """Provenance and error have members of their own, and a bad one is named with where it stands."""
    with pytest.raises(FormatError, match=outer):
        decode_output(yaml_of(OUTPUT, **{outer: inner}), DOCKER)


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("id", None),
        ("workflowId", "x"),
        ("workflowName", ""),
        ("status", "waiting"),
        ("startedAt", 1),
        ("completedAt", "x"),
        ("jobs", {}),
        ("jobs", ["x"]),
        ("tags", []),
        ("tags", {"a": 1}),
    ],
)
def test_a_bad_member_of_a_run_is_named(key: str, bad: object) -> None:
    """A run that breaks the schema is refused in one line that names the member."""
    with pytest.raises(FormatError, match=f"workflow run.*'{key}'") as caught:
        decode_run(yaml_of(RUN, **{key: bad}))
    assert caught.value.message.isprintable()


def test_a_command_survives() -> None:
    """A command event survives, compact and in the reference's order, unknown members last."""
    event = decode_event(line_of(COMMAND), is_vault=False)
    assert isinstance(event, CommandEvent)
    assert (event.exit_code, event.session_id, event.extra) == (-9, "s-1", {"future": None})
    assert event_document(event) == COMMAND
    assert encode_event(event) == json.dumps(COMMAND, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("action", ["get", "put", "delete", "annotate"])
def test_an_access_survives(action: str) -> None:
    """A vault event survives in the reference's order, whatever the action."""
    event = decode_event(line_of(ACCESS, action=action), is_vault=True)
    assert isinstance(event, VaultEvent)
    assert (event.action, event.secret_key, event.caller_context) == (action, "k", {"model": "x"})
    assert list(event_document(event).items()) == list({**ACCESS, "action": action}.items())


def test_a_legacy_access_is_a_get() -> None:
    """Lines of `vault-reads-` files have no action, because reading was all they recorded."""
    legacy = {key: value for key, value in ACCESS.items() if key != "action"}
    event = decode_event(line_of(legacy), is_vault=True)
    assert isinstance(event, VaultEvent)
    assert event.action == "get"


def test_an_event_is_one_line() -> None:
    """Text with newlines stays one line, and is written as UTF-8."""
    event = decode_event(line_of(COMMAND, command="a\nb\u2028é"), is_vault=False)
    line = encode_event(event)
    assert line.count(b"\n") == 1
    assert "é".encode() in line
    assert decode_event(line, is_vault=False) == event


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object, b"x", "\ud800"], ids=ascii)
def test_what_json_cannot_hold_is_not_written(value: object) -> None:
    """A value other programs could not read is an error, not a line."""
    event = decode_event(line_of(ACCESS), is_vault=True)
    assert isinstance(event, VaultEvent)
    with pytest.raises((TypeError, ValueError)):
        encode_event(replace(event, caller_context=value))


@pytest.mark.parametrize(
    ("line", "is_vault"),
    [
        (b"", False),
        (b"{", False),
        (b"[]", True),
        (b"\xff", False),
        (b"[" * 100_000, False),
        (line_of(COMMAND, timestamp=None), False),
        (line_of(COMMAND, timestamp="x"), False),
        (line_of(COMMAND, command=""), False),
        (line_of(COMMAND, exitCode="0"), False),
        (line_of(COMMAND, exitCode=True), False),
        (line_of(COMMAND, cwd=1), False),
        (line_of(ACCESS, action="peek"), True),
        (line_of(ACCESS, vaultName=None), True),
        (line_of(ACCESS, vaultType=1), True),
        (line_of(ACCESS, secretKey=""), True),
        (line_of(ACCESS), False),
        (line_of(COMMAND), True),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_a_bad_line_is_refused(line: bytes, is_vault: bool) -> None:  # noqa: FBT001 - a table of cases
    """A line that is no event of its kind is a format error of one line."""
    with pytest.raises(FormatError, match="audit") as caught:
        decode_event(line, is_vault=is_vault)
    assert caught.value.message.isprintable()
