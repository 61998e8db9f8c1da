"""Our reading of CEL is that of the engine and of cel-python."""

import cel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mire.errors import InputError
from mire.model.cel import Constant
from mire.wire.cel import parse_cel, source_of

LITERALS = [
    "'a'", '"a"', "''", '""', "'''a'b'''", '"""a\n"b"""', "''''a'''", r"r'\d'", r"R'''\'''", r"'\a\b\f\n\r\t\v'",
    r"'\"\'\\\?\`'", r"'\x41\X41\xff\101\377'", r"'\u00e9\U0001F600'", "'''a\r\nb\rc'''", "'😀'", "'//'",
    "0", "01", "7", "0x1F", "-7", "- 7", "-0x10", "9223372036854775807", "-9223372036854775808", "1u", "0xFFU",
    "1.5", ".5", "1e3", "1.5E-3", "-2.5", "true", "false", "null",
]  # fmt: skip


@pytest.mark.parametrize("text", LITERALS)
def test_literals(text: str) -> None:
    """A literal has the value that the engine gives it."""
    node = parse_cel(text)
    assert isinstance(node, Constant)
    value = cel.evaluate(text)
    assert (type(node.value), node.value) == (type(value), value)


@settings(max_examples=500, deadline=None)
@given(
    st.text("abnrx01uU'\"\\ \n\r7é", max_size=8), st.sampled_from(["'{}'", '"{}"', "r'{}'", "'''{}'''", 'R"""{}"""'])
)
def test_strings_agree(body: str, form: str) -> None:
    """Any body between quotes is the same text for us and for the engine, or a string for neither."""
    text = form.format(body)
    try:
        theirs = cel.evaluate(text)
    except (ValueError, RuntimeError, TypeError):
        with pytest.raises(InputError):
            _constant(text)
    else:
        if isinstance(theirs, str):
            assert _constant(text) == theirs


def _constant(text: str) -> object:
    node = parse_cel(text)
    if not isinstance(node, Constant):
        raise InputError("more than a constant")
    return node.value


pieces = st.sampled_from(
    [
        "a",
        "b",
        "c.d",
        "1",
        "2u",
        "1.5",
        "'x'",
        "true",
        "null",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "?",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "in",
        "&&",
        "||",
        ".",
        "f(a)",
        "m.g(1)",
        "has(a.b)",
    ]
)


@settings(max_examples=600, deadline=None)
@given(st.lists(pieces, min_size=1, max_size=9).map(" ".join))
def test_acceptance_agrees(text: str) -> None:
    """We take what the engine takes and nothing else, up to constructs we leave out on purpose."""
    try:
        cel.compile(text)
        theirs = True
    except ValueError:
        theirs = False
    try:
        parse_cel(text)
        ours = True
    except InputError:
        ours = False
    if theirs != ours:
        assert theirs, text
        assert "{" in text or ". " in text or ", ]" in text, text


@settings(max_examples=300, deadline=None)
@given(st.recursive(
    st.sampled_from(["1", "2", "3", "-4"]),
    lambda inner: st.builds("{}{}{}".format, inner, st.sampled_from([" + ", "-", " * ", "//c\n - "]), inner)
    | inner.map("({})".format),
    max_leaves=12,
))  # fmt: skip
def test_precedence_and_source(text: str) -> None:
    """Every part of a tree, cut out of the text, has the value that its place in the tree gives it."""
    node = parse_cel(text)
    assert cel.evaluate(source_of(node, text)) == cel.evaluate(text) == _value(node)


def _value(node: object) -> int:
    match node:
        case Constant(value=int() as value):
            return value
        case _:
            left, right = _value(node.left), _value(node.right)  # type: ignore[attr-defined]
            return {"+": left + right, "-": left - right, "*": left * right}[node.operator]  # type: ignore[attr-defined]


def test_cel_python_reads_the_same() -> None:
    """The other library takes the predicates of the manual, too."""
    from celpy.celparser import CELParser  # noqa: PLC0415 - half a second

    for text in (
        "modelType == 'aws/ec2/vpc' && tags.env == 'prod' && attributes.cidr.startsWith('10.')",
        "!(a || b) ? c.d[0] : {'x': [1, 2]}.x",
    ):
        CELParser().parse(text)
        parse_cel(text)
