"""What a predicate may say: which fields there are, of which type, and what cannot be meant.

Owns: the fields of a record as CEL names them, the functions of the engine, and the static check.
Must not know: SQL, rows, how a predicate is evaluated.
Keeps: only what is certain is refused. A value that is known at run time alone (`attributes`, `content`, the
variable of a macro) is `dyn`, and `dyn` goes with everything.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, NoReturn, assert_never

from mire.errors import shown
from mire.model.cel import (
    Binary,
    Call,
    Chain,
    Constant,
    Index,
    ListOf,
    MapOf,
    Name,
    Node,
    Select,
    Ternary,
    Unary,
    children_of,
)
from mire.plan.fields import FIELDS, Type
from mire.wire.cel import RESERVED, refuse, source_of

CONTENT_FIELDS: Final = frozenset({"attributes", "content"})
MACROS: Final[Mapping[str, Type]] = {
    "all": "bool", "exists": "bool", "exists_one": "bool", "filter": "list", "map": "list",
}  # fmt: skip
_MACRO_ARGS: Final = 2

_BOOL: Final = frozenset({"bool"})
_NUMBERS: Final = frozenset({"int", "uint", "double"})
_ORDERED: Final = _NUMBERS | {"string", "bool", "bytes", "timestamp", "duration"}
_MAPS: Final = frozenset({"map", "tags"})
_SIZED: Final = _MAPS | {"string", "bytes", "list"}
_ANY: Final = _ORDERED | _MAPS | {"list", "null", "type"}
_TYPE_NAMES: Final = frozenset({"string", "bytes", "double", "int", "uint", "bool", "type", "list", "map", "null_type"})

_FUNCTIONS: Final[Mapping[str, tuple[frozenset[Type], Type]]] = {
    "size": (_SIZED, "int"),
    "string": (_ANY, "string"),
    "bytes": (frozenset({"string", "bytes"}), "bytes"),
    "double": (_NUMBERS | {"string"}, "double"),
    "int": (_NUMBERS | {"string", "timestamp"}, "int"),
    "uint": (_NUMBERS | {"string"}, "uint"),
    "duration": (frozenset({"string", "duration"}), "duration"),
    "timestamp": (frozenset({"string", "timestamp"}), "timestamp"),
    "type": (_ANY, "type"),
    "dyn": (_ANY, "dyn"),
}
"""Function → types of its one argument, type of the result: all that the engine has."""

_TEXT: Final = frozenset({"string"})
_TIMES: Final = frozenset({"timestamp", "duration"})
_METHODS: Final[Mapping[str, tuple[frozenset[Type], frozenset[Type] | None, Type]]] = {
    "startsWith": (_TEXT, _TEXT, "bool"),
    "endsWith": (_TEXT, _TEXT, "bool"),
    "contains": (_TEXT, _TEXT, "bool"),
    "matches": (_TEXT, _TEXT, "bool"),
    "size": (_SIZED, None, "int"),
    "getFullYear": (_TIMES, None, "int"),
    "getMonth": (_TIMES, None, "int"),
    "getDayOfYear": (_TIMES, None, "int"),
    "getDayOfMonth": (_TIMES, None, "int"),
    "getDate": (_TIMES, None, "int"),
    "getDayOfWeek": (_TIMES, None, "int"),
    "getHours": (_TIMES, None, "int"),
    "getMinutes": (_TIMES, None, "int"),
    "getSeconds": (_TIMES, None, "int"),
    "getMilliseconds": (_TIMES, None, "int"),
}
"""Method → types of its target, of its one argument (None: it takes none), type of the result."""


def check_predicate(node: Node, text: str) -> None:
    """Refuse a predicate that names what is not there, or that cannot be true or false."""
    _Check(text).expect(node, {}, _BOOL, "a predicate must be true or false")


def check_expression(node: Node, text: str) -> None:
    """Refuse an expression of any type that names what is not there, or cannot be evaluated."""
    _Check(text).type_of(node, {})


def fields_of(node: Node, bound: frozenset[str] = frozenset()) -> frozenset[str]:
    """The fields an expression reads; a macro's variable that is called like a field is none."""
    if isinstance(node, Name):
        return frozenset({node.name} - bound) & FIELDS.keys()
    if _is_macro(node) and isinstance(node, Call) and node.target and isinstance(node.args[0], Name):
        inner = bound | {node.args[0].name}
        return fields_of(node.target, bound).union(*(fields_of(arg, inner) for arg in node.args[1:]))
    return frozenset().union(*(fields_of(child, bound) for child in children_of(node)))


