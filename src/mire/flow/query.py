"""Answering queries: SQL on the catalog first, the rest per candidate row, content only for those that need it.

Owns: the order look, select, evaluate, load, evaluate again.
Must not know: how a predicate is translated.
Keeps: an answer equals the one a reader of every file would give, or is a typed error; rows whose content made
the predicate fail are counted and named, never silently dropped.
"""

import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mire.edge import files
from mire.errors import ConfigError, InputError, MireError, shown
from mire.flow.catalog import Progress, fresh
from mire.flow.datastore import Datastore
from mire.flow.read import get
from mire.model.artifact import ModelRef
from mire.model.names import DataName, ModelId, ModelType
from mire.model.row import NAMES
from mire.plan.fields import COLUMNS

if TYPE_CHECKING:
    from mire.flow.evaluate import Failure, Predicate, Selected

_FIELDS = {"namespace": "namespace", **COLUMNS}
_PLACE = {name: NAMES.index(column) for name, column in _FIELDS.items()}
_BOOLEAN = ("isLatest", "streaming")
_TEXT_TYPES = ("application/json", "application/yaml", "application/x-yaml")
_PROBLEMS_SHOWN = 20
_ORDER = "createdAt desc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is asked."""

    predicate: str
    select: str | None = None
    order_by: str | None = None
    limit: int | None = None
    offset: int = 0
    history: bool = False
    hydrate: bool = True
    strict: bool = False


@dataclass(slots=True)
class Answer:
    """What was found: records (or selected values), and what could not be judged."""

    rows: list[Any] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    is_limited: bool = False

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table` (needs pyarrow); maps and parsed content become JSON text."""
        return _needed("pyarrow").Table.from_pylist([_flat(row) for row in self.rows])

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame` (needs pandas)."""
        return _needed("pandas").DataFrame.from_records([_flat(row) for row in self.rows])


def _needed(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise ConfigError(f"this needs the package {package}: install it beside mire", kind="missing_package") from None


def _flat(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        return {"value": row}
    return {
        key: json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
        for key, value in row.items()
    }


def query(
    ds: Datastore, asked: Query, *, force: bool = False, workers: int = 1, progress: Progress | None = None
) -> Answer:
    """The records a predicate matches."""
    from mire.flow.evaluate import compile_predicate, compile_select  # noqa: PLC0415 - only queries need it
    from mire.plan.predicate import CONTENT_FIELDS, fields_of  # noqa: PLC0415 - the same
    from mire.plan.query import plan_order, plan_query  # noqa: PLC0415 - the same
    from mire.wire.cel import parse_cel  # noqa: PLC0415 - the same

    _check_page(asked)
    plan = plan_query(asked.predicate, history=asked.history, strict=asked.strict)
    order = plan_order(asked.order_by or _ORDER).order_by
    select = None if asked.select is None else compile_select(asked.select)
    shows_content = asked.select is not None and bool(fields_of(parse_cel(asked.select)) & CONTENT_FIELDS)
    before = None if plan.metadata_residual is None else compile_predicate(plan.metadata_residual, strict=asked.strict)
    after = None if plan.residual is None else compile_predicate(plan.residual, strict=asked.strict)
    sql = f"SELECT {','.join(NAMES)} FROM version WHERE {plan.where} ORDER BY {order}"  # noqa: S608 - from the planner
    is_exact = plan.residual is None
    if is_exact and asked.limit is not None:
        sql += f" LIMIT {asked.limit + 1} OFFSET {asked.offset}"
    answer = Answer()
    left = 0 if is_exact and asked.limit is not None else asked.offset
    with fresh(ds, force=force, workers=workers, progress=progress) as (catalog, done):
        answer.notices += done.notices
        answer.problems += done.errors[:_PROBLEMS_SHOWN]
        for values in catalog.rows(sql, plan.params):
            record = record_of(values)
            # A failure is left to the whole: a content part that is false may absorb it.
            if before is not None and plan.needs_content and before.judge(record) is False:
                continue
            if plan.needs_content:
                record.update(_content(ds, record, hydrate=asked.hydrate))
            if after is not None and not _matches(after, record, answer):
                continue
            if left > 0:
                left -= 1
                continue
            if asked.limit is not None and len(answer.rows) >= asked.limit:
                answer.is_limited = True
                break
            if shows_content and "attributes" not in record:
                record.update(_content(ds, record, hydrate=asked.hydrate))
            answer.rows.append(record if select is None else _selected(select.select(record), record, answer))
    return answer


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
    }


def record_of(values: tuple[Any, ...]) -> dict[str, Any]:
    """A catalog row as the record predicates are about, content aside."""
    record = {name: values[place] for name, place in _PLACE.items()}
    record["tags"] = json.loads(record["tags"])
    for name in _BOOLEAN:
        record[name] = bool(record[name])
    return record


def _matches(predicate: "Predicate", record: dict[str, Any], answer: Answer) -> bool:
    verdict = predicate.judge(record)
    if isinstance(verdict, bool):
        return verdict
    if predicate.strict:
        raise InputError(f"{_label(record)}: {verdict.message}", kind="evaluation", reason=verdict.reason)
    _problem(answer, record, verdict.message)
    return False


def _selected(found: "Selected | Failure", record: dict[str, Any], answer: Answer) -> Any:
    if hasattr(found, "value"):
        return found.value
    if found.reason != "missing":
        _problem(answer, record, found.message)
    return None


def _problem(answer: Answer, record: dict[str, Any], message: str) -> None:
    if len(answer.problems) < _PROBLEMS_SHOWN:
        answer.problems.append(f"{_label(record)}: {message}")


def _label(record: dict[str, Any]) -> str:
    return f"{record['modelType']}/{record['modelId']} {record['name']} version {record['version']}"


def _content(ds: Datastore, record: dict[str, Any], *, hydrate: bool) -> dict[str, Any]:
    """`attributes` and `content` of a record: parsed JSON, text, or empty; null when it is not to be brought here."""
    kind = record["contentType"]
    if not kind.startswith("text/") and kind not in _TEXT_TYPES:
        return {"attributes": {}, "content": ""}
    model = ModelRef(model_type=ModelType(record["modelType"]), model_id=ModelId(record["modelId"]))
    try:
        artifact = get(ds, model, DataName(record["name"]), record["version"])
        if not hydrate and not files.is_file(artifact.path):
            return {"attributes": None, "content": None}
        text = artifact.text()
    except MireError as error:
        if error.kind == "not_text":
            return {"attributes": {}, "content": ""}
        raise
    if kind == "application/json":
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            return {"attributes": {}, "content": text}
        return {"attributes": parsed if isinstance(parsed, dict) else {}, "content": parsed}
    return {"attributes": {}, "content": text}


def _check_page(asked: Query) -> None:
    for what, value, least in (("limit", asked.limit, 1), ("offset", asked.offset, 0)):
        if value is not None and (type(value) is not int or value < least):
            raise InputError(f"{what} {shown(value)} is not a whole number from {least}")
