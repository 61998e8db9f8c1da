"""`metadata.yaml`: one version's metadata, in the reference's order and spelling.

Owns: the schema of core-layout §1.3.
Must not know: where the file is, or who may write it.
Keeps: a decoded document re-encodes to one the reference accepts, with equal values and no member lost.
"""

from unicodedata import normalize

from mire.errors import FormatError, InputError, shown
from mire.model.artifact import OWNER_TYPES, Metadata, Owner
from mire.model.instant import parse_instant
from mire.model.lifetime import parse_lifetime, parse_version_policy
from mire.model.names import DataName, parse_uuid, parse_version
from mire.wire.fields import Fields, flag, mapping, one_of, present, text, text_map, whole
from mire.wire.metadatafast import decode_usual
from mire.wire.yamltext import decode_yaml_mapping, encode_yaml

_WHAT = "metadata"


def decode_metadata(data: bytes) -> Metadata:
    """The metadata in `data`; a `FormatError` names the member that breaks the schema."""
    try:
        usual = decode_usual(data.decode())
    except UnicodeDecodeError:
        usual = None
    return _decode_any(data) if usual is None else usual


def _decode_any(data: bytes) -> Metadata:
    fields = Fields(decode_yaml_mapping(data, _WHAT), _WHAT)
    streaming = fields.maybe("streaming", flag)
    lifecycle = fields.maybe("lifecycle", one_of("active", "deleted"))
    return Metadata(
        id=fields.take("id", parse_uuid),
        name=fields.take("name", _name),
        version=fields.take("version", parse_version),
        content_type=fields.take("contentType", text),
        lifetime=fields.take("lifetime", parse_lifetime),
        version_policy=fields.take("garbageCollection", parse_version_policy),
        streaming=bool(streaming),
        tags=fields.take("tags", _tags),
        owner=_decode_owner(fields.take("ownerDefinition", mapping)),
        created_at=fields.take("createdAt", parse_instant),
        size_bytes=fields.maybe("size", whole),
        checksum=fields.maybe("checksum", text),
        is_deleted=lifecycle == "deleted",
        renamed_to=fields.maybe("renamedTo", _name),
        extra=fields.rest(),
    )


def encode_metadata(metadata: Metadata) -> bytes:
    """The document, every string quoted, members in the reference's order, unknown ones last."""
    return encode_yaml(metadata_document(metadata)).encode()


def metadata_document(metadata: Metadata) -> dict[str, object]:
    """The metadata under the names the document uses; also what `--json` shows."""
    owner = metadata.owner
    document = present(
        {
            "id": metadata.id,
            "name": metadata.name,
            "version": metadata.version,
            "contentType": metadata.content_type,
            "lifetime": metadata.lifetime,
            "garbageCollection": metadata.version_policy,
            "streaming": metadata.streaming,
            "tags": dict(metadata.tags),
            "ownerDefinition": {
                **present(
                    {
                        "definitionHash": owner.definition_hash,
                        "ownerType": owner.owner_type,
                        "ownerRef": owner.owner_ref,
                        "workflowId": owner.workflow_id,
                        "workflowRunId": owner.workflow_run_id,
                        "workflowName": owner.workflow_name,
                        "jobName": owner.job_name,
                        "stepName": owner.step_name,
                        "source": owner.source,
                    }
                ),
                **owner.extra,
            },
            "createdAt": metadata.created_at,
            "size": metadata.size_bytes,
            "checksum": metadata.checksum,
            "lifecycle": "deleted" if metadata.is_deleted else None,
            "renamedTo": metadata.renamed_to,
        }
    )
    return {**document, **metadata.extra}


def _decode_owner(document: object) -> Owner:
    fields = Fields(document, f"{_WHAT}: 'ownerDefinition'")
    return Owner(
        definition_hash=fields.maybe("definitionHash", text),
        owner_type=fields.take("ownerType", one_of(*OWNER_TYPES)),
        owner_ref=fields.take("ownerRef", text),
        workflow_id=fields.maybe("workflowId", parse_uuid),
        workflow_run_id=fields.maybe("workflowRunId", parse_uuid),
        workflow_name=fields.maybe("workflowName", text),
        job_name=fields.maybe("jobName", text),
        step_name=fields.maybe("stepName", text),
        source=fields.maybe("source", text),
        extra=fields.rest(),
    )


def _name(value: object) -> DataName:
    # The reference's rule, not ours: a name it allowed must stay readable even where we would not create it.
    name = text(value)
    if ".." in name or any(char in name for char in "/\\\0"):
        raise InputError(f"{shown(name)} would leave its directory")
    return DataName(name)


def _tags(value: object) -> dict[str, str]:
    tags = dict(text_map(value))
    if "type" not in tags:
        raise InputError(f"{shown(tags)} lacks the tag 'type'")
    return tags


def check_agrees(metadata: Metadata, name: DataName, version: int) -> None:
    """Metadata must describe the directory it stands in, else a copied or edited file passes for another."""
    if metadata.name == name and metadata.version == version:
        return
    # A disk may hand back another Unicode normalization of the name it was given.
    if normalize("NFC", metadata.name) != normalize("NFC", name) or metadata.version != version:
        raise FormatError(
            f"metadata describes {shown(metadata.name)} version {metadata.version},"
            f" but stands in the directory of {shown(name)} version {version}",
            kind="damaged",
        )
