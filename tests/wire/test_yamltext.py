"""The YAML dialect: plain scalars as the reference reads them, text that nobody can misread."""

import math
import re
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from mire.errors import FormatError, InputError
from mire.testing.strategies import TRAPS, documents, long_keys, texts
from mire.wire.yamlshape import DEPTH_MAX
from mire.wire.yamltext import compose_yaml, decode_yaml, decode_yaml_mapping, encode_yaml

PLAIN_SCALARS: list[tuple[str, Any]] = [
    # null
    ("", None),
    ("~", None),
    ("null", None),
    ("Null", None),
    ("NULL", None),
    ("nUll", "nUll"),
    # bool
    ("true", True),
    ("True", True),
    ("TRUE", True),
    ("false", False),
    ("False", False),
    ("FALSE", False),
    ("tRue", "tRue"),
    *((word, word) for word in ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON")),
    *((word, word) for word in ("n", "N", "no", "No", "NO", "off", "Off", "OFF")),
    # int
    ("0", 0),
    ("-0", 0),
    ("+12", 12),
    ("-12", -12),
    ("1_000", 1000),
    ("1__0", 10),
    ("0x1F", 31),
    ("-0x1f", -31),
    ("0x_1", 1),
    ("0b11", 3),
    ("0b1_1", 3),
    ("017", 15),
    ("0_7", 7),
    ("00", 0),
    ("1:30", 90),
    ("-1:30", -90),
    ("190:20:30", 685230),
    ("9007199254740991", 9007199254740991),
    # texts that look like numbers, and that PyYAML's own loader reads as numbers or refuses
    ("01.02", "01.02"),
    ("08.2026", "08.2026"),
    ("08", "08"),
    ("1_", "1_"),
    ("0_", "0_"),
    ("0x_", "0x_"),
    ("0x", "0x"),
    ("0b", "0b"),
    ("0b2", "0b2"),
    ("0xg", "0xg"),
    ("0o17", "0o17"),
    ("1:60", "1:60"),
    ("0:30", "0:30"),
    ("1:30.5", "1:30.5"),
    ("_1", "_1"),
    ("+", "+"),
    ("1e", "1e"),
    ("e5", "e5"),
    ("-.5", "-.5"),
    ("+.5", "+.5"),
    ("-.nan", "-.nan"),
    ("._", "._"),
    ("1.5_", "1.5_"),
    ("1.2.3", "1.2.3"),
    ("2026.08.01.1", "2026.08.01.1"),
    # float, also without a dot
    ("7e10932", math.inf),
    ("1e5", 1e5),
    ("1E5", 1e5),
    ("12e03", 12e3),
    ("1e-7", 1e-7),
    ("1.e5", 1e5),
    ("1.", 1.0),
    ("1.5", 1.5),
    ("-1.5e+3", -1500.0),
    ("0.1", 0.1),
    (".5", 0.5),
    ("._5", 0.5),
    ("1_0.5_0", 10.5),
    (".inf", math.inf),
    (".Inf", math.inf),
    (".INF", math.inf),
    ("+.inf", math.inf),
    ("-.inf", -math.inf),
    (".iNf", ".iNf"),
    # dates stay text, so that a document read and written again is equal
    ("2026-05-17", "2026-05-17"),
    ("2026-05-17T08:30:02.417Z", "2026-05-17T08:30:02.417Z"),
    ("2026-05-17 08:30:02", "2026-05-17 08:30:02"),
    # the rest
    ("=", "="),
    ("<<", "<<"),
    ("a b", "a b"),
    ("5b0c8a52", "5b0c8a52"),
]


@pytest.mark.parametrize(("plain", "value"), PLAIN_SCALARS, ids=repr)
def test_plain_scalars_are_what_the_reference_makes_of_them(plain: str, value: object) -> None:
    """A plain scalar has the type and the value of the JavaScript reader, in a map and in a list."""
    document = decode_yaml(f"key: {plain}\nlist:\n  - {plain}\n".encode())
    for read in (document["key"], *document["list"]):
        assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize("plain", [".nan", ".NaN", ".NAN"])
def test_nan_is_no_number_but_a_float(plain: str) -> None:
    """The three spellings of NaN are read as such."""
    assert math.isnan(decode_yaml(f"key: {plain}".encode())["key"])


@pytest.mark.parametrize(
    ("plain", "key"),
    [("1", "1"), ("0x10", "16"), ("true", "true"), ("False", "false"), ("~", "null"), ("1.5", "1.5"), ("yes", "yes")],
)
def test_keys_are_text(plain: str, key: str) -> None:
    """Whatever a plain key resolves to, it ends up as the text a JavaScript property would have."""
    assert decode_yaml(f"{plain}: x\n".encode()) == {key: "x"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 'it''s'", "it's"),
        ('a: "\\u00e9\\n\\t\\x41"', "é\n\tA"),
        ("a: |\n  one\n   two\n", "one\n two\n"),
        ("a: |-\n  one\n  two\n", "one\ntwo"),
        ("a: >-\n  one\n  two\n\n  three\n", "one two\nthree"),
        ("a: [1, 'x', {b: ~}]", [1, "x", {"b": None}]),
        ("a:\n  - 1\n  - - 2\n", [1, [2]]),
        ("a:\n- 1\n", [1]),
        ("\ufeffa: 1\n", 1),
        ("a: 1\r\n", 1),
        ("# c\n---\na: 1 # d\n...\n", 1),
        ("a: !!str 12", "12"),
        ("a: !!int '12'", 12),
        ("a: &x {b: 1}\n", {"b": 1}),
    ],
)
def test_the_forms_the_reference_writes_are_read(text: str, value: object) -> None:
    """Quoted, literal, folded, flow and block forms mean what they mean in YAML."""
    assert decode_yaml(text.encode())["a"] == value


