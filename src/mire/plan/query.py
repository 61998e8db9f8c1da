"""How a query is answered: what of its predicate SQL decides, what is evaluated per row, what needs content.

Owns: the split of a predicate, the implicit latest-only rule, the order of rows.
Must not know: the database, the engine, where content comes from.
Keeps: a row that the predicate matches satisfies `where`; where `residual` is None the converse holds too.
Values reach SQL as parameters only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from mire.errors import InputError, shown
from mire.model.cel import Chain, Node
from mire.plan.fields import COLUMNS, FIELDS
from mire.plan.predicate import CONTENT_FIELDS, check_predicate, fields_of, nearest
from mire.plan.translate import Param, Sql, Translation, joined
from mire.wire.cel import parse_cel, source_of

TIE_BREAK: Final = ("namespace", "model_type", "model_id", "name", "version")
"""The primary key: with it every order is total, so that pages neither repeat nor lose a row."""

Decider: TypeAlias = Literal["sql", "record", "content"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One conjunct of the predicate: who decides it, and the SQL that decides it or narrows it down."""

    text: str
    by: Decider
    sql: str | None
    params: tuple[Param, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """First `where`, then `metadata_residual` on the rows left, then content, then `residual`.

    `residual` includes `metadata_residual`, so that a caller without the middle step is right too. A row whose
    metadata residual fails at run time is decided by `residual`: there a false part may absorb the error.
    """

    where: str
    params: tuple[Param, ...]
    residual: str | None
    metadata_residual: str | None
    needs_content: bool
    is_latest_only: bool
    mentions_namespace: bool
    """Whether the predicate is about `ns`: then it is meant for rows of other namespaces, too."""
    explain: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlan:
    """ORDER BY, and its terms as (column, whether descending) for a cursor."""

    order_by: str
    terms: tuple[tuple[str, bool], ...]

    def position_of(self, columns: Sequence[str], values: Sequence[Param]) -> tuple[Param, ...]:
        """The values of a row that say where it stands in this order."""
        return tuple(values[columns.index(column)] for column, _ in self.terms)


def plan_query(predicate: str, *, history: bool = False, strict: bool = False) -> QueryPlan:
    """Split a predicate into SQL and the rest. With `strict`, whatever may miss a key is left to the engine."""
    tree = parse_cel(predicate)
    check_predicate(tree, predicate)
    conjuncts = tree.parts if isinstance(tree, Chain) and tree.operator == "&&" else (tree,)
    translate = Translation(strict=strict)
    is_latest_only = not history and not fields_of(tree) & {"version", "isLatest"}
    steps = [_step(node, predicate, translate) for node in conjuncts]
    if is_latest_only:
        steps.insert(0, Step(text="isLatest", by="sql", sql="is_latest = 1", params=()))
    narrowing = [Sql(sql=s.sql, params=s.params, type="bool") for s in steps if s.sql is not None]
    where = joined("AND", narrowing) if narrowing else Sql(sql="1", params=(), type="bool")
    needs_content = any(step.by == "content" for step in steps)
    return QueryPlan(
        where=where.sql,
        params=where.params,
        residual=_conjunction([step for step in steps if step.by != "sql"]),
        metadata_residual=_conjunction([step for step in steps if step.by == "record"]),
        needs_content=needs_content,
        is_latest_only=is_latest_only,
        mentions_namespace="ns" in fields_of(tree),
        explain=tuple(steps),
    )


def plan_order(text: str) -> OrderPlan:
    """The order a text such as `createdAt desc, name` asks for, made total by the primary key."""
    terms: dict[str, bool] = {}
    for part in text.split(","):
        name, *rest = part.split() or [""]
        if name not in COLUMNS or name == "tags":
            sortable = {field: column for field, column in COLUMNS.items() if field != "tags"}
            what = "has no order" if name in FIELDS else f"is no field{nearest(name, sortable)}"
            raise InputError(f"order {shown(text)}: {shown(name)} {what}: give some of {', '.join(sortable)}")
        if len(rest) > 1 or (rest and rest[0].lower() not in ("asc", "desc")):
            raise InputError(f"order {shown(text)}: after {shown(name)} comes asc, desc or a comma")
        if COLUMNS[name] in terms:
            raise InputError(f"order {shown(text)}: {shown(name)} is there twice")
        terms[COLUMNS[name]] = bool(rest) and rest[0].lower() == "desc"
    for column in TIE_BREAK:
        terms.setdefault(column, False)
    order_by = ", ".join(f"{column} DESC" if descending else column for column, descending in terms.items())
    return OrderPlan(order_by=order_by, terms=tuple(terms.items()))


def plan_after(order: OrderPlan, values: Sequence[Param]) -> Sql:
    """The condition for the rows that come after the one with these values, in this order."""
    sql = "0"
    params: tuple[Param, ...] = ()
    for (column, descending), value in zip(reversed(order.terms), reversed(values), strict=True):
        sql = f"({column} {'<' if descending else '>'} ? OR ({column} = ? AND {sql}))"
        params = (value, value, *params)
    # What every such row fulfils, said once more in the form an index can use.
    column, descending = order.terms[0]
    return Sql(sql=f"{column} {'<=' if descending else '>='} ? AND {sql}", params=(values[0], *params), type="bool")


def _step(node: Node, predicate: str, translate: Translation) -> Step:
    exact = translate.condition(node)
    narrowing = exact or translate.bound(node)
    by: Decider = "sql" if exact else "content" if fields_of(node) & CONTENT_FIELDS else "record"
    return Step(
        text=source_of(node, predicate),
        by=by,
        sql=narrowing.sql if narrowing else None,
        params=narrowing.params if narrowing else (),
    )


def _conjunction(steps: Sequence[Step]) -> str | None:
    if not steps:
        return None
    return steps[0].text if len(steps) == 1 else " && ".join(f"({step.text})" for step in steps)
