"""What the engine's answers and errors mean, one record at a time."""

import subprocess
import sys
from typing import Any

import pytest

from mire.errors import InputError
from mire.flow.evaluate import Failure, Selected, compile_predicate, compile_select

RECORD: dict[str, Any] = {
    "name": "é😀a",
    "version": 3,
    "isLatest": True,
    "tags": {"env": "prod", "a-b": "c"},
    "attributes": {"n": 1, "s": "text", "l": [1, 2], "z": None, "deep": {"on": True}},
    "content": "hello",
}


@pytest.mark.parametrize(
    ("predicate", "verdict"),
    [
        ("name == 'é😀a'", True),
        ("version == 2", False),
        ("tags['a-b'] == 'c'", True),
        ("tags.missing == 'x'", False),
        ("!(tags.missing == 'x')", False),
        ("tags.missing == 'x' || isLatest", True),
        ("has(tags.missing)", False),
        ("attributes.deep.on", True),
        ("attributes.missing.on", False),
        ("attributes.l.exists(x, x > 1)", True),
        ("content.contains('ell')", True),
    ],
)
def test_verdicts(predicate: str, verdict: bool) -> None:  # noqa: FBT001 - a table
    """A record matches or not, and a missing key is no match."""
    compiled = compile_predicate(predicate)
    assert compiled.judge(RECORD) is verdict
    assert compiled.matches(RECORD) is verdict


@pytest.mark.parametrize(
    ("predicate", "reason"),
    [
        ("attributes.n < 'x'", "type"),
        ("attributes.s.deeper == 1", "type"),
        ("attributes.z.deeper == 1", "type"),
        ("attributes.n.startsWith('x')", "type"),
        ("attributes.l[5] == 1", "index"),
        ("attributes.n / 0 == 1", "arithmetic"),
        ("attributes.n + 9223372036854775807 > 0", "arithmetic"),
        ("int(attributes.s) == 1", "function"),
        ("name.matches(attributes.s + '(')", "function"),
        ("timestamp(name) == timestamp(name)", "function"),
        ("attributes.n", "not_boolean"),
        ("attributes.z", "not_boolean"),
    ],
)
def test_failures(predicate: str, reason: str) -> None:
    """A failure at run time is told apart from no match, by kind and in one line."""
    compiled = compile_predicate(predicate)
    verdict = compiled.judge(RECORD)
    assert isinstance(verdict, Failure)
    assert verdict.reason == reason
    with pytest.raises(InputError) as caught:
        compiled.matches(RECORD)
    assert caught.value.kind == "evaluation"
    assert "\n" not in caught.value.message


def test_strict() -> None:
    """With strict a missing key is a failure that names the key, unless another part decides."""
    verdict = compile_predicate("tags.missing == 'x'", strict=True).judge(RECORD)
    assert verdict == Failure(reason="missing", message="there is no key 'missing'")
    assert compile_predicate("tags.missing == 'x' || isLatest", strict=True).judge(RECORD) is True


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("name", "é😀a"),
        ("{'n': name, 'v': version + 1}", {"n": "é😀a", "v": 4}),
        ("attributes.l.map(x, x * 2)", [2, 4]),
        ("attributes.z", None),
    ],
)
def test_select(text: str, value: object) -> None:
    """An expression of any type gives its value."""
    assert compile_select(text).select(RECORD) == Selected(value=value)


def test_select_failure() -> None:
    """An expression without a value says why."""
    assert compile_select("tags.missing").select(RECORD) == Failure(
        reason="missing", message="there is no key 'missing'"
    )


@pytest.mark.parametrize("text", ["name ==", "nam", "size > 'a'", "foo(1)", "a.b{c: 1}", ""])
def test_refused(text: str) -> None:
    """What is refused for a query is refused here, and both compilers say the same."""
    for compiler in (compile_predicate, compile_select):
        with pytest.raises(InputError):
            compiler(text)


def test_the_engine_is_loaded_late() -> None:
    """Planning and importing load neither CEL library; only something to evaluate does."""
    script = (
        "import sys, mire.flow.evaluate, mire.plan.query as q;"
        "q.plan_query(\"name.matches('^a') && tags.env == 'p' && attributes.x == 1\");"
        "assert not {'cel', 'celpy', 'lark'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
