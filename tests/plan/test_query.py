"""What of a predicate goes to SQL, and that SQL and the engine give the same answer."""

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mire.errors import InputError
from mire.flow.evaluate import Failure, compile_predicate
from mire.plan.fields import COLUMNS, FIELDS
from mire.plan.predicate import CONTENT_FIELDS
from mire.plan.query import TIE_BREAK, QueryPlan, plan_after, plan_order, plan_query

TEXT_FIELDS = [field for field, kind in FIELDS.items() if kind == "string"]
INT_FIELDS = ["version", "size"]
BOOL_FIELDS = ["isLatest", "streaming"]
KEYS = ["env", "a-b", "", "é", "😀", 'q"q', "b\\s", "n\nl", "$.x", "a b", "tags", "missing", "x'y", "[0]", "#"]
WORDS = [
    "",
    "a",
    "A",
    "ab",
    "ba",
    "é",
    "😀",
    "a😀",
    "%",
    "_",
    "*",
    "a.b",
    "\U0010ffff",
    "\ud7ff",
    "\ue000",
    "'",
    '"',
    "\\",
    "\n",
]


def record(**given: Any) -> dict[str, Any]:
    """A record with every field, some of them given."""
    blank: dict[str, Any] = {"string": "", "int": 0, "bool": False, "tags": {}, "dyn": {}}
    return {field: blank[kind] for field, kind in FIELDS.items()} | {"content": ""} | given


def table(records: Iterable[dict[str, Any]], *, ascii_tags: bool = False) -> sqlite3.Connection:
    """The table `version`, in memory."""
    database = sqlite3.connect(":memory:")
    integers = {"version", "is_latest", "streaming", "size"}
    columns = ", ".join(f"{c} {'INTEGER' if c in integers else 'TEXT'} NOT NULL" for c in COLUMNS.values())
    database.execute(f"CREATE TABLE version ({columns})")
    marks = ", ".join("?" for _ in COLUMNS)
    for row in records:
        values = {**row, "tags": json.dumps(row["tags"], ensure_ascii=ascii_tags)}
        insert = f"INSERT INTO version VALUES ({marks})"  # noqa: S608 - marks only
        database.execute(insert, [values[field] for field in COLUMNS])
    return database


def selected(plan: QueryPlan, records: list[dict[str, Any]], *, ascii_tags: bool = False) -> set[int]:
    """Which records SQL alone lets through, by position in their list (kept in `id`)."""
    database = table(({**r, "id": str(i)} for i, r in enumerate(records)), ascii_tags=ascii_tags)
    try:
        query = f"SELECT id FROM version WHERE {plan.where}"  # noqa: S608 - what is tested
        rows = database.execute(query, plan.params).fetchall()
    finally:
        database.close()
    return {int(row[0]) for row in rows}


def evaluated(text: str, records: list[dict[str, Any]], positions: Iterable[int]) -> set[int]:
    """Which records the engine lets through; a failure is no match."""
    predicate = compile_predicate(text)
    return {i for i in positions if predicate.judge({**records[i], "id": str(i)}) is True}


def quoted(text: str) -> str:
    """A text as a literal of CEL."""
    special = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\000"}
    return "'" + "".join(special.get(character, character) for character in text) + "'"


