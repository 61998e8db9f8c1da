"""The fast reader agrees with the full one on everything it takes, and declines the rest."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mire.wire import yamltext
from mire.wire.yamlplain import decode_plain
from mire.wire.yamltext import encode_yaml

GOLDEN = sorted((Path(__file__).parent.parent / "golden" / "tree").rglob("*.yaml"))

SCALARS = st.one_of(
    st.text(max_size=30),
    st.text("0123456789eE+-._xbabcdef:# '", max_size=10),
    st.from_regex(r"[-+]?[0-9._]{1,8}([eE][-+]?[0-9]+)?", fullmatch=True),
    st.sampled_from(["true", "True", "null", "~", "Null", "y", "no", "=", "<<", ".inf", ".nan", "0x1F", "0b1", "017"]),
    st.integers(),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False),
)
KEYS = st.one_of(st.text(max_size=12), st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,10}", fullmatch=True))
DOCUMENTS = st.dictionaries(KEYS, SCALARS | st.dictionaries(KEYS, SCALARS, max_size=4), max_size=6)


class _FullOnly:
    """The full reader, with the fast one out of its way."""

    def __enter__(self) -> None:
        self._kept = yamltext.decode_plain
        yamltext.decode_plain = lambda _: None

    def __exit__(self, *_: object) -> None:
        yamltext.decode_plain = self._kept


def full(text: str) -> Any:
    """What the full reader makes of a text; its error, if it has one."""
    with _FullOnly():
        try:
            return yamltext.decode_yaml(text.encode())
        except yamltext.FormatError as error:
            return error


def check(text: str) -> bool:
    """Compare both readers; whether the fast one took the text."""
    fast = decode_plain(text)
    if fast is not None:
        found = full(text)
        assert fast == found
        assert repr(fast) == repr(found)  # 1 == True == 1.0, but they are not the same
    return fast is not None


@given(DOCUMENTS)
def test_agrees_on_what_we_write(document: dict[str, Any]) -> None:
    """Documents of our own encoder."""
    check(encode_yaml(document))


@given(DOCUMENTS)
def test_agrees_on_what_others_write(document: dict[str, Any]) -> None:
    """Documents of an encoder that leaves most texts unquoted, like the reference's."""
    check(yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=10_000))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "  ", " ", "    "]), KEYS, st.sampled_from([": ", ":", " : ", ":  "]), st.text()
        ),
        max_size=5,
    )
)
def test_agrees_on_anything_that_looks_alike(lines: list[tuple[str, str, str, str]]) -> None:
    """Lines of keys and values nobody would write."""
    check("".join("".join(line) + "\n" for line in lines))


@pytest.mark.parametrize("value", ["1", "0", "-1", "12.5", "1e5", "7e10932", "01.02", "08.2026", "1_", "0x_", "0x1f"])
@pytest.mark.parametrize("form", ["a: {}\n", "a: '{}'\n", "a:\n  b: {}\n"])
def test_agrees_on_what_looks_like_a_number(value: str, form: str) -> None:
    """Texts and numbers that are easily taken for each other."""
    check(form.format(value))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 1",
        "a:\n",
        "a:\nb: 1\n",
        "a: 1\na: 2\n",
        "a: b: c\n",
        "a: b #c\n",
        "a: [1]\n",
        "a: {}\n",
        'a: "b"\n',
        "a: |\n  b\n",
        "a: 'b\n  c'\n",
        "- a\n",
        "a: &x b\n",
        "a: *x\n",
        "a: !!str 1\n",
        "? a\n: b\n",
        "  a: 1\n",
        "a: 1\n  b: 2\n",
        "---\na: 1\n",
        "a: 1\n...\n",
        "a: b\r\n",
        "a: b\tc\n",
        "a: b \n",
        "True: 1\n",
        "Null: 1\n",
        "\ufeffa: 1\n",
        "# c\na: 1\n",
        "a: b\u2028c\n",
        "a: 'it''s\u0085'\n",
    ],
)
def test_declines_what_is_not_plain(text: str) -> None:
    """Everything with a second meaning goes to the full reader."""
    assert decode_plain(text) is None


def test_takes_nearly_all_metadata() -> None:
    """What the reference wrote is read fast, and equal."""
    texts = [path.read_text() for path in GOLDEN if path.name == "metadata.yaml"]
    assert sum(map(check, texts)) >= len(texts) * 0.9
