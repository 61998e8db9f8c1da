"""The tree of a CEL expression: what a predicate says, before anybody judges it.

Owns: the kinds of nodes, and where in the text each stands.
Must not know: how the text is read, which names exist, SQL.
Keeps: a tree is never changed; `depth` counts the levels from a node down, so that a walk may recurse.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["string", "bytes", "int", "uint", "double", "bool", "null"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    start: int
    end: int
    depth: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(_Node):
    """A literal and its value."""

    kind: Kind
    value: str | bytes | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Name(_Node):
    """A root identifier."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(_Node):
    """`operand.field`."""

    operand: "Node"
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Index(_Node):
    """`operand[index]`."""

    operand: "Node"
    index: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(_Node):
    """`function(args)` or, with a target, `target.function(args)`."""

    function: str
    target: "Node | None"
    args: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary(_Node):
    """`!operand` or `-operand`."""

    operator: str
    operand: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(_Node):
    """A comparison, `in`, or arithmetic."""

    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain(_Node):
    """Two or more operands joined by `&&` or by `||`."""

    operator: str
    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ternary(_Node):
    """`condition ? then : otherwise`."""

    condition: "Node"
    then: "Node"
    otherwise: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf(_Node):
    """`[items]`."""

    items: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf(_Node):
    """`{key: value}`; keys and values take turns."""

    items: "tuple[Node, ...]"


Node: TypeAlias = Constant | Name | Select | Index | Call | Unary | Binary | Chain | Ternary | ListOf | MapOf


def children_of(node: Node) -> tuple[Node, ...]:
    """The nodes directly below a node, in the order of the text."""
    match node:
        case Constant() | Name():
            return ()
        case Select(operand=operand) | Unary(operand=operand):
            return (operand,)
        case Index(operand=operand, index=index):
            return (operand, index)
        case Call(target=target, args=args):
            return args if target is None else (target, *args)
        case Binary(left=left, right=right):
            return (left, right)
        case Chain(parts=parts):
            return parts
        case Ternary(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case ListOf(items=items) | MapOf(items=items):
            return items