def test_an_empty_document_is_null() -> None:
    """A file with nothing in it, or only comments, is a document without a value."""
    assert decode_yaml(b"") is None
    assert decode_yaml(b"# nothing\n") is None


def test_merged_keys_give_way_to_own_ones() -> None:
    """`<<` brings in the pairs of another map, and a key that stands here wins, before or after it."""
    text = b"base: &b {k: 1, j: 1}\nafter: {<<: *b, k: 2}\nbefore: {k: 3, <<: *b}\nlist: {<<: [*b, {k: 4, l: 4}]}\n"
    document = decode_yaml(text)
    assert document["after"] == {"k": 2, "j": 1}
    assert document["before"] == {"k": 3, "j": 1}
    assert document["list"] == {"k": 1, "j": 1, "l": 4}


def test_a_map_that_was_merged_before_it_was_built_is_itself() -> None:
    """Merging a map that overrides what it merges itself does not make its keys repeat."""
    text = b"a: &a {k: 1}\nb: {c: {d: &d {<<: *a, k: 2}}}\ne: {<<: *d, k: 3}\n"
    assert decode_yaml(text) == {"a": {"k": 1}, "b": {"c": {"d": {"k": 2}}}, "e": {"k": 3}}


@pytest.mark.parametrize(
    "data",
    [
        b"a: 1\na: 2\n",
        b"a: {b: 1, b: 2}\n",
        b"1: x\n'1': y\n",
        b"true: x\n'true': y\n",
        b"base: &b {k: 1}\na: {<<: *b, k: 2, k: 3}\n",
        b"a: \xff\n",
        b"a: \xed\xa0\x80\n",
        b"a: 1\n---\nb: 2\n",
        b"a: [1\n",
        b"a: 'x\n",
        b"a: b: c\n",
        b"a:\n\tb: 1\n",
        b"a: \x00\n",
        b"a: \x1b\n",
        b"? [a]\n: b\n",
        b"? {a: 1}\n: b\n",
        b"a: *nobody\n",
        b"a: @x\n",
        b"a: `x\n",
        b"%YAML 3.0\n---\na: 1\n",
        b"a: !!python/object/apply:os.system ['true']\n",
        b"a: !local x\n",
        b"a: !!binary aGk=\n",
        b"a: !!timestamp 2026-05-17\n",
        b"a: !!timestamp x\n",
        b"a: !!set {b}\n",
        b"a: !!omap [b: 1]\n",
        b"a: !!bool x\n",
        b"a: !!int ''\n",
        b"a: !!int x\n",
        b"a: !!float ''\n",
        b"a: !!map [b]\n",
        b"a: !!seq {b: 1}\n",
        b"a: {<<: 3}\n",
        b"a: " + b"1" * 5000 + b"\n",
    ],
    ids=lambda data: ascii(data)[:40],
)
def test_what_is_no_document_is_refused_by_name(data: bytes) -> None:
    """Duplicate keys, bad bytes, bad syntax, strange tags and second documents are format errors of one line."""
    with pytest.raises(FormatError) as caught:
        decode_yaml(data, "thing.yaml")
    assert caught.value.message.startswith("thing.yaml ")
    assert caught.value.message.isprintable()


