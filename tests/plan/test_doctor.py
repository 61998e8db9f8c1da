"""What trials prove: the verdict on conditional writes, the checks, and that nothing unproved is called good."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import DeniedError, FormatError, RemoteError
from mire.model.doctor import Evidence, Report, Trial
from mire.plan.backend import GCS_SCHEMA, S3_SCHEMA
from mire.plan.doctor import conditional_writes_of, impossible_fingerprint, report_of, surely_ahead_ms
from mire.plan.doctordir import directory_report_of

YES, NO, UNTRIED = Trial("yes"), Trial("no"), Trial()
UNKNOWN = Trial("unknown", RemoteError("the answer was lost", transient=True))
BROKEN = Trial("failed", RemoteError("it does not know how"))
BUSY = Trial("failed", RemoteError("not now", transient=True))
DENIED = Trial("failed", DeniedError("no right"))
GOOD = Evidence(
    contact=YES,
    marker=YES,
    create=YES,
    read_back=YES,
    create_again=NO,
    replace_wrong=NO,
    unharmed=YES,
    replace_right=YES,
    read_new=YES,
    unchanged=YES,
    delete_wrong=NO,
    delete_right=YES,
    gone=YES,
    listed=YES,
    listed_after=YES,
    paged=YES,
    clock=YES,
    requests=25,
)


def report(evidence: Evidence, **options: Any) -> Report:
    """The report on a store with this evidence."""
    given_options = {"schema": S3_SCHEMA, "name": "s3://bucket", "relies_on_delete": True, "allow_untrusted": False}
    return report_of(evidence, **{**given_options, **options})


def results(told: Report) -> dict[str, str]:
    """The result of each check."""
    return {check.name: check.result for check in told.checks}


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "supported"),
        ({"create": DENIED}, "write-denied"),
        ({"replace_right": DENIED}, "write-denied"),
        ({"create": BUSY}, "inconclusive"),
        ({"create": UNKNOWN}, "inconclusive"),
        ({"create": NO}, "inconclusive"),
        ({"create": UNTRIED}, "inconclusive"),
        ({"create_again": YES}, "ignored"),
        ({"create_again": YES, "replace_wrong": YES}, "ignored"),
        ({"replace_wrong": YES}, "ignored"),
        ({"unharmed": NO}, "ignored"),
        ({"create_again": BUSY}, "inconclusive"),
        ({"create_again": UNKNOWN}, "inconclusive"),
        ({"unharmed": BUSY}, "inconclusive"),
        ({"replace_right": NO, "unquoted_right": YES, "unquoted_wrong": NO}, "if-match-unquoted"),
        ({"replace_right": NO, "unquoted_right": YES, "unquoted_wrong": YES}, "if-match-unsupported"),
        ({"replace_right": NO, "unquoted_right": NO, "unquoted_wrong": NO}, "if-match-unsupported"),
        ({"replace_right": NO}, "if-match-unsupported"),
        ({"replace_right": NO, "unquoted_right": BUSY, "unquoted_wrong": NO}, "inconclusive"),
        ({"replace_right": BROKEN}, "if-match-unsupported"),
        ({"replace_right": BROKEN, "replace_wrong": BROKEN}, "if-match-unsupported"),
        ({"replace_right": BUSY}, "inconclusive"),
        ({"replace_right": UNKNOWN}, "inconclusive"),
        ({"replace_wrong": BUSY}, "inconclusive"),
        ({"replace_right": UNTRIED}, "inconclusive"),
    ],
)
def test_the_verdict_on_conditional_writes(changes: dict[str, Trial], verdict: str) -> None:
    """Each combination of outcomes has the reference's word for it."""
    assert conditional_writes_of(replace(GOOD, **changes)) == verdict  # type: ignore[arg-type]


def test_a_good_store_is_healthy() -> None:
    """Everything proved: no error, no failed check, and a report that says so."""
    told = report(GOOD)
    assert (told.is_healthy, told.message, told.error) == (True, "safe to share", None)
    assert set(results(told).values()) == {"ok"}
    assert told.details["conditionalWrites"] == "supported"
    assert told.details["probeCleanup"] == "ok"


