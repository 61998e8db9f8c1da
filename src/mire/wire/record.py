"""Outputs and workflow runs (YAML), audit events (JSON lines), in the reference's formats.

Owns: the schemas of core-layout §3.1, §3.2 and §3.4.
Must not know: where the files are.
Keeps: members we do not know, and shapes below `jobs`, `provenance` and `artifacts`, survive a rewrite.
"""

import json
from collections.abc import Mapping
from typing import Any, assert_never

from mire.errors import FormatError, InputError, shown
from mire.model.instant import parse_instant
from mire.model.names import ModelType, parse_method_name, parse_uuid
from mire.model.record import (
    OUTPUT_STATUSES,
    RUN_STATUSES,
    TRIGGERS,
    VAULT_ACTIONS,
    AuditEvent,
    CommandEvent,
    Output,
    Run,
    VaultEvent,
)
from mire.wire.fields import Fields, mapping, one_of, present, sequence, text, text_map, whole
from mire.wire.yamltext import decode_yaml_mapping, encode_yaml

COMMANDS = "commands"
VAULT = "vault-audit"
VAULT_LEGACY = "vault-reads"


def decode_output(data: bytes, model_type: ModelType) -> Output:
    """One method execution; the type is in its path, not in the document."""
    fields = Fields(decode_yaml_mapping(data, "output"), "output")
    return Output(
        model_type=model_type,
        id=fields.take("id", parse_uuid),
        definition_id=fields.take("definitionId", parse_uuid),
        method_name=fields.take("methodName", parse_method_name),
        status=fields.take("status", one_of(*OUTPUT_STATUSES)),
        started_at=fields.take("startedAt", parse_instant),
        completed_at=fields.maybe("completedAt", parse_instant),
        duration_ms=fields.maybe("durationMs", whole),
        error=fields.maybe("error", _error),
        retry_count=fields.maybe("retryCount", whole) or 0,
        provenance=fields.take("provenance", _provenance),
        artifacts=fields.maybe("artifacts", mapping),
        log_file=fields.maybe("logFile", text),
        pid=fields.maybe("pid", whole),
        extra=fields.rest(),
    )


def encode_output(output: Output) -> bytes:
    """The record of a method execution."""
    return encode_yaml(output_document(output)).encode()


def output_document(output: Output) -> dict[str, Any]:
    """The output under the names the document uses."""
    known = present(
        {
            "id": output.id,
            "definitionId": output.definition_id,
            "methodName": output.method_name,
            "status": output.status,
            "startedAt": output.started_at,
            "completedAt": output.completed_at,
            "durationMs": output.duration_ms,
            "error": output.error,
            "retryCount": output.retry_count,
            "provenance": dict(output.provenance),
            "artifacts": output.artifacts,
            "logFile": output.log_file,
            "pid": output.pid,
        }
    )
    return {**known, **output.extra}


def decode_run(data: bytes) -> Run:
    """One workflow run."""
    fields = Fields(decode_yaml_mapping(data, "workflow run"), "workflow run")
    return Run(
        id=fields.take("id", parse_uuid),
        workflow_id=fields.take("workflowId", parse_uuid),
        workflow_name=fields.take("workflowName", text),
        status=fields.take("status", one_of(*RUN_STATUSES)),
        started_at=fields.maybe("startedAt", parse_instant),
        completed_at=fields.maybe("completedAt", parse_instant),
        jobs=fields.maybe("jobs", _jobs) or (),
        tags=fields.maybe("tags", text_map) or {},
        extra=fields.rest(),
    )


def encode_run(run: Run) -> bytes:
    """The record of a workflow run."""
    return encode_yaml(run_document(run)).encode()


def run_document(run: Run) -> dict[str, Any]:
    """The run under the names the document uses."""
    known = present(
        {
            "id": run.id,
            "workflowId": run.workflow_id,
            "workflowName": run.workflow_name,
            "status": run.status,
            "startedAt": run.started_at,
            "completedAt": run.completed_at,
            "jobs": list(run.jobs),
        }
    )
    return {**known, **_before_tags(run.extra), "tags": dict(run.tags), **_after_tags(run.extra)}


_BEFORE_TAGS = ("workflowDataArtifacts", "logFile", "pid")


def _before_tags(extra: Mapping[str, Any]) -> dict[str, Any]:
    return {key: extra[key] for key in _BEFORE_TAGS if key in extra}


def _after_tags(extra: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in extra.items() if key not in _BEFORE_TAGS}


def decode_event(line: bytes, *, is_vault: bool) -> AuditEvent:
    """One line of an audit file."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        raise FormatError(f"audit line {shown(line)} is not JSON") from None
    fields = Fields(document, "audit event")
    timestamp = fields.take("timestamp", parse_instant)
    if is_vault:
        return VaultEvent(
            timestamp=timestamp,
            action=fields.maybe("action", one_of(*VAULT_ACTIONS)) or "get",
            vault_name=fields.take("vaultName", text),
            vault_type=fields.take("vaultType", text),
            secret_key=fields.take("secretKey", text),
            caller_context=fields.maybe("callerContext", _anything),
            extra=fields.rest(),
        )
    return CommandEvent(
        timestamp=timestamp,
        command=fields.take("command", text),
        cwd=fields.maybe("cwd", text),
        session_id=fields.maybe("sessionId", text),
        exit_code=fields.maybe("exitCode", _integer),
        error=fields.maybe("error", text),
        extra=fields.rest(),
    )


def encode_event(event: AuditEvent) -> bytes:
    """One line of an audit file, newline included."""
    text = json.dumps(event_document(event), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"{text}\n".encode()


def event_document(event: AuditEvent) -> dict[str, Any]:
    """The event under the names the line uses."""
    match event:
        case CommandEvent():
            known = {
                "timestamp": event.timestamp,
                "command": event.command,
                "cwd": event.cwd,
                "sessionId": event.session_id,
                "exitCode": event.exit_code,
                "error": event.error,
            }
        case VaultEvent():
            known = {
                "action": event.action,
                "timestamp": event.timestamp,
                "vaultName": event.vault_name,
                "vaultType": event.vault_type,
                "secretKey": event.secret_key,
                "callerContext": event.caller_context,
            }
        case _:
            assert_never(event)
    return {**present(known), **event.extra}


def _provenance(value: object) -> Mapping[str, Any]:
    fields = Fields(mapping(value), "provenance")
    fields.take("definitionHash", text)
    fields.take("modelVersion", _text_or_number)
    fields.take("triggeredBy", one_of(*TRIGGERS))
    return mapping(value)


def _error(value: object) -> Mapping[str, Any]:
    Fields(mapping(value), "error").take("message", _string)
    return mapping(value)


def _jobs(value: object) -> tuple[Mapping[str, Any], ...]:
    return tuple(mapping(job) for job in sequence(value))


def _text_or_number(value: object) -> object:
    if not isinstance(value, (str, int, float)):
        raise InputError(f"{shown(value)} is neither text nor a number")
    return value


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise InputError(f"{shown(value)} is not text")
    return value


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{shown(value)} is not a whole number")
    return value


def _anything(value: object) -> object:
    return value