TRANSLATED = [
    ("name == 'a'", "(name = ?)", ("a",)),
    ("'a' == name", "(? = name)", ("a",)),
    ("name != 'a'", "(name <> ?)", ("a",)),
    ("createdAt >= '2026-01-01'", "(created_at >= ?)", ("2026-01-01",)),
    ("size < 10", "(size < ?)", (10,)),
    ("size <= -1", "(size <= ?)", (-1,)),
    ("size > 0x10", "(size > ?)", (16,)),
    ("10 <= size", "(? <= size)", (10,)),
    ("name == modelName", "(name = model_name)", ()),
    ("streaming == true", "(streaming = ?)", (1,)),
    ("streaming", "streaming = 1", ()),
    ("!streaming", "(NOT streaming)", ()),
    ("!streaming == streaming", "((NOT streaming) = streaming)", ()),
    ("true", "?", (1,)),
    ("ns == 'n'", "(namespace = ?)", ("n",)),
    ("name in ['a', \"b\"]", "(name IN (?, ?))", ("a", "b")),
    ("size in [1, 2]", "(size IN (?, ?))", (1, 2)),
    ("name in []", "(name <> name)", ()),
    ("name.startsWith('a/')", "(name >= ? AND name < ?)", ("a/", "a0")),
    ("name.startsWith('\ud7ff')", "(name >= ? AND name < ?)", ("\ud7ff", "\ue000")),
    ("name.startsWith('\U0010ffff')", "(substr(name, 1, 1) = ?)", ("\U0010ffff",)),
    ("name.startsWith('')", "(name = name)", ()),
    ("name.endsWith('😀b')", "(substr(name, -2) = ?)", ("😀b",)),
    ("name.contains('%')", "(instr(name, ?) > 0)", ("%",)),
    ("name.matches('a')", "(instr(name, ?) > 0)", ("a",)),
    ("name.matches('^a')", "(name >= ? AND name < ?)", ("a", "b")),
    ("name.matches('a$')", "(substr(name, -1) = ?)", ("a",)),
    (r"name.matches('^a\\.b$')", "(name = ?)", ("a.b",)),
    (r"name.matches(r'^a\.b$')", "(name = ?)", ("a.b",)),
    ("tags.env == 'p'", "(json_extract(tags, ?) = ?)", ('$."env"', "p")),
    ("tags['a-b'] == 'p'", "(json_extract(tags, ?) = ?)", ('$."a-b"', "p")),
    ("tags['é'] == 'p'", "((SELECT value FROM json_each(tags) WHERE key = ?) = ?)", ("é", "p")),
    ("tags.env.startsWith('p')", "(substr(json_extract(tags, ?), 1, 1) = ?)", ('$."env"', "p")),
    ("has(tags.env)", "(json_type(tags, ?) IS NOT NULL)", ('$."env"',)),
    ("'env' in tags", "(json_type(tags, ?) IS NOT NULL)", ('$."env"',)),
    ("'\"' in tags", "EXISTS (SELECT 1 FROM json_each(tags) WHERE key = ?)", ('"',)),
    ("name == 'a' || size == 1", "((name = ?) OR (size = ?))", ("a", 1)),
    (
        "streaming ? name == 'a' : size == 1",
        "(CASE streaming WHEN 1 THEN (name = ?) WHEN 0 THEN (size = ?) END)",
        ("a", 1),
    ),
]


@pytest.mark.parametrize(("predicate", "where", "params"), TRANSLATED)
def test_translated(predicate: str, where: str, params: tuple[object, ...]) -> None:
    """Each construct that SQL can say exactly is said by SQL alone."""
    plan = plan_query(predicate, history=True)
    assert (plan.where, plan.params) == (where, params)
    assert (plan.residual, plan.metadata_residual, plan.needs_content) == (None, None, False)


EVALUATED = [
    "size(name) == 3",
    "name.matches('a.*b')",
    "name.matches('(?i)a')",
    "size + 1 == 2",
    "size == 1.0",
    "size == 1u",
    "string(size) == '1'",
    "tags[name] == 'a'",
    "name in tags",
    "tags.exists(k, k == 'a')",
    "tags == {'a': 'b'}",
    "name in [modelName]",
    "name == 'a\\000'",
    "'abc'.contains(name)",
    "timestamp(createdAt) > timestamp('2026-01-01T00:00:00Z')",
    "[1, 'a'] == [1, 'a']",
]


