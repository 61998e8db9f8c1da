"""Metadata in the one form that both programs write nearly always, taken apart by a single expression.

Owns: the members in the reference's order, each as plain or quoted text that cannot mean anything else.
Must not know: what to do with a document in any other form; it declines, and the full reader decides.
Keeps: what it takes, the full reader takes with the same result (a property test compares them).
"""

import re
from functools import lru_cache

from mire.errors import InputError
from mire.model.artifact import Metadata, Owner
from mire.model.instant import parse_instant
from mire.model.lifetime import parse_lifetime, parse_version_policy
from mire.model.names import DataName, Uuid, Version
from mire.wire.yamlplain import decode_plain

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
# A word that starts with a letter is text, quoted or not, unless it is one of three.
_WORD = r"(?!(?i:true|false|null)\b)[A-Za-z][A-Za-z0-9_-]*"
_REF = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
TXN = "sparkTxn"
"""The member that says which row of which transaction a version is."""
_AGE = r"[0-9]{1,9}(?:mo|y|h|m|d|w)"


def _either(pattern: str, name: str) -> str:
    """The pattern plain or in single quotes, as one group."""
    return rf"(?P<q_{name}>'?)(?P<{name}>{pattern})(?P=q_{name})"


_FORM = re.compile(
    rf"id: {_either(_UUID, 'id')}\n"
    rf"name: {_either(_WORD, 'name')}\n"
    r"version: (?P<version>[1-9][0-9]{0,14})\n"
    rf"contentType: {_either(r'[a-z]+/[a-z0-9.+-]+', 'content_type')}\n"
    rf"lifetime: {_either(rf'infinite|ephemeral|job|workflow|{_AGE}', 'lifetime')}\n"
    rf"garbageCollection: (?:(?P<count>[1-9][0-9]{{0,14}})|'(?P<age>{_AGE})')\n"
    r"streaming: (?P<streaming>true|false)\n"
    r"(?P<tags>tags:\n(?:  [^\n]+\n)+)"
    r"ownerDefinition:\n"
    r"(?:  definitionHash: '(?P<hash>[A-Za-z0-9]+)'\n)?"
    rf"  ownerType: {_either('model-method|workflow-step|manual', 'owner_type')}\n"
    rf"  ownerRef: '(?P<owner_ref>{_REF})'\n"
    r"createdAt: '(?P<created_at>[0-9T:.Z-]{16,40})'\n"
    r"size: (?P<size>0|[1-9][0-9]{0,14})\n"
    r"(?:checksum: '(?P<checksum>[0-9a-f]{64})'\n)?"
    # The one member of ours that the reference does not know.
    rf"(?:{TXN}: '(?P<txn>[A-Za-z0-9_.:-]+)'\n)?"
)

# A line of its own: a short word, and printable characters in quotes, none of them doubled, or another word.
_TAG = re.compile(rf"^  ((?=.{{1,99}}:){_WORD}): ('[ -&(-~]*+'|{_WORD})$", re.MULTILINE)

_MEMBERS = ("tags", "id", "name", "version", "content_type", "lifetime", "count", "age", "streaming")
_MORE_MEMBERS = ("hash", "owner_type", "owner_ref", "created_at", "size", "checksum", "txn")


def decode_usual(text: str) -> Metadata | None:
    """The metadata in `text`, or None when it takes the full reader."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    (tag_lines, data_id, name, version, content_type, lifetime, count, age, streaming) = match.group(*_MEMBERS)
    tags = _decode_tags(tag_lines)
    if tags is None:
        return None
    definition_hash, owner_type, owner_ref, created_at, size, checksum, txn = match.group(*_MORE_MEMBERS)
    try:
        return Metadata(
            id=Uuid(data_id),
            name=DataName(name),
            version=Version(int(version)),
            content_type=content_type,
            lifetime=parse_lifetime(lifetime),
            version_policy=parse_version_policy(age or int(count)),
            streaming=streaming == "true",
            tags=tags,
            owner=Owner(owner_type=owner_type, owner_ref=owner_ref, definition_hash=definition_hash),
            created_at=parse_instant(created_at),
            size_bytes=int(size),
            checksum=checksum,
            extra={} if txn is None else {TXN: txn},
        )
    except InputError:
        return None


def _decode_tags(text: str) -> dict[str, str] | None:
    """The tags in their lines."""
    found = _TAG.findall(text)
    tags = {key: value[1:-1] if value[0] == "'" else value for key, value in found}
    if not len(tags) == len(found) == text.count("\n") - 1:
        # A line in another form, or a key that comes twice.
        return _decode_any_tags(text)
    return tags if "type" in tags else None


@lru_cache(maxsize=1024)
def _any_tags(text: str) -> tuple[tuple[str, str], ...] | None:
    """The tags in lines of any plain form; the versions of a name nearly always share them."""
    tags = (decode_plain(text) or {}).get("tags")
    if not isinstance(tags, dict) or "type" not in tags or not all(type(value) is str for value in tags.values()):
        return None
    return tuple(tags.items())


def _decode_any_tags(text: str) -> dict[str, str] | None:
    tags = _any_tags(text)
    return None if tags is None else dict(tags)
