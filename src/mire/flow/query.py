"""Answering queries: SQL on the catalog first, the rest per candidate row, content only for those that need it.

Owns: the order look, select, evaluate, load, evaluate again.
Must not know: how a predicate is translated.
Keeps: an answer equals the one a reader of every file would give, or is a typed error; rows whose content made
the predicate fail are counted and named, never silently dropped.
"""

import json
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from mire.errors import InputError, MireError, shown
from mire.flow.answer import Answer, Findings
from mire.flow.catalog import Progress, fresh
from mire.flow.content import NOT_HERE, content_path, is_text, own_content
from mire.flow.datastore import Datastore
from mire.flow.hydrate import hydrate
from mire.flow.imports import has_imports, open_imports
from mire.flow.others import load_others
from mire.model.row import NAMES
from mire.plan.fields import COLUMNS
from mire.wire.cursor import decode_cursor, encode_cursor

if TYPE_CHECKING:
    from collections.abc import Callable

    from mire.edge.catalog import CatalogFile
    from mire.flow.evaluate import Failure, Predicate, Selected, Selection
    from mire.plan.query import OrderPlan, QueryPlan
    from mire.plan.translate import Sql

_FIELDS = {"namespace": "namespace", **COLUMNS}
_PLACE = {name: NAMES.index(column) for name, column in _FIELDS.items()}
_BOOLEAN = ("isLatest", "streaming")
_PROBLEMS_SHOWN = 20
_ORDER = "createdAt desc"
_HYDRATED_AT_ONCE = 256
_ALL_ROWS = f"""(SELECT {",".join(NAMES)} FROM main.version
    UNION ALL SELECT {",".join(NAMES)} FROM beside.version WHERE namespace <> ?)"""  # noqa: S608 - our own names


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked."""

    predicate: str
    select: str | None = None
    order_by: str | None = None
    limit: int | None = None
    offset: int = 0
    cursor: str | None = None
    history: bool = False
    hydrate: bool = True
    strict: bool = False
    all_namespaces: bool = False
    """Rows of other namespaces, too; a predicate that mentions `ns` asks for them by that."""


def query(
    ds: Datastore, asked: Query, *, force: bool = False, workers: int = 1, progress: Progress | None = None
) -> Answer:
    """The records a predicate matches, found when they are asked for; what is asked is checked now."""
    from mire.flow.evaluate import compile_predicate, compile_select  # noqa: PLC0415 - only queries need it
    from mire.plan.predicate import CONTENT_FIELDS, fields_of  # noqa: PLC0415 - the same
    from mire.plan.query import plan_after, plan_order, plan_query  # noqa: PLC0415 - the same
    from mire.wire.cel import parse_cel  # noqa: PLC0415 - the same

    _check_page(asked)
    plan = plan_query(asked.predicate, history=asked.history, strict=asked.strict)
    order = plan_order(asked.order_by or _ORDER)
    start = None
    if asked.cursor is not None:
        start = plan_after(order, decode_cursor(asked.cursor, order.order_by, len(order.terms)))
    prepared = _Prepared(
        asked=asked,
        plan=plan,
        order=order,
        start=start,
        select=None if asked.select is None else compile_select(asked.select),
        shows_content=asked.select is not None and bool(fields_of(parse_cel(asked.select)) & CONTENT_FIELDS),
        before=_compiled(plan.metadata_residual, compile_predicate, strict=asked.strict),
        after=_compiled(plan.residual, compile_predicate, strict=asked.strict),
    )

    def run(findings: Findings) -> Iterator[Any]:
        with ExitStack() as stack:
            catalog, done = stack.enter_context(fresh(ds, force=force, workers=workers, progress=progress))
            findings.notices += done.notices
            findings.problems += done.errors[:_PROBLEMS_SHOWN]
            if prepared.is_spanning and has_imports(ds):
                stack.enter_context(catalog.beside(stack.enter_context(open_imports(ds))))
                yield from _found(ds, catalog, replace(prepared, table=_ALL_ROWS, own=ds.config.namespace), findings)
            else:
                yield from _found(ds, catalog, prepared, findings)

    return Answer(run)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A query that was checked: its plan and its compiled parts."""

    asked: Query
    plan: "QueryPlan"
    order: "OrderPlan"
    start: "Sql | None"
    select: "Selection | None"
    shows_content: bool
    before: "Predicate | None"
    after: "Predicate | None"
    table: str = "version"
    own: str | None = None
    """Our namespace, where rows of others are beside ours: of ours only those in our own catalog count."""

    @property
    def is_spanning(self) -> bool:
        """Whether rows of other namespaces are asked for."""
        return self.asked.all_namespaces or self.plan.mentions_namespace

    @property
    def is_exact(self) -> bool:
        """Whether SQL decides everything, and so can count a page too."""
        return self.plan.residual is None and self.asked.limit is not None

    def statement(self) -> tuple[str, tuple[Any, ...]]:
        """The statement for the candidate rows, and its parameters."""
        where, params = self.plan.where, self.plan.params
        if self.start is not None:
            where, params = f"({where}) AND {self.start.sql}", (*params, *self.start.params)
        sql = f"SELECT {','.join(NAMES)} FROM {self.table} WHERE {where} ORDER BY {self.order.order_by}"  # noqa: S608 - from the planner
        if self.is_exact and self.asked.limit is not None:
            sql += f" LIMIT {self.asked.limit + 1} OFFSET {self.asked.offset}"
        return sql, params if self.own is None else (self.own, *params)


def _compiled(text: str | None, compile_text: "Callable[..., Predicate]", *, strict: bool) -> "Predicate | None":
    return None if text is None else compile_text(text, strict=strict)