@pytest.mark.parametrize("predicate", EVALUATED)
def test_evaluated(predicate: str) -> None:
    """What SQL cannot say exactly is left to the engine, before any content is loaded."""
    plan = plan_query(predicate, history=True)
    assert (plan.where, plan.params) == ("1", ())
    assert (plan.residual, plan.metadata_residual, plan.needs_content) == (predicate, predicate, False)


def test_a_predicate_is_split() -> None:
    """SQL first, then what metadata decides, then what content decides."""
    text = "size(name) > 2 && name != 'x' // why\n && attributes.a == 1 && (size(id) == 1 || streaming)"
    plan = plan_query(text)
    assert (plan.where, plan.params) == ("(is_latest = 1 AND (name <> ?))", ("x",))
    assert plan.metadata_residual == "(size(name) > 2) && (size(id) == 1 || streaming)"
    assert plan.residual == "(size(name) > 2) && (attributes.a == 1) && (size(id) == 1 || streaming)"
    assert plan.needs_content
    assert [(step.text, step.by) for step in plan.explain] == [
        ("isLatest", "sql"),
        ("size(name) > 2", "record"),
        ("name != 'x'", "sql"),
        ("attributes.a == 1", "content"),
        ("size(id) == 1 || streaming", "record"),
    ]


def test_alternatives_with_content_are_narrowed() -> None:
    """Where every alternative has a part SQL can decide, content is loaded only for rows that satisfy one."""
    plan = plan_query("(name == 'a' && content.contains('x')) || (name == 'b' && attributes.y == 1)", history=True)
    assert (plan.where, plan.params) == ("((name = ?) OR (name = ?))", ("a", "b"))
    assert plan.residual == "(name == 'a' && content.contains('x')) || (name == 'b' && attributes.y == 1)"


@pytest.mark.parametrize(
    ("predicate", "history", "latest_only"),
    [
        ("name == 'a'", False, True),
        ("name == 'a'", True, False),
        ("version > 1", False, False),
        ("isLatest || true", False, False),
        ("tags.version == 'a'", False, True),
        ("name == 'version'", False, True),
        ("tags.exists(version, version == 'a')", False, True),
    ],
)
def test_latest_only(predicate: str, history: bool, latest_only: bool) -> None:  # noqa: FBT001 - a table
    """Only the latest versions are asked for unless the predicate mentions them or the history is wanted."""
    plan = plan_query(predicate, history=history)
    assert plan.is_latest_only is latest_only
    assert ("is_latest = 1" in plan.where) is latest_only


def test_strict_leaves_missing_keys_to_the_engine() -> None:
    """With strict, SQL decides nothing that may miss a key, and still decides the rest."""
    plan = plan_query("tags.env == 'p' && has(tags.x) && name == 'a'", history=True, strict=True)
    assert plan.residual == "tags.env == 'p'"
    assert plan.params == ('$."x"', "a")


