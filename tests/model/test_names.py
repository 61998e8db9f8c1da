"""Names: what each rule accepts, what it refuses, and that no accepted name leaves its directory."""

import posixpath
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import InputError
from mire.model.names import (
    ALWAYS_LOCAL_SUBDIRS,
    DATASTORE_SUBDIRS,
    SEGMENT_BYTES_MAX,
    SOLO,
    VERSION_MAX,
    is_uuid,
    parse_data_name,
    parse_method_name,
    parse_model_id,
    parse_model_type,
    parse_namespace,
    parse_rel_path,
    parse_uuid,
    parse_version,
)
from mire.testing.strategies import TRAPS, data_names, model_ids, type_texts, uuids

Parse = Callable[[object], object]
SEGMENT_PARSERS: list[Parse] = [parse_data_name, parse_model_id, parse_method_name]
PARSERS: list[Parse] = [*SEGMENT_PARSERS, parse_model_type, parse_rel_path]

NEVER_NAMES = [
    "",
    " ",
    "\u00a0\ufeff\u3000",
    "..",
    ".",
    "../x",
    "a/../b",
    "x/..",
    "/..",
    "nul\0byte",
    "line\nbreak",
    "\x7f",
    "back\\slash",
    "..\\x",
    "\ud800",
    "ok\udcff",
    None,
    7,
    1.5,
    True,
    b"bytes",
    ["list"],
    {"a": 1},
]
NEVER_SEGMENTS = [
    "a/b",
    "/",
    "a..b",
    ".lock",
    ".LOCK",
    ".Lock",
    ".namespace.json",
    "_catalog.db",
    "_catalog.db-wal",
    "_CATALOG.DB-x",
    "é" * 128,
    "x" * 256,
]


def test_the_directories_are_those_of_the_format() -> None:
    """Ten directories make the datastore, five are always local, and versions are exact in a double."""
    assert " ".join(DATASTORE_SUBDIRS) == (
        "auto-definitions definitions-evaluated workflows-evaluated data outputs"
        " workflow-runs audit telemetry logs files"
    )
    assert " ".join(ALWAYS_LOCAL_SUBDIRS) == "secrets bundles vault-bundles driver-bundles report-bundles"
    assert VERSION_MAX == 9_007_199_254_740_991


def refusal(parse: Parse, value: object) -> InputError:
    """The error with which a parser refuses a value."""
    with pytest.raises(InputError) as caught:
        parse(value)
    return caught.value


@pytest.mark.parametrize("value", NEVER_NAMES, ids=ascii)
@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
def test_bad_names_are_refused_in_one_line_that_shows_them(parse: Parse, value: object) -> None:
    """A value that is no name is refused with one printable line that shows it."""
    error = refusal(parse, value)
    assert error.message.isprintable()
    shown = ascii(value)[1:-1] if isinstance(value, str) else ascii(value)
    assert shown in error.message.encode("ascii", "backslashreplace").decode()


@pytest.mark.parametrize("value", NEVER_SEGMENTS, ids=lambda value: ascii(value)[:20])
@pytest.mark.parametrize("parse", SEGMENT_PARSERS, ids=lambda parse: parse.__name__)
def test_reserved_long_and_nested_segments_are_refused(parse: Parse, value: str) -> None:
    """A name of one directory is never two, never one of the store's own files, and never too long for a disk."""
    assert refusal(parse, value).message.isprintable()


@pytest.mark.parametrize("value", ["latest", "LATEST", "Latest", "lAtEsT"])
def test_latest_is_no_data_name_in_any_case(value: str) -> None:
    """`latest` is the store's marker, whatever the case; a model or a method may be called so."""
    refusal(parse_data_name, value)
    assert parse_model_id(value) == value
    assert parse_method_name(value) == value


@pytest.mark.parametrize("value", ["x" * SEGMENT_BYTES_MAX, "é" * 127 + "x", "é" * 127])
def test_names_up_to_255_bytes_are_accepted(value: str) -> None:
    """The limit counts bytes of UTF-8, and a name of exactly that many is one."""
    assert parse_data_name(value) == value
    refusal(parse_data_name, f"{value}xx")


@pytest.mark.parametrize(
    "value",
    ["result", "100%-done", "a%20b", "a+b&c=d", "rack 7", ".hidden", "12", "漢字", "\U0001f600", "latest.1", "-x"],
)
def test_ordinary_and_odd_data_names_are_kept_as_they_are(value: str) -> None:
    """A data name is not normalized, folded or escaped."""
    assert parse_data_name(value) == value


@pytest.mark.parametrize(
    ("written", "normalized"),
    [
        ("Acme::Net::Router", "acme/net/router"),
        ("@Acme/Tools.Scan Now", "@acme/tools/scan/now"),
        ("AWS::EC2::VPC", "aws/ec2/vpc"),
        ("docker", "docker"),
        ("  command/shell  ", "command/shell"),
        ("/a//b/", "a/b"),
        ("a..b", "a/b"),
        ("a:b", "a:b"),
        ("a:::b", "a/:b"),
        ("x-y_z", "x-y_z"),
        ("a\u00a0\u2003b", "a/b"),
        ("\ufeffa\u3000", "a"),
        ("a\u200bb", "a\u200bb"),
        ("ÅRHUS", "århus"),
    ],
)
def test_model_types_are_normalized(written: str, normalized: str) -> None:
    """A type becomes lower-case segments, with the reference's idea of white space."""
    assert parse_model_type(written) == normalized


