"""Records other than data: method executions (outputs), workflow runs, audit events.

Owns: the fields mire decides with. Everything else of a record travels along untouched in `extra`.
Must not know: YAML, JSON, paths.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mire.model.instant import Instant
from mire.model.names import MethodName, ModelType, Uuid

OUTPUT_STATUSES: Final = ("pending", "running", "succeeded", "failed", "cancelled")
RUN_STATUSES: Final = ("pending", "running", "suspended", "succeeded", "failed", "cancelled")
TRIGGERS: Final = ("manual", "workflow", "model")
VAULT_ACTIONS: Final = ("get", "put", "delete", "annotate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One execution of a method. Its file name follows from type, method, definition and start."""

    model_type: ModelType
    id: Uuid
    definition_id: Uuid
    method_name: MethodName
    status: str
    started_at: Instant
    completed_at: Instant | None = None
    duration_ms: int | None = None
    error: Mapping[str, Any] | None = None
    retry_count: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, Any] | None = None
    log_file: str | None = None
    pid: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a workflow; `jobs` and what is below them stay as the writer shaped them."""

    id: Uuid
    workflow_id: Uuid
    workflow_name: str
    status: str
    started_at: Instant | None = None
    completed_at: Instant | None = None
    jobs: Sequence[Mapping[str, Any]] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEvent:
    """A command somebody ran."""

    timestamp: Instant
    command: str
    cwd: str | None = None
    session_id: str | None = None
    exit_code: int | None = None
    error: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultEvent:
    """An access to a secret (never its value)."""

    timestamp: Instant
    action: str
    vault_name: str
    vault_type: str
    secret_key: str
    caller_context: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)


AuditEvent = CommandEvent | VaultEvent
