"""CEL as SQL over the table `version`, where SQL says exactly what the engine would say.

Owns: the translation of each construct.
Must not know: how a predicate is split, the database, the engine.
Keeps: what cannot be said exactly is not said. Values reach SQL as parameters only.

SQL's NULL plays CEL's error: a missing tag is NULL, and AND, OR and NOT treat NULL as &&, || and ! treat an error
(false && error is false, true || error is true, in either order). WHERE drops NULL as a query drops a missing key.

Text is compared byte by byte in UTF-8 by both sides (collation BINARY there, Rust's `str` here), and the order of
UTF-8 bytes is that of code points, which is what CEL asks for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from mire.model.cel import Binary, Call, Chain, Constant, Index, ListOf, Name, Node, Select, Ternary, Unary
from mire.plan.fields import COLUMNS, FIELDS, Type
from mire.wire.regex import parse_plain

Param: TypeAlias = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """A translated node. `stack` is what it asks of SQLite's parser, `column` whether it is one."""

    sql: str
    params: tuple[Param, ...]
    type: Type
    stack: int = 1
    column: bool = False


_JOIN_WIDTH: Final = 30
_STACK_MAX: Final = 60
"""SQLite's parser has a stack of 100 (until 3.46), and an expression may be 1,000 deep: a chain is cut into
bundles, and what would nest too deeply is evaluated instead."""

