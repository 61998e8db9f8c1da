"""The fields of a record as predicates name them: their types, and the columns that keep them.

Owns: the two tables.
Must not know: CEL, SQL.
Keeps: a field without a column is one that needs content.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

Type: TypeAlias = str
"""`string`, `int`, `bool`, `dyn` and so on as in CEL; `tags` is a map of text to text."""

FIELDS: Final[Mapping[str, Type]] = {
    "id": "string",
    "name": "string",
    "version": "int",
    "isLatest": "bool",
    "createdAt": "string",
    "attributes": "dyn",
    "tags": "tags",
    "modelName": "string",
    "modelType": "string",
    "modelId": "string",
    "specName": "string",
    "dataType": "string",
    "contentType": "string",
    "lifetime": "string",
    "ownerType": "string",
    "streaming": "bool",
    "size": "int",
    "content": "dyn",
    "ownerRef": "string",
    "workflowRunId": "string",
    "workflowName": "string",
    "jobName": "string",
    "stepName": "string",
    "source": "string",
    "ns": "string",
    "checksum": "string",
    "lifecycle": "string",
}
COLUMNS: Final[Mapping[str, str]] = {
    "id": "id",
    "name": "name",
    "version": "version",
    "isLatest": "is_latest",
    "createdAt": "created_at",
    "tags": "tags",
    "modelName": "model_name",
    "modelType": "model_type",
    "modelId": "model_id",
    "specName": "spec_name",
    "dataType": "data_type",
    "contentType": "content_type",
    "lifetime": "lifetime",
    "ownerType": "owner_type",
    "streaming": "streaming",
    "size": "size",
    "ownerRef": "owner_ref",
    "workflowRunId": "workflow_run_id",
    "workflowName": "workflow_name",
    "jobName": "job_name",
    "stepName": "step_name",
    "source": "source",
    "ns": "namespace",
    "checksum": "checksum",
    "lifecycle": "lifecycle",
}
"""Field of a record → column of the table. `attributes` and `content` have none."""