REFUSED = [
    ("", "line 1, column 1: the text ends"),
    ("name = 'a'", "line 1, column 6: '=' has no meaning here: write == to compare"),
    ("name ==\n  'a", "line 2, column 3: ''a' is no string"),
    ("name == 'a' and true", "line 1, column 13: unexpected 'and' (write &&)"),
    ("(name == 'a'", "line 1, column 13: the text ends: expected ')'"),
    ("name == 'a' 'b'", "column 13: unexpected ''b''"),
    ("name == '\\q'", "column 9"),
    ("name == '\\ud800'", "escapes something that is no character"),
    ("name == '\udc80'", "half a character"),
    ("size == 9223372036854775808", "out of range"),
    ("nam == 'a'", "'nam': no field, did you mean 'name': the fields are id, name, version"),
    ("model_type == 'a'", "did you mean 'modelType'"),
    ("namespace == 'a'", "'namespace': a word CEL reserves, did you mean 'ns'"),
    ("attributes.l.exists(x, y == 1)", "'y': no field"),
    ("x == 1 && attributes.l.exists(x, x == 1)", "'x': no field"),
    ("version == 'x'", "'version == 'x'': int is never compared with text"),
    ("size > '1'", "int is never compared with text"),
    ("tags > 1", "a map is never compared with int"),
    ("tags < tags", "a map has no order"),
    ("tags.env == 1", "text is never compared with int"),
    ("tags.env == null", "write has(…)"),
    ("isLatest == 1", "true or false is never compared with int"),
    ("size in ['a']", "int is never in a list of text"),
    ("1 in tags", "the keys of tags are text"),
    ("'a' in name", "in needs a list or a map"),
    ("name.startsWith(1)", "startsWith takes text"),
    ("size.startsWith('a')", "startsWith is a method of text"),
    ("name.startsWith('a', 'b')", "takes one argument"),
    ("name.lower() == 'a'", "there is no method 'lower'"),
    ("name.startswith('a')", "did you mean 'startsWith'"),
    ("startsWith(name, 'a')", "it is a method"),
    ("foo(name)", "there is no function 'foo'"),
    ("has(name)", "has takes a member"),
    ("has(tags['a'])", "has takes a member"),
    ("name.x == 'a'", "which has no members"),
    ("tags.a.b == 'a'", "which has no members"),
    ("tags[1] == 'a'", "the keys of tags are text"),
    ("!size", "'size': ! needs true or false"),
    ("-name == 'a'", "- needs a number"),
    ("size && true", "&& needs true or false"),
    ("true || name", "|| needs true or false"),
    ("size ? true : false", "? needs true or false before it"),
    ("name + 1 == 'a'", "+ does not mix text with int"),
    ("name", "a predicate must be true or false, and this is text"),
    ("1 + 1", "a predicate must be true or false"),
    ("name.matches('(')", "unclosed group"),
    ("name.matches('a{1000}{1000}')", "size limit"),
    ("name.matches('(?=a)')", "look-around"),
    ("attributes.x.matches('[')", "unclosed character class"),
    ("size(1) == 1", "size takes"),
    ("tags.exists('x', true)", "name of its variable"),
    ("tags.exists(x)", "takes a variable and an expression"),
    ("name.exists(x, true)", "goes over a list or a map"),
    ("name == 'a' " + "|| name == 'a' " * 1000, "more than 10000"),
    ("(" * 100 + "true" + ")" * 100, "nested deeper than"),
    ("[" * 100 + "]" * 100 + " == []", "nested deeper than"),
    ("attributes" + ".a" * 100 + " == 1", "nested deeper than"),
    ("size " + "+ 1 " * 100 + "== 1", "nested deeper than"),
    ("true ? true : " * 100 + "true", "nested deeper than"),
]


@pytest.mark.parametrize(("predicate", "message"), REFUSED)
def test_refused(predicate: str, message: str) -> None:
    """What cannot be meant is refused in one line that shows where and what."""
    with pytest.raises(InputError) as caught:
        plan_query(predicate)
    assert message in caught.value.message
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize(
    "predicate",
    [
        "name == 'a'" + " || name == 'a'" * 660,
        "name == 'a'" + " && name == 'a'" * 660,
        "!(" * 89 + "isLatest" + ")" * 89,
        "(name == 'a' || streaming && " * 40 + "isLatest" + ")" * 40,
        "streaming ? (isLatest ? (" * 20 + "true" + ") : false) : true" * 20,
        "tags['é'].contains('a') == (" * 40 + "isLatest" + ")" * 40,
        "name in [" + "'a', " * 1900 + "'b']",
    ],
)
def test_large_predicates_run(predicate: str) -> None:
    """The largest predicates that are taken are also taken by SQLite and by the engine."""
    records = [record(name="a", isLatest=True, tags={"é": "a"}), record(name="b", streaming=True)]
    plan = plan_query(predicate, history=True)
    found = selected(plan, records)
    assert evaluated(predicate, records, range(2)) == evaluated(plan.residual or "true", records, found)


