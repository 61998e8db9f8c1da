"""Documents made to hurt their reader are refused quickly, in this very process."""

import json
import subprocess
import sys

import pytest

from mire.errors import FormatError
from mire.wire.yamlshape import DEPTH_MAX, REPEATED_MAX
from mire.wire.yamltext import decode_yaml

DEEP = {
    "brackets": b"[" * 100_000,
    "closed brackets": b"[" * 100_000 + b"]" * 100_000,
    "braces": b"{" * 100_000,
    "braces with keys": b"{a: " * 100_000,
    "dashes": b"- " * 100_000,
    "dashes with two spaces": b"-  " * 100_000,
    "question marks": b"? " * 100_000,
    "dashes and question marks": b"- ? " * 100_000,
    "indented maps": b"".join(b" " * level + b"a:\n" for level in range(2_000)),
    "indented lists": b"".join(b" " * level + b"-\n" for level in range(2_000)),
    "lists at their key": b"".join(b" " * level + b"a:\n" + b" " * level + b"- b:\n" for level in range(0, 2_000, 2)),
    "brackets in dashes": b"- " * 150 + b"[" * 150,
    "single pairs": b"[a: " * 100_000,
    "aliases": b"a0: &a0 []\n" + b"".join(b"a%d: &a%d [[[*a%d]]]\n" % (i, i, i - 1) for i in range(1, 100)),
}
REPEATING = {
    "lists": b"a0: &a0 [x]\n"
    + b"".join(b"a%d: &a%d [%s]\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 30)),
    "merges": b"a0: &a0 {k: x}\n"
    + b"".join(b"a%d: &a%d {<<: [%s]}\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 30)),
}


@pytest.mark.parametrize("data", DEEP.values(), ids=DEEP.keys())
def test_deep_documents_are_refused(data: bytes) -> None:
    """However its levels are written, a document deeper than the limit is refused, and no stack overflows."""
    with pytest.raises(FormatError, match=f"file is nested more than {DEPTH_MAX} levels deep"):
        decode_yaml(data, "file")


@pytest.mark.parametrize("data", REPEATING.values(), ids=REPEATING.keys())
def test_documents_that_multiply_are_refused(data: bytes) -> None:
    """A few lines of aliases that stand for billions of nodes are refused before they are built."""
    with pytest.raises(FormatError, match=str(REPEATED_MAX)):
        decode_yaml(data)


@pytest.mark.parametrize("data", [b"a: &a [*a]\n", b"a: &a {b: *a}\n", b"a: &a\n  <<: *a\n", b"a: *b\nb: &b 1\n"])
def test_an_alias_stands_for_something_finished(data: bytes) -> None:
    """An alias for what it stands in, or for what comes later, is refused."""
    with pytest.raises(FormatError, match="which stands for itself or for nothing"):
        decode_yaml(data)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"[" * DEPTH_MAX + b"]" * DEPTH_MAX, DEPTH_MAX),
        (b"- " * (DEPTH_MAX - 1) + b"[]", DEPTH_MAX),
        (
            b"".join(b" " * level + b"a:\n" for level in range(DEPTH_MAX - 1)) + b" " * DEPTH_MAX + b"b: {}",
            DEPTH_MAX + 1,
        ),
    ],
)
def test_the_limit_is_exact(data: bytes, value: int) -> None:
    """A document of exactly the greatest depth is read, and one level more is not."""
    if value > DEPTH_MAX:
        with pytest.raises(FormatError, match="nested"):
            decode_yaml(data)
        return
    depth, document = 0, decode_yaml(data)
    while isinstance(document, list):
        depth, document = depth + 1, document[0] if document else None
    assert depth == value


@pytest.mark.parametrize(("levels", "is_read"), [(99, True), (100, False)])
def test_levels_behind_an_alias_count(levels: int, is_read: bool) -> None:  # noqa: FBT001 - a table
    """What an alias stands for is as deep as if it were written out: here in the root map and some lists."""
    data = b"a: &a " + b"[" * 100 + b"x" + b"]" * 100 + b"\nb: " + b"[" * levels + b"*a" + b"]" * levels
    if is_read:
        assert decode_yaml(data).keys() == {"a", "b"}
    else:
        with pytest.raises(FormatError, match="nested"):
            decode_yaml(data)


@pytest.mark.parametrize(("aliases", "is_read"), [(100, True), (101, False)])
def test_the_limit_of_repetition_is_exact(aliases: int, is_read: bool) -> None:  # noqa: FBT001 - a table
    """A list of 999 texts is a thousand nodes, and aliases may stand for it a hundred times."""
    data = b"a: &a [" + b"x, " * 999 + b"]\nb: [" + b"*a, " * aliases + b"]"
    if is_read:
        assert len(decode_yaml(data)["b"]) == aliases
    else:
        with pytest.raises(FormatError, match="aliases"):
            decode_yaml(data)


def test_ordinary_aliases_are_read() -> None:
    """Somebody's hand-written file may use anchors, each more than once."""
    data = b"a: &x [1]\nb: *x\nc: &y {d: 2}\ne: [*y, *y]\n"
    assert decode_yaml(data) == {"a": [1], "b": [1], "c": {"d": 2}, "e": [{"d": 2}, {"d": 2}]}


def test_many_brackets_side_by_side_are_not_deep() -> None:
    """Only nesting counts: a long flat document is read."""
    assert decode_yaml(b"[" + b"[], {}, " * 5_000 + b"]") == [[], {}] * 5_000


WITHOUT_LIBYAML = """
import json, sys
sys.modules["yaml._yaml"] = None
from mire.wire import yamlshape, yamltext
assert yamlshape.Parser.__module__ == "mire.wire.yamlshape"
from mire.errors import FormatError
answers = []
for text in json.load(sys.stdin):
    try:
        answers.append(repr(yamltext.decode_yaml(text.encode())))
    except FormatError:
        answers.append("refused")
print(json.dumps(answers))
"""


def test_both_parsers_read_alike() -> None:
    """Where PyYAML was built without libyaml, documents are read and refused all the same."""
    texts = [
        "a: [1, 08, x]\n",
        "a: &x {b: 1}\nc: {<<: *x, b: 2}\n",
        "a: 1\na: 2\n",
        "[" * 1000,
        "? " * 1000,
        "a: &a [*a]",
    ]
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBYAML], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    assert json.loads(answer.stdout) == [
        "{'a': [1, '08', 'x']}",
        "{'a': {'b': 1}, 'c': {'b': 2}}",
        *["refused"] * 4,
    ]