@pytest.mark.parametrize("value", ["::", "/", " . ", "...", "a/./b", "./a", "a/" + "x" * 256])
def test_types_without_a_name_or_with_a_way_out_are_refused(value: str) -> None:
    """A type that normalizes to nothing, has a dot segment or is too long is refused."""
    assert refusal(parse_model_type, value).message.isprintable()


@given(type_texts())
def test_normalizing_a_type_twice_changes_nothing(written: str) -> None:
    """What was normalized is normal."""
    once = parse_model_type(written)
    assert parse_model_type(once) == once


def is_inside(name: str) -> bool:
    """Whether a name joined to a directory stays below it, by the rules of POSIX and of Windows."""
    posix = posixpath.normpath(posixpath.join("/base", name))
    windows = posixpath.normpath(posixpath.join("/base", name.replace("\\", "/")))
    return all(path.startswith("/base/") for path in (posix, windows)) and "\0" not in name


@given(st.text() | st.sampled_from(TRAPS) | st.lists(st.sampled_from(["..", ".", "/", "\\", "a", "\0"])).map("".join))
def test_whatever_is_accepted_stays_in_its_directory(text: str) -> None:
    """No text at all passes a parser and then leads out of the directory it is joined to."""
    for parse in PARSERS:
        try:
            name = parse(text)
        except InputError:
            continue
        assert isinstance(name, str)
        assert is_inside(name)
        assert len(max(name.split("/"), key=lambda part: len(part.encode())).encode()) <= SEGMENT_BYTES_MAX


@given(data_names(), model_ids())
def test_segments_are_one_level(name: str, model_id: str) -> None:
    """A parsed name is one directory below another, never more or less."""
    for segment in (name, model_id):
        assert posixpath.dirname(posixpath.normpath(f"/base/{segment}")) == "/base"


@pytest.mark.parametrize("value", ["a", "0", "greenhouse", "a-b", "a--b", "x" * 64, "datax"])
def test_slugs_are_namespaces(value: str) -> None:
    """A namespace is a slug of 1 to 64 characters."""
    assert parse_namespace(value) == value


def test_the_empty_namespace_is_solo() -> None:
    """No namespace is solo mode, not an error."""
    assert parse_namespace("") == SOLO


@pytest.mark.parametrize(
    "value",
    [
        "-a",
        "a-",
        "-",
        "A",
        "a_b",
        "a.b",
        "a/b",
        "..",
        " a",
        "a\n",
        "é",
        "x" * 65,
        "config",
        *DATASTORE_SUBDIRS,
        *ALWAYS_LOCAL_SUBDIRS,
        None,
        0,
        b"",
    ],
)
def test_other_texts_and_directory_names_are_no_namespaces(value: object) -> None:
    """A namespace is no other text, and never the name of a directory of the datastore."""
    assert refusal(parse_namespace, value).message.isprintable()


@given(uuids())
def test_random_uuids_are_accepted(uuid: str) -> None:
    """A version 4 UUID passes in either case."""
    assert parse_uuid(uuid) == uuid
    assert parse_uuid(uuid.upper()) == uuid.upper()
    assert is_uuid(uuid)


@pytest.mark.parametrize("value", ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"])
def test_nil_and_max_are_uuids(value: str) -> None:
    """The reference's validator accepts the two special UUIDs."""
    assert parse_uuid(value) == value


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "5b0c8a52-7d1e-0c39-9f44-2a6be01d7c15",
        "5b0c8a52-7d1e-9c39-9f44-2a6be01d7c15",
        "5b0c8a52-7d1e-4c39-7f44-2a6be01d7c15",
        "5b0c8a527d1e4c399f442a6be01d7c15",
        "5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15\n",
        "{5b0c8a52-7d1e-4c39-9f44-2a6be01d7c15}",
        None,
        5,
    ],
)
def test_other_uuids_are_refused(value: object) -> None:
    """Version and variant count, as in the reference."""
    assert refusal(parse_uuid, value).message.isprintable()
    assert not is_uuid(value)


@pytest.mark.parametrize("value", [1, 4, VERSION_MAX])
def test_versions_are_whole_numbers_from_one(value: int) -> None:
    """A version is a whole number from 1 that a double can hold."""
    assert parse_version(value) == value


@pytest.mark.parametrize("value", [0, -1, VERSION_MAX + 1, True, 1.0, "1", None])
def test_other_numbers_are_no_versions(value: object) -> None:
    """Zero, negative, huge, fractional and boolean values are no versions, and text is none either."""
    assert repr(value) in refusal(parse_version, value).message


@pytest.mark.parametrize("value", ["a", "a/b", "data/aws/ec2/x/result/1/raw", ".swamp", "..x/y", "a/" + "x" * 255])
def test_relative_paths_are_kept(value: str) -> None:
    """A path inside the store is taken as it is."""
    assert parse_rel_path(value) == value


@pytest.mark.parametrize("value", ["/a", "C:/a", "c:\\a", "a//b", "a/", "a/./b", "./a", "a/" + "x" * 256])
def test_absolute_and_unclean_paths_are_refused(value: str) -> None:
    """A path that is absolute, unclean or too long for a disk is refused."""
    assert refusal(parse_rel_path, value).message.isprintable()