def test_a_duplicate_key_is_named_with_its_place() -> None:
    """The error says which key stands twice, and where."""
    with pytest.raises(FormatError, match="the key 'b' stands twice at line 3, column 3"):
        decode_yaml(b"a:\n  b: 1\n  b: 2\n")


def test_bad_utf8_is_named_with_its_place() -> None:
    """The error says which byte is not UTF-8."""
    with pytest.raises(FormatError, match=re.escape(r"byte 3 is b'\xff'")):
        decode_yaml(b"a: \xff")


@pytest.mark.parametrize("data", [b"", b"text", b"[1]", b"3", b"~"])
def test_other_documents_are_no_mappings(data: bytes) -> None:
    """Where a mapping is wanted, anything else is refused."""
    with pytest.raises(FormatError, match="not a mapping"):
        decode_yaml_mapping(data)


@given(
    st.binary()
    | st.text().map(str.encode)
    | st.lists(st.sampled_from(TRAPS)).map(lambda parts: "\n".join(parts).encode())
)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """No input makes the reader fail in another way than by a format error."""
    try:
        decode_yaml(data)
    except FormatError as error:
        message = error.message
    else:
        message = "read"
    assert message.isprintable()


NASTY = {trap: trap for trap in TRAPS} | {f"x{trap}": [trap, {trap: trap}] for trap in TRAPS}
SHAPES = {
    "empty map": {},
    "empty list": [],
    "maps": [{}, {"a": []}, [[], [{}]], [[1, 2], [3]]],
    "floats": [0.0, -0.0, 1.0, 1e16, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, math.inf, -math.inf],
    "long": "word " * 100,
    "k" * 2000: {"k" * 1025: [{"k" * 1025: "v", "b": 2}]},
}


@given(documents(), st.sampled_from(["'", '"']))
@example(NASTY, "'")
@example(NASTY, '"')
@example(SHAPES, "'")
@example({}, "'")
def test_what_is_written_reads_back_equal(document: dict[str, Any], quote: str) -> None:
    """A document survives writing and reading: values, types, order of keys."""
    read = decode_yaml(encode_yaml(document, quote=quote).encode())
    assert read == document
    assert repr(read) == repr(document)


@given(texts() | long_keys())
def test_an_independent_reader_sees_the_same_text(text: str) -> None:
    """PyYAML's own loader, whose idea of numbers and booleans differs, reads our text as that text."""
    for quote in ("'", '"'):
        written = encode_yaml({"value": text, text: "key", "list": [text]}, quote=quote)
        assert yaml.safe_load(written) == {"value": text, text: "key", "list": [text]}


@pytest.mark.parametrize("word", ["y", "yes", "on", "n", "no", "off", "true", "false", "null", "~", "", "<<", "=", "1"])
def test_keys_that_mean_something_are_quoted(word: str) -> None:
    """A key that some reader takes for a value or for a merge is that text for everybody, in any case."""
    for key in (word, word.upper(), word.capitalize()):
        written = encode_yaml({key: {"x": 1}})
        assert yaml.safe_load(written) == decode_yaml(written.encode()) == {key: {"x": 1}}