_SIMPLE_KEY: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@ ")
_COMPARISONS: Final = {"==": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_SCALARS: Final = ("string", "int", "bool")


class Translation:
    """CEL to SQL, node by node; None where SQL would not say exactly what the engine says."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict

    def condition(self, node: Node) -> Sql | None:
        """A node that is true, false or NULL, as a condition."""
        found = self.value(node)
        if found is None or found.type != "bool":
            return None
        return Sql(sql=f"{found.sql} = 1", params=(), type="bool") if found.column else found

    def bound(self, node: Node) -> Sql | None:
        """A condition that holds wherever an untranslatable node is true; None when there is none to be had."""
        exact = self.condition(node)
        if exact or not isinstance(node, Chain):
            return exact
        bounds = [self.bound(part) for part in node.parts]
        known = [bound for bound in bounds if bound is not None]
        if not known or (node.operator == "||" and len(known) < len(bounds)):
            return None
        return _within(joined("OR" if node.operator == "||" else "AND", known))

    def value(self, node: Node) -> Sql | None:
        """A node as an expression of SQL, of the same type and value; NULL where the engine misses a key."""
        match node:
            case Constant(kind="string" | "int" | "bool" as kind, value=str() | int() as value):
                # SQLite's text functions stop at a NUL character.
                is_clean = not isinstance(value, str) or "\0" not in value
                param = int(value) if isinstance(value, bool) else value
                return Sql(sql="?", params=(param,), type=kind) if is_clean else None
            case Name(name=name) if FIELDS.get(name) in _SCALARS:
                return Sql(sql=COLUMNS[name], params=(), type=FIELDS[name], column=True)
            case Select() | Index():
                return self._tag(node)
            case Call(function="has", args=(Select(operand=Name(name="tags"), field=key),)):
                return _tag_presence(key)
            case Call(target=target, args=(Constant(kind="string", value=str() as text),)) if (
                target and "\0" not in text
            ):
                return self._text_method(node.function, target, text)
            case Unary(operator="!", operand=operand):
                inner = self.value(operand)
                return inner and _within(_composed("(NOT {})", "bool", 2, inner))
            case Binary():
                return self._membership(node) if node.operator == "in" else self._comparison(node)
            case Chain(operator=operator, parts=parts):
                found = [self.value(part) for part in parts]
                known = [part for part in found if part is not None]
                is_whole = len(known) == len(found)
                return _within(joined("AND" if operator == "&&" else "OR", known)) if is_whole else None
            case Ternary():
                return self._ternary(node)
            case _:
                return None

    def _tag(self, node: Select | Index) -> Sql | None:
        if not isinstance(node.operand, Name) or node.operand.name != "tags" or self.strict:
            return None
        if isinstance(node, Select):
            return _tag_value(node.field)
        match node.index:
            case Constant(kind="string", value=str() as key):
                return _tag_value(key)
            case _:
                return None

    def _comparison(self, node: Binary) -> Sql | None:
        left, right = self.value(node.left), self.value(node.right)
        if node.operator not in _COMPARISONS or left is None or right is None or left.type != right.type:
            return None
        return _within(_composed(f"({{}} {_COMPARISONS[node.operator]} {{}})", "bool", 3, left, right))

    def _membership(self, node: Binary) -> Sql | None:
        match node.left, node.right:
            case Constant(kind="string", value=str() as key), Name(name="tags"):
                return _tag_presence(key)
            case _, ListOf(items=items):
                left, values = self.value(node.left), [self.value(item) for item in items]
            case _:
                return None
        # Every item must be a value of its own: SQL's IN finds a match beside a NULL where CEL has an error.
        if left is None or any(v is None or v.type != left.type or v.sql != "?" for v in values):
            return None
        if not values:
            # `NULL IN ()` is false, and a missing key is in no list not even falsely: this is false or NULL.
            return _within(_composed("({} <> {})", "bool", 3, left, left))
        known = [value for value in values if value is not None]
        return _within(_composed(f"({{}} IN ({', '.join('?' for _ in known)}))", "bool", 5, left, *known))

    def _ternary(self, node: Ternary) -> Sql | None:
        condition, then, otherwise = map(self.value, (node.condition, node.then, node.otherwise))
        if condition is None or then is None or otherwise is None or then.type != otherwise.type:
            return None
        # A condition that is NULL takes neither branch, and the whole is NULL.
        form = "CASE {} WHEN 1 THEN {} WHEN 0 THEN {} END"
        return _within(_composed(f"({form})", then.type, 7, condition, then, otherwise))

    def _text_method(self, function: str, target: Node, text: str) -> Sql | None:
        subject = self.value(target)
        if subject is None or subject.type != "string":
            return None
        if function == "matches":
            plain = parse_plain(text)
            if plain is None:
                return None
            text = plain.text
            if plain.at_start and plain.at_end:
                return _within(_composed("({} = {})", "bool", 3, subject, _text(text)))
            function = "startsWith" if plain.at_start else "endsWith" if plain.at_end else "contains"
        return _within(_text_test(function, subject, text))


def _text_test(function: str, subject: Sql, text: str) -> Sql | None:
    if function not in ("startsWith", "endsWith", "contains"):
        return None
    if not text:
        # Every text begins with, ends with and contains the empty one, and a missing one is still missing.
        return _composed("({} = {})", "bool", 3, subject, subject)
    if function == "contains":
        return _composed("(instr({}, {}) > 0)", "bool", 5, subject, _text(text))
    if function == "endsWith":
        return _composed(f"(substr({{}}, {-len(text)}) = {{}})", "bool", 5, subject, _text(text))
    after = _first_after(text)
    if subject.column and after is not None:
        # In the order of code points the texts with a prefix stand together: a range, which an index serves.
        return _composed("({} >= {} AND {} < {})", "bool", 5, subject, _text(text), subject, _text(after))
    return _composed(f"(substr({{}}, 1, {len(text)}) = {{}})", "bool", 5, subject, _text(text))


def _first_after(prefix: str) -> str | None:
    """The least text above all that begin with a prefix; None above the last character there is."""
    code = ord(prefix[-1]) + 1
    if code > 0x10FFFF:  # noqa: PLR2004 - the end of Unicode
        return None
    return prefix[:-1] + chr(0xE000 if code == 0xD800 else code)  # noqa: PLR2004 - surrogates are no characters


def _text(text: str) -> Sql:
    return Sql(sql="?", params=(text,), type="string")


def _tag_value(key: str) -> Sql | None:
    if "\0" in key:
        return None
    if _SIMPLE_KEY.issuperset(key):
        return Sql(sql="json_extract(tags, ?)", params=(f'$."{key}"',), type="string", stack=4)
    # A path is held against the key as it is escaped in the document, so it cannot name every key.
    return Sql(sql="(SELECT value FROM json_each(tags) WHERE key = ?)", params=(key,), type="string", stack=10)


def _tag_presence(key: str) -> Sql | None:
    if "\0" in key:
        return None
    if _SIMPLE_KEY.issuperset(key):
        return Sql(sql="(json_type(tags, ?) IS NOT NULL)", params=(f'$."{key}"',), type="bool", stack=5)
    return Sql(sql="EXISTS (SELECT 1 FROM json_each(tags) WHERE key = ?)", params=(key,), type="bool", stack=10)


def _composed(form: str, type_: Type, stack: int, *parts: Sql) -> Sql:
    return Sql(
        sql=form.format(*(part.sql for part in parts)),
        params=tuple(param for part in parts for param in part.params),
        type=type_,
        stack=stack + max(part.stack for part in parts),
    )


def joined(operator: str, parts: Sequence[Sql]) -> Sql:
    """One condition of many, in bundles that SQLite can take."""
    if len(parts) == 1:
        return parts[0]
    if len(parts) > _JOIN_WIDTH:
        bundles = [parts[i : i + _JOIN_WIDTH] for i in range(0, len(parts), _JOIN_WIDTH)]
        return joined(operator, [joined(operator, bundle) for bundle in bundles])
    return _composed(f"({f' {operator} '.join('{}' for _ in parts)})", "bool", 3, *parts)


def _within(sql: Sql | None) -> Sql | None:
    return sql if sql is not None and sql.stack <= _STACK_MAX else None