@pytest.mark.parametrize(
    ("text", "order_by"),
    [
        ("createdAt desc, name", "created_at DESC, name, namespace, model_type, model_id, version"),
        ("  version   DESC ", "version DESC, namespace, model_type, model_id, name"),
        ("ns,modelType asc,size desc", "namespace, model_type, size DESC, model_id, name, version"),
    ],
)
def test_order(text: str, order_by: str) -> None:
    """An order is made total by the primary key."""
    plan = plan_order(text)
    assert plan.order_by == order_by
    assert {column for column, _ in plan.terms} >= set(TIE_BREAK)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is no field"),
        ("name,", "'' is no field"),
        ("nam", "did you mean 'name'"),
        ("name DROP TABLE version", "after 'name'"),
        ("name;", "'name;' is no field"),
        ("tags", "'tags' has no order"),
        ("content desc", "'content' has no order"),
        ("name up", "asc, desc or a comma"),
        ("name, name desc", "twice"),
    ],
)
def test_order_refused(text: str, message: str) -> None:
    """An order by what is no column is refused."""
    with pytest.raises(InputError, match=r"^order ") as caught:
        plan_order(text)
    assert message in caught.value.message


def agree(predicate: str, records: list[dict[str, Any]]) -> None:
    """SQL alone says of every record what the engine says."""
    plan = plan_query(predicate, history=True)
    assert plan.residual is None, predicate
    assert selected(plan, records) == evaluated(predicate, records, range(len(records))), predicate


@pytest.mark.parametrize("word", WORDS)
def test_text_operations_agree(word: str) -> None:
    """Every operation on text gives the engine's answer for every pair of awkward texts, in columns and in tags."""
    records = [record(name=a + b, tags={"é": a + b, "env": b}) for a in WORDS for b in WORDS[:8]]
    for term in ("name", "tags['é']", "tags.env"):
        for form in (
            "{}.startsWith({})",
            "{}.endsWith({})",
            "{}.contains({})",
            "{} == {}",
            "{} < {}",
            "{} >= {}",
            "{} in [{}]",
        ):
            agree(form.format(term, quoted(word)), records)
    pattern = "".join(f"\\{character}" if character in "\\.*" else character for character in word)
    for form in ("{}", "^{}", "{}$", "^{}$"):
        agree(f"name.matches({quoted(form.format(pattern))})", records)


ERROR = "tags.missing == 'x'"
TRUTHS = ("isLatest", "streaming", ERROR, "tags.missing in []", "tags.missing.contains('')", "!isLatest")


@pytest.mark.parametrize(
    "form", ["({}) && ({})", "({}) || ({})", "({}) == ({})", "({}) != ({})", "!({}) == ({})", "({}) < ({})"]
)
@pytest.mark.parametrize("negation", ["{}", "!({})"])
def test_truth_tables_agree(form: str, negation: str) -> None:
    """Two conditions that are true, false or an error combine in SQL as in the engine."""
    for left in TRUTHS:
        for right in TRUTHS:
            agree(negation.format(form.format(left, right)), [record(isLatest=True)])


@pytest.mark.parametrize("negation", ["{}", "!({})"])
def test_ternaries_agree(negation: str) -> None:
    """A choice takes the branch that the engine takes, and none where the condition is an error."""
    for condition in TRUTHS:
        for then in TRUTHS[:3]:
            for otherwise in TRUTHS[:3]:
                agree(negation.format(f"{condition} ? {then} : {otherwise}"), [record(isLatest=True)])