def _found(ds: Datastore, catalog: "CatalogFile", query: _Prepared, findings: Findings) -> Iterator[Any]:
    asked = query.asked
    left = 0 if query.is_exact else asked.offset
    count, last = 0, ()
    # Closed by name: an error keeps its frames, and a cursor in one of them would outlive its connection.
    with closing(_candidates(catalog, query)) as candidates:
        for values, record in _loaded(ds, candidates, query, findings):
            if query.after is not None and not _matches(query.after, record, findings):
                continue
            if left > 0:
                left -= 1
                continue
            if count == asked.limit:
                findings.is_limited = True
                findings.cursor = encode_cursor(query.order.order_by, query.order.position_of(NAMES, last))
                return
            if query.shows_content and "attributes" not in record:
                record.update(_shown_content(ds, record, query, findings))
            count, last = count + 1, values
            yield record if query.select is None else _selected(query.select.select(record), record, findings)


_Candidate = tuple[tuple[Any, ...], dict[str, Any]]


def _candidates(catalog: "CatalogFile", query: _Prepared) -> Generator[_Candidate, None, None]:
    """The rows that the metadata part of a predicate lets through."""
    for values in catalog.rows(*query.statement()):
        record = record_of(values)
        # A failure is left to the whole: a content part that is false may absorb it.
        if query.before is None or not query.plan.needs_content or query.before.judge(record) is not False:
            yield values, record


def _loaded(
    ds: Datastore, candidates: Iterator[_Candidate], query: _Prepared, findings: Findings
) -> Iterator[_Candidate]:
    """Candidates with their content, if the predicate needs it; what is at the remote comes a batch at a time."""
    if not query.plan.needs_content:
        yield from candidates
        return
    size = 1  # the first row must not wait for many
    while batch := list(islice(candidates, size)):
        ours = [record for _, record in batch if _is_ours(ds, record)]
        if ds.remote is not None and query.asked.hydrate:
            hydrate(ds, [content_path(record) for record in ours if is_text(record)])
        for record in ours:
            record.update(own_content(ds, record, hydrate=query.asked.hydrate))
        others = [record for _, record in batch if not _is_ours(ds, record)]
        for record, loaded in load_others(ds, others, hydrate=query.asked.hydrate) if others else ():
            if isinstance(loaded, MireError):
                _not_loaded(loaded, record, query, findings)
            else:
                record.update(loaded)
        yield from (each for each in batch if "attributes" in each[1])
        size = min(size * 4, _HYDRATED_AT_ONCE)


def _is_ours(ds: Datastore, record: dict[str, Any]) -> bool:
    return bool(record["namespace"] == ds.config.namespace)


def _shown_content(ds: Datastore, record: dict[str, Any], query: _Prepared, findings: Findings) -> dict[str, Any]:
    if _is_ours(ds, record):
        return own_content(ds, record, hydrate=query.asked.hydrate)
    ((_, loaded),) = load_others(ds, [record], hydrate=query.asked.hydrate)
    if isinstance(loaded, MireError):
        _not_loaded(loaded, record, query, findings)
        return NOT_HERE
    return loaded


def _not_loaded(error: MireError, record: dict[str, Any], query: _Prepared, findings: Findings) -> None:
    """One namespace's trouble is told, and is not the trouble of the whole answer, unless that was asked for."""
    if query.asked.strict:
        raise error
    _problem(findings, record, error.message)


def explain(asked: Query) -> dict[str, Any]:
    """What goes to SQL, what is evaluated per row, and what needs content."""
    from mire.plan.query import plan_order, plan_query  # noqa: PLC0415 - only queries need it

    plan = plan_query(asked.predicate, history=asked.history, strict=asked.strict)
    return {
        "where": plan.where,
        "parameters": list(plan.params),
        "orderBy": plan_order(asked.order_by or _ORDER).order_by,
        "steps": [{"part": step.text, "decidedBy": step.by} for step in plan.explain],
        "evaluated": plan.residual,
        "needsContent": plan.needs_content,
        "latestOnly": plan.is_latest_only,
        "allNamespaces": asked.all_namespaces or plan.mentions_namespace,
    }


def record_of(values: tuple[Any, ...]) -> dict[str, Any]:
    """A catalog row as the record predicates are about, content aside."""
    record = {name: values[place] for name, place in _PLACE.items()}
    record["tags"] = json.loads(record["tags"])
    for name in _BOOLEAN:
        record[name] = bool(record[name])
    return record


def _matches(predicate: "Predicate", record: dict[str, Any], findings: Findings) -> bool:
    verdict = predicate.judge(record)
    if isinstance(verdict, bool):
        return verdict
    if predicate.strict:
        raise InputError(f"{_label(record)}: {verdict.message}", kind="evaluation", reason=verdict.reason)
    _problem(findings, record, verdict.message)
    return False


def _selected(found: "Selected | Failure", record: dict[str, Any], findings: Findings) -> Any:
    if hasattr(found, "value"):
        return found.value
    if found.reason != "missing":
        _problem(findings, record, found.message)
    return None


def _problem(findings: Findings, record: dict[str, Any], message: str) -> None:
    if len(findings.problems) < _PROBLEMS_SHOWN:
        findings.problems.append(f"{_label(record)}: {message}")


def _label(record: dict[str, Any]) -> str:
    namespace = f"{record['namespace']}:" if record["namespace"] else ""
    return f"{namespace}{record['modelType']}/{record['modelId']} {record['name']} version {record['version']}"


def _check_page(asked: Query) -> None:
    for what, value, least in (("limit", asked.limit, 1), ("offset", asked.offset, 0)):
        if value is not None and (type(value) is not int or value < least):
            raise InputError(f"{what} {shown(value)} is not a whole number from {least}")
    if asked.cursor is not None and asked.offset:
        raise InputError(f"offset {asked.offset} and a cursor were both given: a cursor already says where to go on")
