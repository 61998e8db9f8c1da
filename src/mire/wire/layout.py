"""Which path holds what, relative to the datastore tier (or, for locks, to its base).

Owns: every path of core-layout §1, §3 and §7, and the names of our own private files.
Must not know: where the tiers are on disk.
"""

from typing import Final

from mire.model.artifact import ModelRef
from mire.model.instant import Instant
from mire.model.lease import LockKey
from mire.model.names import PRIVATE_PREFIX, DataName, MethodName, ModelType, Namespace, RelPath, Uuid

DATA: Final = RelPath("data")
OUTPUTS: Final = RelPath("outputs")
RUNS: Final = RelPath("workflow-runs")
AUDIT: Final = RelPath("audit")

LATEST: Final = "latest"
HIGHEST: Final = ".highest"
METADATA: Final = "metadata.yaml"
RAW: Final = "raw"
LOCK: Final = ".lock"
OLD_LOCKS: Final = ".locks/"
"""Where older releases have the global locks of namespaces: at the root, in the part of nobody else."""
REPO_FILE: Final = ".swamp.yaml"
LOCAL_TIER: Final = ".swamp"
FORMAT_MARKER: Final = "datastore-format.json"

TEMPORARY_PREFIX: Final = f"{PRIVATE_PREFIX}-"
TEMPORARY_SUFFIX: Final = ".tmp"
"""A temporary file in the store is `_catalog.db-<random>.tmp`: the only basenames no client ever syncs."""

INTENT: Final = f"{PRIVATE_PREFIX}-rename.json"
"""A rename under way, in the model's directory: it names two places, and one file makes it one step."""


def model_dir(model: ModelRef) -> RelPath:
    """The directory of a model instance."""
    return RelPath(f"{DATA}/{model.model_type}/{model.model_id}")


def name_dir(model: ModelRef, name: DataName) -> RelPath:
    """The directory of a data name."""
    return RelPath(f"{model_dir(model)}/{name}")


def version_dir(model: ModelRef, name: DataName, version: int) -> RelPath:
    """The directory of one version."""
    return RelPath(f"{name_dir(model, name)}/{version}")


def intent_path(model: ModelRef) -> RelPath:
    """The rename under way in a model, if any."""
    return RelPath(f"{model_dir(model)}/{INTENT}")


def output_dir(model_type: ModelType, method: MethodName) -> RelPath:
    """The directory of a method's executions."""
    return RelPath(f"{OUTPUTS}/{model_type}/{method}")


def output_path(model_type: ModelType, method: MethodName, definition: Uuid, started: Instant) -> RelPath:
    """The record of one execution; its name does not change while its status does."""
    stamp = started.replace(":", "-").replace(".", "-")
    return RelPath(f"{output_dir(model_type, method)}/{definition}-{stamp}.yaml")


def run_dir(workflow_id: Uuid) -> RelPath:
    """The directory of a workflow's runs."""
    return RelPath(f"{RUNS}/{workflow_id}")


def run_path(workflow_id: Uuid, run_id: Uuid) -> RelPath:
    """The record of one run."""
    return RelPath(f"{run_dir(workflow_id)}/workflow-run-{run_id}.yaml")


def audit_path(prefix: str, day: str) -> RelPath:
    """The audit file of one UTC day; `prefix` says of which kind."""
    return RelPath(f"{AUDIT}/{prefix}-{day}.jsonl")


def _prefix(namespace: Namespace) -> str:
    return f"{namespace}/" if namespace else ""


def data_root(namespace: Namespace) -> str:
    """The directory of all model data, relative to the base."""
    return f"{_prefix(namespace)}{DATA}"


def model_lock(namespace: Namespace, model: ModelRef) -> LockKey:
    """The lock of one model instance."""
    return LockKey(f"{_prefix(namespace)}{model_dir(model)}/{LOCK}")


def global_locks(namespace: Namespace) -> tuple[LockKey, ...]:
    """The global lock; namespaced stores have two generations of its key, taken oldest first."""
    if not namespace:
        return (LockKey(".datastore.lock"),)
    return (LockKey(f"{OLD_LOCKS}{namespace}{LOCK}"), LockKey(f"{namespace}/.datastore.lock"))