def nearest(name: str, known: Mapping[str, object]) -> str:
    """A hint at what was meant, to stand in a message, or nothing."""
    spelled = {other.lower(): other for other in known}
    if "ns" in known:
        spelled["namespace"] = "ns"
    close = get_close_matches(name.lower().replace("_", ""), spelled, n=1)
    return f", did you mean {shown(spelled[close[0]])}" if close else ""


def _is_macro(node: Node) -> bool:
    return isinstance(node, Call) and node.target is not None and node.function in MACROS


class _Check:
    """The type of every node, from the leaves up."""

    def __init__(self, text: str) -> None:
        self.text = text

    def wrong(self, node: Node, what: str) -> NoReturn:
        refuse(self.text, node.start, f"{shown(source_of(node, self.text))}: {what}")

    def expect(self, node: Node, scope: Mapping[str, Type], types: frozenset[Type], why: str) -> Type:
        found = self.type_of(node, scope)
        if found != "dyn" and found not in types:
            self.wrong(node, f"{why}, and this is {_called(found)}")
        return found

    def type_of(self, node: Node, scope: Mapping[str, Type]) -> Type:
        match node:
            case Constant(kind=kind):
                return kind
            case Name():
                return self.name(node, scope)
            case Select() | Index():
                return self.member(node, scope)
            case Call():
                return self.call(node, scope)
            case Binary():
                return self.binary(node, scope)
            case Unary() | Chain() | Ternary():
                return self.logic(node, scope)
            case ListOf(items=items) | MapOf(items=items):
                for item in items:
                    self.type_of(item, scope)
                return "list" if isinstance(node, ListOf) else "map"
            case _:
                assert_never(node)

    def logic(self, node: Unary | Chain | Ternary, scope: Mapping[str, Type]) -> Type:
        match node:
            case Unary(operator="!", operand=operand):
                return self.expect(operand, scope, _BOOL, "! needs true or false")
            case Unary(operand=operand):
                return self.expect(operand, scope, _NUMBERS, "- needs a number")
            case Chain(operator=operator, parts=parts):
                for part in parts:
                    self.expect(part, scope, _BOOL, f"{operator} needs true or false on both sides")
                return "bool"
            case Ternary(condition=condition, then=then, otherwise=otherwise):
                self.expect(condition, scope, _BOOL, "? needs true or false before it")
                types = {self.type_of(then, scope), self.type_of(otherwise, scope)}
                return types.pop() if len(types) == 1 else "dyn"
            case _:
                assert_never(node)

    def name(self, node: Name, scope: Mapping[str, Type]) -> Type:
        if node.name in scope:
            return scope[node.name]
        if node.name in FIELDS:
            return FIELDS[node.name]
        if node.name not in _TYPE_NAMES:
            what = "a word CEL reserves" if node.name in RESERVED else "no field"
            self.wrong(node, f"{what}{nearest(node.name, FIELDS)}: the fields are {', '.join(FIELDS)}")
        return "type"

    def member(self, node: Select | Index, scope: Mapping[str, Type]) -> Type:
        operand = self.type_of(node.operand, scope)
        if isinstance(node, Index):
            if operand == "list":
                self.expect(node.index, scope, _NUMBERS, "a list is indexed by a number")
                return "dyn"
            if operand == "tags":
                self.expect(node.index, scope, _TEXT, "the keys of tags are text")
            else:
                self.type_of(node.index, scope)
        if operand not in _MAPS and operand != "dyn":
            self.wrong(node, f"{shown(source_of(node.operand, self.text))} is {_called(operand)}, which has no members")
        return "string" if operand == "tags" else "dyn"

    def call(self, node: Call, scope: Mapping[str, Type]) -> Type:
        if node.target is None:
            return self.function(node, scope)
        if _is_macro(node):
            return self.macro(node, node.target, scope)
        if node.function not in _METHODS:
            hint = nearest(node.function, {**_METHODS, **MACROS})
            self.wrong(node, f"there is no method {shown(node.function)}{hint or f'; there are {_listed(_METHODS)}'}")
        targets, args, result = _METHODS[node.function]
        self.expect(node.target, scope, targets, f"{node.function} is a method of {_listed(targets)}")
        if args is None:
            # The time zone of a getter is the one argument that may be left out.
            if len(node.args) > (targets is _TIMES):
                self.wrong(node, f"{node.function} takes no argument")
        elif len(node.args) != 1:
            self.wrong(node, f"{node.function} takes one argument")
        for arg in node.args:
            self.expect(arg, scope, args or _TEXT, f"{node.function} takes {_listed(args or _TEXT)}")
            if node.function == "matches" and isinstance(arg, Constant) and isinstance(arg.value, str):
                self.pattern(arg, arg.value)
        return result

    def function(self, node: Call, scope: Mapping[str, Type]) -> Type:
        if node.function == "has":
            if len(node.args) != 1 or not isinstance(node.args[0], Select):
                self.wrong(node, "has takes a member, such as has(tags.env); for other keys write 'a-b' in tags")
            self.member(node.args[0], scope)
            return "bool"
        if node.function not in _FUNCTIONS:
            hint = nearest(node.function, _FUNCTIONS)
            if node.function in _METHODS or node.function in MACROS:
                hint = f": it is a method, write value.{node.function}(…)"
            self.wrong(
                node, f"there is no function {shown(node.function)}{hint or f'; there are {_listed(_FUNCTIONS)}'}"
            )
        types, result = _FUNCTIONS[node.function]
        if len(node.args) != 1:
            self.wrong(node, f"{node.function} takes one argument")
        self.expect(node.args[0], scope, types, f"{node.function} takes {_listed(types)}")
        return result

    def macro(self, node: Call, target: Node, scope: Mapping[str, Type]) -> Type:
        over = self.expect(target, scope, _MAPS | {"list"}, f"{node.function} goes over a list or a map")
        is_map = node.function == "map"
        if len(node.args) not in ((_MACRO_ARGS, _MACRO_ARGS + 1) if is_map else (_MACRO_ARGS,)):
            self.wrong(
                node, f"{node.function} takes a variable and an expression, such as {node.function}(x, x == 'a')"
            )
        variable = node.args[0]
        if not isinstance(variable, Name):
            self.wrong(variable, f"the first argument of {node.function} is the name of its variable")
        inner = {**scope, variable.name: "string" if over == "tags" else "dyn"}
        for position, arg in enumerate(node.args[1:], 1):
            if is_map and position == len(node.args) - 1:
                self.type_of(arg, inner)
            else:
                self.expect(arg, inner, _BOOL, f"{node.function} needs a condition")
        return MACROS[node.function]

    def binary(self, node: Binary, scope: Mapping[str, Type]) -> Type:
        left, right = self.type_of(node.left, scope), self.type_of(node.right, scope)
        if node.operator == "in":
            return self.membership(node, left, right, scope)
        if node.operator in ("+", "-", "*", "/", "%"):
            return self.arithmetic(node, left, right)
        if not _is_comparable(left, right):
            hint = ": write has(…) to ask whether it is there" if "null" in (left, right) else ""
            self.wrong(node, f"{_called(left)} is never compared with {_called(right)}{hint}")
        for side in (left, right):
            if node.operator not in ("==", "!=") and side not in _ORDERED and side != "dyn":
                self.wrong(node, f"{_called(side)} has no order, so {node.operator} says nothing")
        return "bool"

    def membership(self, node: Binary, left: Type, right: Type, scope: Mapping[str, Type]) -> Type:
        if right not in _MAPS and right not in ("list", "dyn"):
            self.wrong(node, f"in needs a list or a map on its right, and this is {_called(right)}")
        if right == "tags" and left not in ("string", "dyn"):
            self.wrong(node, f"the keys of tags are text, and this is {_called(left)}")
        if isinstance(node.right, ListOf) and node.right.items:
            types = {self.type_of(item, scope) for item in node.right.items}
            if not any(_is_comparable(left, other) for other in types):
                self.wrong(node, f"{_called(left)} is never in a list of {_listed(types)}")
        return "bool"

    def arithmetic(self, node: Binary, left: Type, right: Type) -> Type:
        allowed = _NUMBERS | _TIMES | ({"string", "bytes", "list"} if node.operator == "+" else frozenset())
        for side in (left, right):
            if side not in allowed and side != "dyn":
                self.wrong(node, f"{node.operator} does not work on {_called(side)}")
        if "dyn" in (left, right) or _TIMES & {left, right}:
            return "dyn"
        if left != right:
            self.wrong(node, f"{node.operator} does not mix {_called(left)} with {_called(right)}")
        return left

    def pattern(self, node: Constant, pattern: str) -> None:
        from mire.wire.regex import fault_of  # noqa: PLC0415 - loads the engine, which takes a quarter of a second

        fault = fault_of(pattern)
        if fault:
            self.wrong(node, f"not a regular expression of the engine: {fault}")


def _is_comparable(left: Type, right: Type) -> bool:
    if "dyn" in (left, right) or left == right:
        return True
    return {left, right} <= _NUMBERS or {left, right} <= _MAPS


def _called(type_: Type) -> str:
    return {"string": "text", "bool": "true or false", "tags": "a map", "list": "a list", "map": "a map"}.get(
        type_, type_
    )


def _listed(names: Mapping[str, object] | frozenset[str] | set[str]) -> str:
    ordered = list(names) if isinstance(names, Mapping) else sorted({_called(name) for name in names})
    return ", ".join(ordered)