words = (
    st.sampled_from(WORDS)
    | st.sampled_from(WORDS[:4])
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
)
numbers = st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)])
keys = st.sampled_from(KEYS)
tags = st.dictionaries(keys.filter(lambda key: key != "missing"), words, max_size=6)
values = st.none() | st.booleans() | st.integers(-3, 3) | words | st.lists(st.integers(-3, 3), max_size=3)
records_of = st.lists(
    st.builds(
        lambda texts, ints, bools, tags, attributes, content: record(
            **texts, **ints, **bools, tags=tags, attributes=attributes, content=content
        ),
        st.dictionaries(st.sampled_from(TEXT_FIELDS), words, max_size=8),
        st.fixed_dictionaries({field: st.integers(-3, 3) for field in INT_FIELDS}),
        st.fixed_dictionaries({field: st.booleans() for field in BOOL_FIELDS}),
        tags,
        st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2),
        words,
    ),
    min_size=1,
    max_size=4,
)
simple_keys = [key for key in KEYS if key.isidentifier() and key.isascii()]
text_terms = st.one_of(
    st.sampled_from(["name", "source", "tags.env", "tags.missing"]),
    st.sampled_from([field for field in TEXT_FIELDS if field != "id"]),
    words.map(quoted),
    keys.map(lambda key: f"tags[{quoted(key)}]"),
    st.sampled_from(simple_keys).map("tags.{}".format),
)
int_terms = st.sampled_from(INT_FIELDS) | numbers.map(str)
operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
patterns = st.sampled_from(
    ["a", "^a", "a$", "^a$", "", "^", "$", "a.b", r"a\.b", "[ab]", "(?i)A", "a|b", "é", "^😀", "a*", "^^a", "%"]
)
ATOMS = (
    st.builds("{} {} {}".format, text_terms, operators, text_terms),
    st.builds("{} {} {}".format, int_terms, operators, int_terms),
    st.sampled_from([*BOOL_FIELDS, "true", "false"]),
    st.builds(
        "{}.{}({})".format, text_terms, st.sampled_from(["startsWith", "endsWith", "contains"]), words.map(quoted)
    ),
    st.builds("{}.{}({})".format, text_terms, st.sampled_from(["startsWith", "endsWith", "contains"]), text_terms),
    st.builds("{}.matches(r'{}')".format, text_terms, patterns),
    st.builds(
        lambda term, items: f"{term} in [{', '.join(items)}]", text_terms, st.lists(words.map(quoted), max_size=3)
    ),
    st.builds(
        lambda term, items: f"{term} in [{', '.join(map(str, items))}]", int_terms, st.lists(numbers, max_size=3)
    ),
    st.builds("{} in tags".format, text_terms),
    st.sampled_from(simple_keys).map("has(tags.{})".format),
    st.builds("size({}) {} {}".format, text_terms, operators, st.integers(0, 4)),
    st.builds("attributes.{} {} {}".format, st.sampled_from("ab"), operators, text_terms | int_terms),
    st.builds("content.contains({})".format, words.map(quoted)),
    st.builds("tags.exists(k, k == {})".format, text_terms),
)


@st.composite
def predicates(draw: st.DrawFn, depth: int = 3) -> str:
    """A predicate over all fields, as text; a function of its own, because Hypothesis prints strategies."""
    form = draw(
        st.sampled_from(["", "", "{}", "({}) && ({})", "({}) || ({})", "!({})", "({}) ? ({}) : ({})", "({}) == ({})"])
    )
    if depth == 0 or not form:
        return draw(draw(st.sampled_from(ATOMS)))
    return form.format(*(draw(predicates(depth - 1)) for _ in range(form.count("{}"))))


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(predicate="!(tags['missing'] in [])", records=[record()], ascii_tags=False)
@example(predicate="!(name in tags) == streaming", records=[record(streaming=True)], ascii_tags=False)
@example(predicate="tags['é'] == 'a'", records=[record(tags={"é": "a"})], ascii_tags=True)
@given(predicate=predicates(), records=records_of, ascii_tags=st.booleans())
def test_sql_then_engine_equals_engine(predicate: str, records: list[dict[str, Any]], ascii_tags: bool) -> None:  # noqa: FBT001 - drawn
    """SQL and then the residual select exactly what the whole predicate selects, and SQL alone loses nothing."""
    try:
        plan = plan_query(predicate, history=True)
    except InputError as error:
        assert "line 1, column" in error.message  # noqa: PT017 - a drawn predicate may have a type error that is certain
        return
    expected = evaluated(predicate, records, range(len(records)))
    candidates = selected(plan, records, ascii_tags=ascii_tags)
    assert expected <= candidates
    if plan.metadata_residual is not None:
        early = compile_predicate(plan.metadata_residual)
        candidates = {
            i
            for i in candidates
            if early.judge({k: v for k, v in records[i].items() if k not in CONTENT_FIELDS} | {"id": str(i)})
            is not False
        }
    assert expected == (evaluated(plan.residual, records, candidates) if plan.residual else candidates)
    assert plan.needs_content == any(step.by == "content" for step in plan.explain)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(predicates(), records_of)
