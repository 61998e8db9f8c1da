"""Evaluate the part of a predicate that SQL could not decide, one record at a time.

Owns: the call of the Rust engine, and what its errors mean.
Must not know: SQL, the catalog, where a record comes from.
Keeps: nothing is swallowed. A missing key is no match (or, if strict, a failure); every other failure is a value
that the caller counts and reports.

The engine takes a quarter of a second to load, so it is loaded by the first predicate that needs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mire.errors import InputError, shown
from mire.plan.predicate import check_expression, check_predicate
from mire.wire.cel import parse_cel

if TYPE_CHECKING:
    import cel

Reason: TypeAlias = Literal["missing", "index", "type", "arithmetic", "function", "not_boolean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an expression has no value on one record."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """The value of an expression on one record."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A compiled predicate."""

    text: str
    program: "cel.Program"
    strict: bool = False

    def judge(self, record: Mapping[str, Any]) -> bool | Failure:
        """Whether a record matches, or why that cannot be said."""
        found = _run(self.program, record)
        if isinstance(found, Failure):
            return False if found.reason == "missing" and not self.strict else found
        if isinstance(found.value, bool):
            return found.value
        return Failure(reason="not_boolean", message=f"the predicate gives {shown(found.value)}, not true or false")

    def matches(self, record: Mapping[str, Any]) -> bool:
        """Whether a record matches; InputError of the kind `evaluation` where that cannot be said."""
        verdict = self.judge(record)
        if isinstance(verdict, Failure):
            raise InputError(
                f"predicate {shown(self.text)}: {verdict.message}", kind="evaluation", reason=verdict.reason
            )
        return verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A compiled expression of any type."""

    text: str
    program: "cel.Program"

    def select(self, record: Mapping[str, Any]) -> Selected | Failure:
        """What the expression gives on a record, or why it gives nothing."""
        return _run(self.program, record)


def compile_predicate(text: str, *, strict: bool = False) -> Predicate:
    """Check and compile a predicate; with `strict` a missing key is a failure, too."""
    check_predicate(parse_cel(text), text)
    return Predicate(text=text, program=_compiled(text), strict=strict)


def compile_select(text: str) -> Selection:
    """Check and compile an expression of any type, as `--select` takes it."""
    check_expression(parse_cel(text), text)
    return Selection(text=text, program=_compiled(text))


def _compiled(text: str) -> "cel.Program":
    import cel  # noqa: PLC0415 - a quarter of a second that only a query with something to evaluate pays

    try:
        return cel.compile(text)
    except ValueError as error:
        reason = str(error).partition("ERROR: <input>:")[2].splitlines()
        raise InputError(f"predicate {shown(text)}: the engine refuses it: {reason[0] if reason else error}") from None


def _run(program: "cel.Program", record: Mapping[str, Any]) -> Selected | Failure:
    try:
        return Selected(value=program.execute(dict(record)))
    except KeyError as error:
        return Failure(reason="missing", message=f"there is no key {shown(error.args[0].strip(chr(39)))}")
    except IndexError as error:
        return Failure(reason="index", message=str(error))
    except TypeError as error:
        # The engine's text goes on with advice for people who write Python.
        return Failure(reason="type", message=str(error).partition(". CEL does not")[0])
    except ArithmeticError as error:
        return Failure(reason="arithmetic", message=str(error))
    except (RuntimeError, ValueError) as error:
        reason: Reason = "type" if "Undefined variable or function" in str(error) else "function"
        return Failure(reason=reason, message=str(error).partition(". Check ")[0])
