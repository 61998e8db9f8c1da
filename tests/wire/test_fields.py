"""Taking a document apart: known members parsed, unknown ones left, bad ones named."""

from collections.abc import Callable

import pytest

from mire.errors import FormatError, InputError
from mire.wire.fields import Fields, flag, mapping, one_of, present, sequence, text, text_map, whole


def test_what_nobody_took_is_left() -> None:
    """Members that were taken are gone, null ones we know too; the rest stays, null included."""
    fields = Fields({"a": "x", "b": None, "new": None, "other": [1]}, "thing")
    assert fields.take("a", text) == "x"
    assert fields.maybe("b", text) is None
    assert fields.maybe("missing", text) is None
    assert fields.rest() == {"new": None, "other": [1]}


@pytest.mark.parametrize("document", [{}, {"a": None}])
def test_a_missing_member_is_named(document: dict[str, object]) -> None:
    """A required member that is missing or null is an error that names document and member."""
    with pytest.raises(FormatError, match="thing lacks 'a'"):
        Fields(document, "thing").take("a", text)


def test_a_bad_member_is_named_and_shown() -> None:
    """A member that cannot be parsed is an error that names it and shows its value."""
    for ask in (Fields.take, Fields.maybe):
        with pytest.raises(FormatError, match="thing: 'a': 7 is not a non-empty text"):
            ask(Fields({"a": 7}, "thing"), "a", text)


@pytest.mark.parametrize("document", [None, [], "x", 3])
def test_only_mappings_have_members(document: object) -> None:
    """Anything but a mapping is an error that shows it."""
    with pytest.raises(FormatError, match=r"thing is .*, not a mapping"):
        Fields(document, "thing")


@pytest.mark.parametrize(
    ("parse", "good", "bad"),
    [
        (text, ["x", " "], ["", 1, None, True, ["x"]]),
        (whole, [0, 1, 2**53 - 1], [-1, 2**53, 10**20, True, 1.0, "1", None]),
        (flag, [True, False], [0, 1, "true", None]),
        (mapping, [{}, {"a": 1}], [[], "x", None]),
        (text_map, [{}, {"a": ""}], [{"a": 1}, {"a": None}, [], "x"]),
        (one_of("a", "b"), ["a", "b"], ["c", "", None, ["a"], 1]),
    ],
)
def test_parsers_take_their_kind_only(parse: Callable[[object], object], good: list[object], bad: list[object]) -> None:
    """Each parser gives good values back and refuses bad ones by showing them."""
    assert [parse(value) for value in good] == good
    for value in bad:
        with pytest.raises(InputError) as caught:
            parse(value)
        assert caught.value.message.isprintable()


def test_sequences_are_lists() -> None:
    """A list becomes a tuple; text is no list of characters."""
    assert sequence([1, "x"]) == (1, "x")
    for value in ("abc", {"a": 1}, None, 3):
        with pytest.raises(InputError, match="is not a list"):
            sequence(value)


def test_absent_members_are_not_written() -> None:
    """None is left out; other empty values are values."""
    assert present({"a": None, "b": 0, "c": "", "d": False, "e": {}}) == {"b": 0, "c": "", "d": False, "e": {}}
