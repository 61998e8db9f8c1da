"""A catalog row: one version as queries see it, and the identity of the file it was read from.

Owns: the columns, their order, and which record field each one answers.
Must not know: SQL, files, YAML.
"""

from dataclasses import dataclass
from typing import Final

from mire.model.artifact import Metadata, ModelRef
from mire.model.names import Namespace

COLUMNS: Final = (
    ("namespace", "TEXT"),
    ("model_type", "TEXT"),
    ("model_id", "TEXT"),
    ("name", "TEXT"),
    ("version", "INTEGER"),
    ("is_latest", "INTEGER"),
    ("id", "TEXT"),
    ("model_name", "TEXT"),
    ("spec_name", "TEXT"),
    ("data_type", "TEXT"),
    ("content_type", "TEXT"),
    ("lifetime", "TEXT"),
    ("owner_type", "TEXT"),
    ("streaming", "INTEGER"),
    ("size", "INTEGER"),
    ("created_at", "TEXT"),
    ("tags", "TEXT"),
    ("owner_ref", "TEXT"),
    ("workflow_id", "TEXT"),
    ("workflow_run_id", "TEXT"),
    ("workflow_name", "TEXT"),
    ("job_name", "TEXT"),
    ("step_name", "TEXT"),
    ("source", "TEXT"),
    ("checksum", "TEXT"),
    ("version_policy", "TEXT"),
    ("lifecycle", "TEXT"),
    ("renamed_to", "TEXT"),
    ("hydrated", "INTEGER"),
    ("file_mtime_ns", "INTEGER"),
    ("file_ctime_ns", "INTEGER"),
    ("file_size", "INTEGER"),
    ("file_inode", "INTEGER"),
)
NAMES: Final = tuple(name for name, _ in COLUMNS)
RowValues = tuple[str | int, ...]
"""The values of a row, in the order of `COLUMNS`."""


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What tells that a file is still the one that was read."""

    mtime_ns: int = 0
    ctime_ns: int = 0
    size_bytes: int = 0
    inode: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NameKey:
    """A data name as the catalog knows it."""

    namespace: Namespace
    model: ModelRef
    name: str


def row_of(
    key: NameKey, metadata: Metadata, file: FileIdentity, *, latest: int | None, is_hydrated: bool, tags: str
) -> RowValues:
    """The row of a version; `latest` is the name's newest one, `tags` the JSON text of its tags."""
    owner = metadata.owner
    return (
        key.namespace,
        key.model.model_type,
        key.model.model_id,
        key.name,
        metadata.version,
        int(metadata.version == latest),
        metadata.id,
        metadata.tags.get("modelName", ""),
        metadata.tags.get("specName", ""),
        metadata.tags.get("type", ""),
        metadata.content_type,
        metadata.lifetime,
        owner.owner_type,
        int(metadata.streaming),
        metadata.size_bytes or 0,
        metadata.created_at,
        tags,
        owner.owner_ref,
        owner.workflow_id or "",
        owner.workflow_run_id or "",
        owner.workflow_name or "",
        owner.job_name or "",
        owner.step_name or "",
        owner.source or "",
        metadata.checksum or "",
        str(metadata.version_policy),
        "deleted" if metadata.is_deleted else "active",
        metadata.renamed_to or "",
        int(is_hydrated),
        file.mtime_ns,
        file.ctime_ns,
        file.size_bytes,
        file.inode,
    )
