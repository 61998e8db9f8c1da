"""The manifest of a namespace, `<namespace>/.namespace.json`: which repository registered it.

Owns: its key, members and order.
Must not know: when a claim is a conflict.
Keeps: a manifest that is not understood is an error, never "not registered".
"""

from typing import Final

from mire.errors import shown
from mire.model.manifest import Manifest
from mire.model.names import Namespace
from mire.wire.fields import Fields, text
from mire.wire.jsontext import decode_json, encode_indented

MANIFEST: Final = ".namespace.json"


def manifest_key(namespace: Namespace) -> str:
    """Where the manifest is kept; only namespaces have one."""
    return f"{namespace}/{MANIFEST}"


def decode_manifest(data: bytes, key: str) -> Manifest:
    """The claim; a `FormatError` names the key."""
    what = f"namespace manifest {shown(key)}"
    fields = Fields(decode_json(data, what), what)
    return Manifest(
        namespace=fields.take("namespace", text),
        repo_id=fields.take("repoId", text),
        registered_at=fields.take("registeredAt", text),
        extra=fields.rest(),
    )


def encode_manifest(manifest: Manifest) -> bytes:
    """The object in a bucket, as the extensions of the reference write it: no newline at the end."""
    known = {
        "namespace": manifest.namespace,
        "repoId": manifest.repo_id,
        "registeredAt": manifest.registered_at,
    }
    return encode_indented({**known, **manifest.extra})


def encode_manifest_file(manifest: Manifest) -> bytes:
    """The file in a cache or a shared directory, as the reference itself writes it: with a newline."""
    return encode_manifest(manifest) + b"\n"