def test_what_was_not_tried_is_named() -> None:
    """A store whose paging was not tried is healthy, and the message says what is open."""
    told = report(replace(GOOD, paged=UNTRIED))
    assert told.is_healthy
    assert told.message == "safe to share; not proved: paging"


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"create_again": YES}, "create only once"),
        ({"replace_wrong": YES}, "replace if unchanged"),
        ({"replace_right": NO}, "replace if unchanged"),
        ({"delete_wrong": YES}, "remove if unchanged"),
    ],
)
def test_a_store_that_cannot_be_trusted_is_refused_unless_allowed(changes: dict[str, Trial], check: str) -> None:
    """Ignored conditions fail the store; allowing it makes them notes and says for whom it is."""
    evidence = replace(GOOD, **changes)  # type: ignore[arg-type]
    told = report(evidence)
    assert not told.is_healthy
    assert results(told)[check] == "fail"
    assert told.error is not None
    assert (told.error.kind, told.error.exit_code) == ("untrusted", 5)
    allowed = report(evidence, allow_untrusted=True)
    assert allowed.is_healthy
    assert results(allowed)[check] == "warn"
    assert "one writer" in allowed.message


@pytest.mark.parametrize(
    ("changes", "exit_code"),
    [
        ({"create": DENIED, "create_again": UNTRIED, "replace_wrong": UNTRIED, "replace_right": UNTRIED}, 6),
        ({"marker": Trial("failed", FormatError("from the future"))}, 7),
        ({"create": BUSY}, 5),
        ({"create": NO}, 5),
        ({"read_back": NO}, 5),
        ({"read_new": NO}, 5),
        ({"gone": NO}, 5),
        ({"listed": NO}, 5),
        ({"listed_after": NO}, 5),
        ({"paged": NO}, 5),
        ({"delete_right": DENIED}, 6),
        ({"delete_right": NO}, 5),
    ],
)
@pytest.mark.parametrize("allow_untrusted", [False, True])
def test_other_failures_cannot_be_allowed(changes: dict[str, Trial], exit_code: int, *, allow_untrusted: bool) -> None:
    """A store that hides data, forbids writing or comes from the future is refused whatever was said."""
    told = report(replace(GOOD, **changes), allow_untrusted=allow_untrusted)  # type: ignore[arg-type]
    assert not told.is_healthy
    assert told.error is not None
    assert told.error.exit_code == exit_code


def test_without_contact_there_is_nothing_else_to_say() -> None:
    """The error of the first request is the whole report."""
    told = report(Evidence(contact=DENIED))
    assert [check.name for check in told.checks] == ["access"]
    assert told.message == "no right"
    assert told.error is DENIED.error
    assert told.details["conditionalWrites"] == "inconclusive"


def test_removals_that_ignore_conditions_have_a_remedy() -> None:
    """Where a setting helps the report names it, and with it the check is about plain removals only."""
    evidence = replace(GOOD, delete_wrong=YES)
    assert report(evidence).remedy == {"conditionalDelete": False}
    assert report(evidence, schema=GCS_SCHEMA).remedy == {}
    assert "conditionalDelete" in report(evidence).message
    assert "conditionalDelete" not in report(evidence, schema=GCS_SCHEMA).message
    assert report(GOOD).remedy == {}
    assert report(replace(GOOD, delete_wrong=UNTRIED), relies_on_delete=False).is_healthy


@pytest.mark.parametrize(
    ("ahead_ms", "result", "says"),
    [
        (0, "ok", "shows the same time as ours"),
        (2_000, "ok", "is 2.0 s ahead of ours"),
        (-4_900, "ok", "is 4.9 s behind ours"),
        (5_000, "warn", "set it"),
        (-60_000, "warn", "60.0 s behind"),
    ],
)
def test_a_clock_far_off_is_noted(ahead_ms: float, result: str, says: str) -> None:
    """A difference that could mislead the reference about locks is a note, never a failure."""
    told = report(replace(GOOD, clock_ms=ahead_ms))
    (check,) = [check for check in told.checks if check.name == "clock"]
    assert check.result == result
    assert says in check.meaning
    assert told.is_healthy


def test_probes_that_stay_behind_are_named() -> None:
    """At most three by name, so that the line stays one."""
    told = report(replace(GOOD, left_behind=("a", "b", "c", "d")))
    assert told.details["probeCleanup"] == "failed"
    assert told.details["leftBehind"] == ["a", "b", "c", "d"]
    assert told.checks[-1].meaning == "could not remove a, b, c and more: remove it by hand"
    assert told.is_healthy