@given(documents())
def test_every_text_is_quoted(document: dict[str, Any]) -> None:
    """No text value is left to a reader's resolver: each stands in quotes."""
    for event in yaml.parse(encode_yaml({"texts": _texts_of(document)}), Loader=yaml.SafeLoader):
        if isinstance(event, yaml.ScalarEvent) and event.value != "texts":
            assert event.style in ("'", '"')


def _texts_of(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for item in value.items() for text in _texts_of(list(item))]
        case list():
            return [text for item in value for text in _texts_of(item)]
        case _:
            return []


@given(documents())
def test_a_document_is_lines_of_printable_characters(document: dict[str, Any]) -> None:
    """What is written holds no control character but the newline, and ends with one."""
    text = encode_yaml(document)
    assert text.endswith("\n")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", text)


def test_the_layout_is_the_reference_s() -> None:
    """Two spaces a level, lists below their key one level in, plain words as keys, the style of quotes as asked."""
    document = {"a": {"b": [1, {"c": "x", "d": None}, ["it's"]]}, "yes": True, "e f": []}
    assert encode_yaml(document) == (
        "a:\n  b:\n    - 1\n    - c: 'x'\n      d: null\n    - - 'it''s'\n'yes': true\n'e f': []\n"
    )
    assert encode_yaml({"a": 'say "x"'}, quote='"') == 'a: "say \\"x\\""\n'
    assert encode_yaml({"a": "x\ny\tz\r\x00\\"}) == 'a: "x\\ny\\tz\\r\\u0000\\\\"\n'


def test_nan_reads_back() -> None:
    """NaN, which equals nothing, is still NaN after a write and a read."""
    assert math.isnan(decode_yaml(encode_yaml({"a": math.nan}).encode())["a"])


def test_tuples_are_lists() -> None:
    """A tuple is written as a list."""
    assert decode_yaml(encode_yaml({"a": (1, ("x",)), "b": ()}).encode()) == {"a": [1, ["x"]], "b": []}


@pytest.mark.parametrize(
    "value", [object, b"bytes", {1}, 1 + 2j, "\ud800", {1: "x"}, {None: 1}, {"\udcff": 1}], ids=ascii
)
def test_what_a_document_cannot_hold_is_refused(value: object) -> None:
    """Values without a form in YAML, and text that cannot be encoded, are refused before anything is written."""
    for document in ({"a": value}, {"a": [value]}):
        with pytest.raises(InputError) as caught:
            encode_yaml(document)
        assert caught.value.message.isprintable()


def nested(levels: int, *, kind: type) -> Any:
    """A document of so many levels, of lists or of maps."""
    inner: Any = kind()
    for _ in range(levels - 2):
        inner = [inner] if kind is list else {"a": inner}
    return {"root": inner}


@pytest.mark.parametrize("kind", [list, dict])
def test_the_deepest_document_that_is_written_can_be_read(kind: type) -> None:
    """What the writer accepts the reader accepts; one level more is refused by the writer already."""
    document = nested(DEPTH_MAX, kind=kind)
    assert decode_yaml(encode_yaml(document).encode()) == document
    with pytest.raises(InputError, match="nested"):
        encode_yaml(nested(DEPTH_MAX + 1, kind=kind))


def test_a_document_that_holds_itself_is_refused() -> None:
    """A cycle is too deep, not the end of the program."""
    document: dict[str, Any] = {}
    document["self"] = document
    with pytest.raises(InputError, match="nested"):
        encode_yaml(document)


def test_places_are_told() -> None:
    """Nodes say on which line they begin, so that a file can be changed in place."""
    root = compose_yaml("# c\na: 1\nb:\n  c: 2\n")
    assert isinstance(root, yaml.MappingNode)
    assert [(key.value, key.start_mark.line) for key, _ in root.value] == [("a", 1), ("b", 2)]
    assert compose_yaml("# c\n") is None
