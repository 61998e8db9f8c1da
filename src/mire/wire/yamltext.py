r"""YAML in the reference's dialect: read with its resolver, written so that no reader can misread a string.

Owns: which plain scalars are null, bool, int or float (the table of the JavaScript reader, not PyYAML's),
and the emitter that quotes every string.
Must not know: any schema.
Keeps: `decode_yaml(encode_yaml(x)) == x`, here and in the reference. PyYAML's own dumper would write the
text `7e10932` unquoted and its own loader would read `08.2026` as a number; both lose data between programs.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import BaseResolver

from mire.errors import FormatError, InputError, shown
from mire.wire.yamlplain import decode_plain
from mire.wire.yamlshape import DEPTH_MAX, Parser, check_shape

_INT = re.compile(
    r"[-+]?(?:0|0b[01_]*[01]|0x[0-9a-fA-F_]*[0-9a-fA-F]|0[0-7_]*[0-7]|[1-9](?:[0-9_]*[0-9])?"
    r"|[1-9][0-9_]*(?::[0-5]?[0-9])+)\Z"
)
_FLOAT = re.compile(
    r"(?:[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))(?<!_)\Z"
)
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_MERGE = re.compile(r"<<\Z")


class _Loader(Parser, SafeConstructor, BaseResolver):
    def __init__(self, stream: str) -> None:
        Parser.__init__(self, stream)
        SafeConstructor.__init__(self)
        BaseResolver.__init__(self)
        self._own: dict[int, set[int]] = {}

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        # Merging puts other mappings' pairs in front of a node's own; only the own ones may not repeat.
        self._own.setdefault(id(node), {id(key) for key, _ in node.value})
        super().flatten_mapping(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "expected a mapping", node.start_mark)
        self.flatten_mapping(node)
        result: dict[str, Any] = {}
        own: set[str] = set()
        for key_node, value_node in node.value:
            key = _key_text(self.construct_object(key_node, deep=True), key_node)
            if key in own:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {shown(key)} stands twice", key_node.start_mark
                )
            if id(key_node) in self._own[id(node)]:
                own.add(key)
            result[key] = self.construct_object(value_node, deep=deep)
        return result


def _key_text(key: object, node: yaml.Node) -> str:
    # The reference's keys are property names: whatever a plain key resolves to, it ends up as text.
    match key:
        case str():
            return key
        case None:
            return "null"
        case bool():
            return "true" if key else "false"
        case int() | float():
            return str(key)
        case _:
            raise yaml.constructor.ConstructorError(None, None, "a collection cannot be a key here", node.start_mark)


for _tag, _regexp, _first in (
    ("bool", _BOOL, list("tTfF")),
    ("int", _INT, list("-+0123456789")),
    ("float", _FLOAT, list("-+0123456789.")),
    ("merge", _MERGE, ["<"]),
    ("null", _NULL, ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _regexp, _first)

# No `!!binary`, `!!timestamp`, `!!set` and the like: the reference never writes them, and what they mean could
# not be written again.
_Loader.yaml_constructors = {
    tag: construct
    for tag, construct in SafeConstructor.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in ("null", "bool", "int", "float", "str", "seq", "map")
}
_Loader.yaml_constructors["tag:yaml.org,2002:merge"] = SafeConstructor.construct_yaml_str  # `<<` as a value


def decode_yaml(data: bytes, what: str = "document") -> Any:
    """The one document in `data`; `what` names it in errors."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{what} is not UTF-8: byte {error.start} is {shown(data[error.start : error.start + 1])}"
        ) from None
    plain = decode_plain(text)
    if plain is not None:
        return plain
    try:
        loader = _Loader(text)
        try:
            check_shape(text, what)
            return loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise FormatError(f"{what} is not valid YAML: {_one_line(error)}") from None
    except (ValueError, LookupError, RecursionError) as error:
        raise FormatError(f"{what} is not valid YAML: {error}") from None


def compose_yaml(text: str) -> yaml.Node | None:
    """The nodes of a document that `decode_yaml` could read, with their places in the text."""
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def decode_yaml_mapping(data: bytes, what: str = "document") -> dict[str, Any]:
    """The one document in `data`, which must be a mapping."""
    value = decode_yaml(data, what)
    if not isinstance(value, dict):
        raise FormatError(f"{what} is a {type(value).__name__}, not a mapping: {shown(value)}")
    return value


def _one_line(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or str(error)
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return " ".join(f"{problem}{where}".split())


# Characters that may stand inside quotes as they are, in YAML 1.1 and 1.2 alike: no controls, no line or
# paragraph separators, no byte order mark, no non-characters.
_PLAIN_INSIDE = re.compile("[ -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*")
_SAFE_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_WORD_VALUES = frozenset(("y", "yes", "on", "n", "no", "off", "true", "false", "null"))
_IMPLICIT_KEY_MAX = 1000


def encode_yaml(value: Mapping[str, Any], *, quote: str = "'") -> str:
    """A mapping as one document: two-space indent, every string value quoted with `quote` where it can be."""
    return "".join(f"{line}\n" for line in _lines(value, "", quote)) if value else "{}\n"


def _lines(value: Any, pad: str, quote: str) -> Iterator[str]:
    if len(pad) > 2 * (DEPTH_MAX - 2):
        raise InputError(f"the document is nested more than {DEPTH_MAX} levels deep: flatten it")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InputError(f"the key {shown(key)} is not text: use text keys")
            text = _key(key, quote)
            colon = f"{pad}? {text}\n{pad}:" if len(text) > _IMPLICIT_KEY_MAX else f"{pad}{text}:"
            if _is_block(item):
                yield colon
                yield from _lines(item, f"{pad}  ", quote)
            else:
                yield f"{colon} {_scalar(item, quote)}"
    else:
        for item in value:
            if _is_block(item):
                first, *rest = _lines(item, f"{pad}  ", quote)
                yield f"{pad}- {first[len(pad) + 2 :]}"
                yield from rest
            else:
                yield f"{pad}- {_scalar(item, quote)}"


def _is_block(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple)) and bool(value)


def _key(key: str, quote: str) -> str:
    if _SAFE_KEY.fullmatch(key) and key.lower() not in _WORD_VALUES:
        return key
    return _quoted(key, quote)


def _quoted(text: str, quote: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"text {shown(text)} is not valid UTF-8: use characters that can be encoded") from None
    if _PLAIN_INSIDE.fullmatch(text):
        return "'" + text.replace("'", "''") + "'" if quote == "'" else json.dumps(text, ensure_ascii=False)
    return "".join(['"', *map(_escaped, text), '"'])


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if _PLAIN_INSIDE.fullmatch(char):
        return char
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char) or f"\\u{ord(char):04x}"


def _scalar(value: Any, quote: str) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value, quote)
        case int():
            return str(value)
        case float():
            if value != value:  # noqa: PLR0124 - only NaN differs from itself
                return ".nan"
            return {"inf": ".inf", "-inf": "-.inf"}.get(repr(value)) or repr(value)
        case Mapping():
            return "{}"
        case list() | tuple():
            return "[]"
        case _:
            raise InputError(
                f"{shown(value)} is a {type(value).__name__}, which a document cannot hold:"
                " use text, numbers, true/false, null, lists and maps"
            )
