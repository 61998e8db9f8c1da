"""The content of a record, as predicates and selections see it: `attributes` and `content`.

Owns: what of a version's bytes a record shows, and reading it where it is ours.
Must not know: predicates, the catalog, other namespaces.
"""

import json
from typing import Any

from mire.edge import files
from mire.errors import MireError
from mire.flow.datastore import Datastore
from mire.flow.read import get
from mire.model.artifact import ModelRef
from mire.model.names import DataName, ModelId, ModelType, RelPath
from mire.wire.layout import RAW, version_dir

Record = dict[str, Any]

NOTHING = {"attributes": {}, "content": ""}
"""What is shown of bytes that are no text."""
NOT_HERE = {"attributes": None, "content": None}
"""What is shown of content that is not to be brought here."""

_JSON = "application/json"
_TEXT_TYPES = (_JSON, "application/yaml", "application/x-yaml")


def is_text(record: Record) -> bool:
    """Whether the content of a record is shown at all."""
    kind = str(record["contentType"])
    return kind.startswith("text/") or kind in _TEXT_TYPES


def model_of(record: Record) -> ModelRef:
    """The model a record is of."""
    return ModelRef(model_type=ModelType(record["modelType"]), model_id=ModelId(record["modelId"]))


def directory_of(record: Record) -> RelPath:
    """The directory of a record's version."""
    return version_dir(model_of(record), DataName(record["name"]), record["version"])


def content_path(record: Record) -> RelPath:
    """Where a record's content is, in its namespace."""
    return RelPath(f"{directory_of(record)}/{RAW}")


def own_content(ds: Datastore, record: Record, *, hydrate: bool) -> dict[str, Any]:
    """What a record of ours shows: parsed JSON, text, or empty; null when it is not to be brought."""
    if not is_text(record):
        return NOTHING
    try:
        artifact = get(ds, model_of(record), DataName(record["name"]), record["version"])
        if not hydrate and not files.is_file(artifact.path):
            return NOT_HERE
        text = artifact.text()
    except MireError as error:
        if error.kind == "not_text":
            return NOTHING
        raise
    return shown_text(record, text)


def shown_text(record: Record, text: str) -> dict[str, Any]:
    """`attributes` and `content` of a record from its text."""
    if record["contentType"] != _JSON:
        return {"attributes": {}, "content": text}
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return {"attributes": {}, "content": text}
    return {"attributes": parsed if isinstance(parsed, dict) else {}, "content": parsed}