def test_strict_sql_loses_no_error(predicate: str, records: list[dict[str, Any]]) -> None:
    """With strict, a row that SQL drops is one on which the engine says false, not one with a missing key."""
    try:
        plan = plan_query(predicate, history=True, strict=True)
    except InputError:
        return
    strict = compile_predicate(predicate, strict=True)
    dropped = set(range(len(records))) - selected(plan, records)
    for i in dropped:
        verdict = strict.judge({**records[i], "id": str(i)})
        assert not (isinstance(verdict, Failure) and verdict.reason == "missing"), verdict


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), st.sampled_from(["tags['env']", "name"])
)
def test_values_are_parameters(text: str, term: str) -> None:
    """Whatever a literal or a key says, the SQL has the same text, and as many marks as parameters."""
    for form in ("{} == {}", "{}.contains({})", "{}.endsWith({}) || 'x' == {}", "{} in [{}]"):
        marked = f"§{text}§"
        plan = plan_query(form.format(term, quoted(marked), quoted(marked)), history=True)
        assert "§" not in plan.where
        assert plan.where.count("?") == len(plan.params)
        assert marked in plan.params
    keyed = plan_query(f"tags[{quoted(text)}] == 'a' && {quoted(text)} in tags", history=True)
    assert keyed.where in (
        "((json_extract(tags, ?) = ?) AND (json_type(tags, ?) IS NOT NULL))",
        (
            "(((SELECT value FROM json_each(tags) WHERE key = ?) = ?)"
            " AND EXISTS (SELECT 1 FROM json_each(tags) WHERE key = ?))"
        ),
    )


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=40) | st.text("()[]{}'\"\\!&|=<>?:.,-+ a1u\n/", max_size=40))
def test_any_text_gives_a_plan_or_an_error(text: str) -> None:
    """No text makes the planner fail in another way than by an InputError."""
    try:
        plan = plan_query(text)
    except InputError as error:
        assert "\n" not in error.message  # noqa: PT017 - both outcomes are right
    else:
        assert plan.where


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab\u00e4"), st.sampled_from("xy"), st.integers(0, 2)), unique=True, max_size=12
    ),
    st.permutations(["name", "modelId", "version"]),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.data(),
)
def test_what_comes_after_a_row(
    keys: list[tuple[str, str, int]], fields: list[str], descending: list[bool], data: st.DataObject
) -> None:
    """Of any rows in any order, exactly those that stand behind a row come after its position."""
    order = plan_order(", ".join(f"{f} {'desc' if d else 'asc'}" for f, d in zip(fields, descending, strict=True)))
    database = table(record(name=a, modelId=b, version=n) for a, b, n in keys)
    columns = list(COLUMNS.values())
    select = f"SELECT {','.join(columns)} FROM version WHERE"  # noqa: S608 - what is tested
    try:
        rows = database.execute(f"{select} 1 ORDER BY {order.order_by}").fetchall()
        for at in data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=3) if rows else st.just([])):
            after = plan_after(order, order.position_of(columns, rows[at]))
            found = database.execute(f"{select} {after.sql} ORDER BY {order.order_by}", after.params).fetchall()
            assert found == rows[at + 1 :]
    finally:
        database.close()
