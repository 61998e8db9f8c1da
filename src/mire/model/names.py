"""Names that become path segments: model types and ids, data names, versions, namespaces.

Owns: the rule of each name. Text that means something is a NewType, made only by its `parse_` function.
Must not know: directories, files, encodings of documents.
Keeps: no parsed name can leave the directory it is joined to, on any system that shares the store.
"""

import re
from typing import Final, NewType

from mire.errors import InputError, shown

ModelType = NewType("ModelType", str)
ModelId = NewType("ModelId", str)
DataName = NewType("DataName", str)
MethodName = NewType("MethodName", str)
Namespace = NewType("Namespace", str)
RelPath = NewType("RelPath", str)
Version = NewType("Version", int)
Uuid = NewType("Uuid", str)

SOLO: Final = Namespace("")

VERSION_MAX: Final = 2**53 - 1
"""The reference reads numbers as IEEE doubles: above this they stop being exact."""

SEGMENT_BYTES_MAX: Final = 255
"""The longest file name that ext4, XFS, APFS, NTFS and NFS all accept."""

DATASTORE_SUBDIRS: Final = (
    "auto-definitions",
    "definitions-evaluated",
    "workflows-evaluated",
    "data",
    "outputs",
    "workflow-runs",
    "audit",
    "telemetry",
    "logs",
    "files",
)
ALWAYS_LOCAL_SUBDIRS: Final = (
    "secrets",
    "bundles",
    "vault-bundles",
    "driver-bundles",
    "report-bundles",
)

RESERVED_NAMESPACES: Final = frozenset(
    (
        *(*DATASTORE_SUBDIRS, *ALWAYS_LOCAL_SUBDIRS, "config"),
        *("webhook-bundles", "datastore-bundles", "audit-wal"),
        *("workflow-run-claims", "server-token-locks", "drain-waits"),
    )
)
"""What a tier has at its root, in any release: a namespace of such a name would be taken for it, and it for one."""

PRIVATE_PREFIX: Final = "_catalog.db"
"""Basenames starting so are excluded from sync by every client at every depth, so our own files use it."""

# What ECMAScript calls white space: the reference normalizes types with it, and Python's \s differs.
_JS_SPACE = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_JS_SPACE_RUN = re.compile(f"[{_JS_SPACE}]+")
_JS_TRIM = re.compile(f"^[{_JS_SPACE}]+|[{_JS_SPACE}]+$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_SLUG_MAX = 64
_UUID = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}"
    r"|0{8}-0{4}-0{4}-0{4}-0{12}|[fF]{8}-[fF]{4}-[fF]{4}-[fF]{4}-[fF]{12}"
)
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")


def _refuse(what: str, value: object, why: str) -> InputError:
    return InputError(f"{what} {shown(value)} {why}", kind="bad_name", value=shown(value))


def _parse_text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise _refuse(what, value, f"is a {type(value).__name__}: give text")
    if not _JS_TRIM.sub("", value):
        raise _refuse(what, value, "is empty: give a name")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _refuse(what, value, "is not valid UTF-8: use characters that can be encoded") from None
    if _CONTROL.search(value):
        raise _refuse(what, value, "has a control character: remove it")
    if "\\" in value:
        raise _refuse(what, value, "has a backslash: use '/' in types, and neither in other names")
    return value


def _parse_segment(what: str, value: object, *, reserved: tuple[str, ...] = ()) -> str:
    text = _parse_text(what, value)
    if ".." in text or "/" in text or text == ".":
        raise _refuse(what, text, "would leave its directory: it may not be '.' or hold '..' or '/'")
    lowered = text.casefold()
    if lowered in (".lock", ".namespace.json", *reserved) or lowered.startswith(PRIVATE_PREFIX):
        raise _refuse(what, text, "is reserved: the datastore keeps a file of that name there")
    if len(text.encode()) > SEGMENT_BYTES_MAX:
        raise _refuse(what, text, f"is longer than {SEGMENT_BYTES_MAX} bytes: shorten it")
    return text


def parse_model_type(value: object) -> ModelType:
    """Normalize a model type: `AWS::EC2::VPC` becomes `aws/ec2/vpc`."""
    text = _parse_text("model type", value)
    if any(part in (".", "..") for part in text.split("/")):
        raise _refuse("model type", text, "has a '.' or '..' segment: name the type itself")
    text = _JS_TRIM.sub("", text).lower().replace("::", "/")
    text = _JS_SPACE_RUN.sub("/", text).replace(".", "/")
    text = re.sub("/+", "/", text)
    text = text.removeprefix("/").removesuffix("/")
    if not text:
        raise _refuse("model type", value, "has no name left after normalization: give at least one word")
    for part in text.split("/"):
        _parse_segment("model type", part)
    return ModelType(text)


def parse_model_id(value: object) -> ModelId:
    """Check a model id (in the reference a UUID; any safe segment here)."""
    return ModelId(_parse_segment("model id", value))


def parse_data_name(value: object) -> DataName:
    """Check the name of a data item."""
    return DataName(_parse_segment("data name", value, reserved=("latest",)))


def parse_method_name(value: object) -> MethodName:
    """Check a method name, which is a directory below `outputs/`."""
    return MethodName(_parse_segment("method name", value))


def parse_uuid(value: object, what: str = "id") -> Uuid:
    """Check a UUID the way the reference's validator does (version and variant included)."""
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise _refuse(what, value, "is not a UUID: use a random (version 4) one")
    return Uuid(value)


def is_uuid(value: object) -> bool:
    """Whether `parse_uuid` would accept the value."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def parse_version(value: object) -> Version:
    """Check a version number."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= VERSION_MAX:
        raise _refuse("version", value, "is not a whole number from 1: give the number of a version")
    return Version(value)


def parse_namespace(value: object) -> Namespace:
    """Check a namespace slug; the empty text is solo mode."""
    if value == "":
        return SOLO
    text = _parse_text("namespace", value)
    if len(text) > _SLUG_MAX or not _SLUG.fullmatch(text):
        raise _refuse("namespace", text, "is not a slug: use 1-64 of a-z, 0-9 and inner '-'")
    if text in RESERVED_NAMESPACES:
        raise _refuse("namespace", text, "is the name of a datastore directory: choose another")
    return Namespace(text)


def is_namespace(name: str) -> bool:
    """Whether a name can be that of a namespace."""
    return len(name) <= _SLUG_MAX and _SLUG.fullmatch(name) is not None and name not in RESERVED_NAMESPACES


def parse_rel_path(value: object) -> RelPath:
    """Check an untrusted path inside the store: relative, `/`-separated, no way out."""
    text = _parse_text("path", value)
    if text.startswith("/") or _DRIVE.match(text):
        raise _refuse("path", text, "is absolute: give one inside the store")
    for part in text.split("/"):
        if part in ("", ".", ".."):
            raise _refuse("path", text, "has an empty, '.' or '..' segment")
        if len(part.encode()) > SEGMENT_BYTES_MAX:
            raise _refuse("path", text, f"has a segment longer than {SEGMENT_BYTES_MAX} bytes")
    return RelPath(text)