TRIALS = st.sampled_from([YES, NO, UNTRIED, UNKNOWN, BROKEN, BUSY, DENIED])
NAMES = [
    field.name for field in fields(Evidence) if field.name not in ("clock_ms", "latency_ms", "requests", "left_behind")
]
MUST_BE_YES = ("contact", "marker", "create", "unharmed")


@given(st.dictionaries(st.sampled_from(NAMES), TRIALS, max_size=4))
def test_only_proof_makes_a_store_healthy(changes: dict[str, Trial]) -> None:
    """Whatever else happened: without contact, marker, refusal of the wrong and success of the right, no health."""
    evidence = replace(GOOD, **changes)  # type: ignore[arg-type]
    trials = {name: getattr(evidence, name) for name in NAMES}
    told = report(evidence)
    if not told.is_healthy:
        assert told.error is not None
        return
    assert all(trials[name].outcome == "yes" for name in MUST_BE_YES)
    assert trials["create_again"].outcome == trials["replace_wrong"].outcome == "no"
    assert "yes" in (trials["replace_right"].outcome, trials["unquoted_right"].outcome)
    assert told.details["conditionalWrites"] in ("supported", "if-match-unquoted")
    for name in ("read_back", "read_new", "gone", "listed", "listed_after", "delete_right"):
        assert trials[name].outcome == "yes", name
    assert trials["paged"].outcome in ("yes", "untried")


@pytest.mark.parametrize(
    ("told", "step", "before", "after", "ahead"),
    [
        (1_000, 0, 1_000, 1_000, 0),
        (1_000, 0, 900, 1_100, 0),
        (1_000, 1_000, 1_900, 1_950, 0),
        (5_000, 0, 900, 1_000, 4_000),
        (5_000, 1_000, 900, 1_000, 4_000),
        (1_000, 1_000, 5_000, 5_100, -3_000),
    ],
)
def test_only_what_is_sure_about_a_clock_is_told(
    told: float, step: float, before: float, after: float, ahead: float
) -> None:
    """What the way of the answer or a rounded second could explain is no difference."""
    assert surely_ahead_ms(told, step, before, after) == ahead


@given(st.floats(0, 1e6), st.floats(0, 1e3), st.floats(0, 1e6), st.floats(0, 1e4), st.floats(-1e6, 1e6))
def test_a_difference_is_never_exaggerated(start: float, step: float, way: float, back: float, ahead: float) -> None:
    """The told difference has the true one's sign and is not greater."""
    at = start + way
    shown = at + ahead - (at + ahead) % (step or 1) if step else at + ahead
    told = surely_ahead_ms(shown, step, start, at + back)
    assert min(ahead, 0) - 1e-3 <= told <= max(ahead, 0) + 1e-3


@pytest.mark.parametrize("fingerprint", ["d41d8cd98f00b204e9800998ecf8427e", "1700000000000000", "abc-2", "1", "11"])
def test_an_impossible_fingerprint_has_the_same_form(fingerprint: str) -> None:
    """It looks like one of the store's, and is none."""
    impossible = impossible_fingerprint(fingerprint)
    assert impossible != fingerprint
    assert len(impossible) == len(fingerprint)


DIRECTORY = dict.fromkeys(
    ("access", "format", "write", "create", "claim", "replace", "lock", "listing", "clock"), YES
) | {"create_again": NO}


def directory(**changes: Trial) -> Report:
    """The report on a directory."""
    return directory_report_of({**DIRECTORY, **changes}, path="/srv", clock_ms=0, latency_ms=1, left_behind=())


def test_a_good_directory_is_healthy() -> None:
    """Everything on this host is proved, and that other hosts are not is said."""
    told = directory()
    assert (told.is_healthy, told.datastore_type) == (True, "filesystem")
    assert told.message == "safe to share; not proved: other hosts"


@pytest.mark.parametrize("name", ["format", "write", "create", "claim", "replace", "lock", "listing"])
@pytest.mark.parametrize("trial", [NO, BROKEN, DENIED])
def test_a_directory_that_fails_anything_is_refused(name: str, trial: Trial) -> None:
    """Each trial counts."""
    assert not directory(**{name: trial}).is_healthy
    assert not directory(create_again=YES).is_healthy
