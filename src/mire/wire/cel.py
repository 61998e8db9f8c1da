"""The grammar of CEL: text of a predicate into a tree, with positions.

Owns: tokens, literals and precedence, as the Rust engine that evaluates predicates reads them.
Must not know: which names exist, what types they have, SQL.
Keeps: no text makes it crash or recurse without bound, and an error shows line, column and the offending text.

The parser of cel-python takes half a second to build its tables and ten milliseconds for a predicate; a query
that SQL answers alone takes less than one. So this one is ours, and the tests hold it against both libraries.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NoReturn, TypeVar

from mire.errors import InputError, shown
from mire.model.cel import Binary, Call, Chain, Constant, Index, Kind, ListOf, MapOf, Name, Node, Select, Ternary, Unary

LENGTH_MAX: Final = 10_000
DEPTH_MAX: Final = 90
"""The engine stops at 96 brackets, and the planner puts some of its own around what is left to evaluate."""

_Item = TypeVar("_Item")

RESERVED: Final = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    }
)
_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
_TOKEN: Final = re.compile(
    rf"""
    (?P<space>(?:[\t\n\f\r ]|//[^\n]*)+)
  | (?P<string>[bB]?(?:
        [rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|"[^"\n\r]*"|'[^'\n\r]*')
      | \"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\" | '''(?:{_ESCAPE}|[^\\])*?'''
      | "(?:{_ESCAPE}|[^\\"\n\r])*" | '(?:{_ESCAPE}|[^\\'\n\r])*'))
  | (?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<word>[_a-zA-Z][_a-zA-Z0-9]*)
  | (?P<mark>==|!=|<=|>=|&&|\|\||[-<>!+*/%?:,.\[\](){{}}])
    """,
    re.VERBOSE,
)
_ESCAPED: Final = re.compile(_ESCAPE)
_CONTROL: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CONSTANTS: Final[dict[str, tuple[Kind, bool | None]]] = {
    "true": ("bool", True),
    "false": ("bool", False),
    "null": ("null", None),
}
_PRECEDENCE: Final = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
_SURROGATES: Final = range(0xD800, 0xE000)
_TRIPLE_LENGTH_MIN: Final = 6
_INT_MAX: Final = 2**63 - 1
_UINT_MAX: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def parse_cel(text: str) -> Node:
    """The tree of an expression; InputError where it is none, too long or too deep."""
    if len(text) > LENGTH_MAX:
        raise InputError(f"predicate has {len(text)} characters, more than {LENGTH_MAX}: shorten it")
    return _Parser(text).parse()


def source_of(node: Node, text: str) -> str:
    """The text of a node, fit to stand in parentheses on a line."""
    part = text[node.start : node.end]
    if "//" not in part:
        return part
    # A comment would swallow whatever follows the part on its line.
    return " ".join(token.text for token in _tokens(text) if token.start >= node.start and token.end <= node.end)


def refuse(text: str, position: int, what: str) -> NoReturn:
    """Raise the error of one place in a predicate."""
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    raise InputError(f"predicate, line {line}, column {column}: {what}", line=line, column=column)


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            if text[at] in "\"'":
                refuse(text, at, f"{shown(text[at:])} is no string: the quote is not closed, or an escape is unknown")
            hint = {"=": ": write == to compare", "&": ": write &&", "|": ": write ||"}.get(text[at], "")
            refuse(text, at, f"{shown(text[at])} has no meaning here{hint}")
        if match.lastgroup and match.lastgroup != "space":
            found.append(_Token(match.lastgroup, match[0], at, match.end()))
        at = match.end()
    found.append(_Token("end", "", at, at))
    return found


class _Parser:
    """One pass over the tokens; operators are stacked, so only brackets and `?:` recurse."""

    def __init__(self, text: str) -> None:
        surrogate = re.search("[\ud800-\udfff]", text)
        if surrogate:
            refuse(text, surrogate.start(), f"{shown(surrogate[0])} is half a character: the text is not UTF-8")
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0
        self.nesting = 0

    def parse(self) -> Node:
        node = self.expression()
        if self.token.kind != "end":
            self.unexpected("an operator such as && or ==, or the end")
        return node

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def sees(self, *marks: str) -> bool:
        return self.token.kind in ("mark", "word") and self.token.text in marks

    def take(self) -> _Token:
        token = self.token
        self.at += 1
        return token

    def accept(self, mark: str) -> bool:
        seen = self.sees(mark)
        self.at += seen
        return seen

    def expect(self, mark: str) -> _Token:
        if not self.sees(mark):
            self.unexpected(f"'{mark}'")
        return self.take()

    def unexpected(self, wanted: str) -> NoReturn:
        token = self.token
        what = "the text ends" if token.kind == "end" else f"unexpected {shown(token.text)}"
        hint = {"and": " (write &&)", "or": " (write ||)", "not": " (write !)"}.get(token.text.lower(), "")
        refuse(self.text, token.start, f"{what}{hint}: expected {wanted}")

    def checked(self, start: int, below: Iterable[Node]) -> dict[str, int]:
        depth = 1 + max((node.depth for node in below), default=0)
        if depth > DEPTH_MAX:
            self.too_deep(start)
        return {"start": start, "end": self.tokens[self.at - 1].end, "depth": depth}

    def too_deep(self, start: int) -> NoReturn:
        refuse(self.text, start, f"nested deeper than {DEPTH_MAX} levels: simplify it")

    def expression(self) -> Node:
        self.nesting += 1
        if self.nesting > DEPTH_MAX:
            self.too_deep(self.token.start)
        start = self.token.start
        node = self.operators()
        if self.accept("?"):
            then = self.operators()
            self.expect(":")
            otherwise = self.expression()
            place = self.checked(start, (node, then, otherwise))
            node = Ternary(condition=node, then=then, otherwise=otherwise, **place)
        self.nesting -= 1
        return node

    def operators(self) -> Node:
        # Where each operand begins, its parentheses included: the source of a part must be whole.
        begins, operands, waiting = [self.token.start], [self.operand()], list[str]()
        while self.sees(*_PRECEDENCE):
            while waiting and _PRECEDENCE[waiting[-1]] >= _PRECEDENCE[self.token.text]:
                self.reduce(begins, operands, waiting.pop())
            waiting.append(self.take().text)
            begins.append(self.token.start)
            operands.append(self.operand())
        while waiting:
            self.reduce(begins, operands, waiting.pop())
        return operands[0]

    def reduce(self, begins: list[int], operands: list[Node], operator: str) -> None:
        right, left = operands.pop(), operands.pop()
        begins.pop()
        if operator in ("&&", "||"):
            parts = (*_parts(left, operator), *_parts(right, operator))
            operands.append(Chain(operator=operator, parts=parts, **self.checked(begins[-1], parts)))
        else:
            place = self.checked(begins[-1], (left, right))
            operands.append(Binary(operator=operator, left=left, right=right, **place))

    def operand(self) -> Node:
        start = self.token.start
        operator = self.token.text if self.sees("!", "-") else ""
        count = 0
        while operator and self.sees(operator) and not self.sees_negative():
            self.take()
            count += 1
        node = self.member()
        # As in the engine, an even number of signs is none.
        return Unary(operator=operator, operand=node, **self.checked(start, (node,))) if count % 2 else node

    def sees_negative(self) -> bool:
        return self.sees("-") and self.tokens[self.at + 1].kind in ("int", "double")

    def member(self) -> Node:
        start = self.token.start
        node = self.primary()
        while self.sees(".", "["):
            if self.accept("."):
                if self.token.kind != "word" or self.token.text in (*_CONSTANTS, "in"):
                    self.unexpected("the name of a field")
                name = self.take().text
                if self.accept("("):
                    args = self.items(")", self.expression)
                    place = self.checked(start, (node, *args))
                    node = Call(function=name, target=node, args=args, **place)
                else:
                    node = Select(operand=node, field=name, **self.checked(start, (node,)))
            else:
                self.take()
                index = self.expression()
                self.expect("]")
                node = Index(operand=node, index=index, **self.checked(start, (node, index)))
        return node

    def primary(self) -> Node:
        token = self.token
        if token.kind in ("string", "double", "uint", "int") or self.sees_negative():
            return self.constant()
        if self.accept("("):
            node = self.expression()
            self.expect(")")
            return node
        if self.accept("["):
            items = self.items("]", self.expression)
            return ListOf(items=items, **self.checked(token.start, items))
        if self.accept("{"):
            pairs = self.items("}", self.pair)
            items = tuple(node for pair in pairs for node in pair)
            return MapOf(items=items, **self.checked(token.start, items))
        if token.kind != "word" or token.text == "in":
            self.unexpected("a field, a value or '('")
        self.take()
        if token.text in _CONSTANTS:
            kind, value = _CONSTANTS[token.text]
            return Constant(kind=kind, value=value, **self.checked(token.start, ()))
        if self.accept("("):
            args = self.items(")", self.expression)
            return Call(function=token.text, target=None, args=args, **self.checked(token.start, args))
        return Name(name=token.text, **self.checked(token.start, ()))

    def pair(self) -> tuple[Node, Node]:
        key = self.expression()
        self.expect(":")
        return key, self.expression()

    def items(self, closing: str, read: Callable[[], _Item]) -> tuple[_Item, ...]:
        found: list[_Item] = []
        while not self.accept(closing):
            found.append(read())
            # The engine allows a comma after the last item of a list or a map, and of a call it does not.
            if not self.accept(",") or (closing == ")" and self.sees(closing)):
                self.expect(closing)
                break
        return tuple(found)

    def constant(self) -> Constant:
        start = self.token.start
        sign = "-" if self.accept("-") else ""
        token = self.take()
        place = self.checked(start, ())
        if token.kind == "string":
            return self.text_constant(token)
        if token.kind == "double":
            return Constant(kind="double", value=float(sign + token.text), **place)
        digits = token.text.rstrip("uU")
        value = int(sign + digits, 16 if digits.startswith("0x") else 10)
        is_uint = token.kind == "uint"
        if value > (_UINT_MAX if is_uint else _INT_MAX) or value < -_INT_MAX - 1:
            refuse(self.text, start, f"{shown(sign + token.text)} is out of range: give a number of 64 bits")
        return Constant(kind="uint" if is_uint else "int", value=value, **place)

    def text_constant(self, token: _Token) -> Constant:
        place = self.checked(token.start, ())
        text = token.text
        is_bytes = text[0] in "bB"
        text = text[is_bytes:]
        is_raw = text[0] in "rR"
        text = text[is_raw:]
        width = 3 if text[:3] in ("'''", '"""') and len(text) >= _TRIPLE_LENGTH_MIN else 1
        text = text[width:-width].replace("\r\n", "\n").replace("\r", "\n")
        if is_bytes:
            # Nothing that is kept in columns is bytes: their values are the engine's business.
            return Constant(kind="bytes", value=text.encode(), **place)
        if not is_raw:
            try:
                text = _ESCAPED.sub(_unescaped, text)
            except ValueError:
                refuse(self.text, token.start, f"{shown(token.text)} escapes something that is no character")
        return Constant(kind="string", value=text, **place)


def _parts(node: Node, operator: str) -> tuple[Node, ...]:
    return node.parts if isinstance(node, Chain) and node.operator == operator else (node,)


def _unescaped(match: re.Match[str]) -> str:
    letter, digits = match[0][1], match[0][2:]
    if not digits:
        return _CONTROL.get(letter, letter)
    code = int(digits, 16) if letter in "xXuU" else int(letter + digits, 8)
    if code in _SURROGATES:
        raise ValueError(code)
    return chr(code)
