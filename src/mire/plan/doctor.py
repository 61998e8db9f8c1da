"""What the doctor's trials prove: a verdict on conditional writes, and a line for each check.

Owns: what each outcome means for somebody who wants to share the store, and what to do about it.
Must not know: how a trial is made, how a report is shown.
Keeps: what was not tried is never called good.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from mire.errors import RemoteError
from mire.model.backend import Schema
from mire.model.doctor import Check, Evidence, Report, Result, Trial, Verdict
from mire.plan.backend import CONDITIONAL_DELETE

CLOCK_WARN_MS: Final = 5_000
"""The reference judges locks by its own clock: a difference near a lock's 30 s lets it take one that is held."""

SLOW_MS: Final = 1_000

_NOTABLE_MS = 100
_SHOWN_MOST = 3
_PAGING = "paging"

PAGED_OBJECTS: Final = 1_001
"""One more than stores put on a page of a listing."""


def impossible_fingerprint(fingerprint: str) -> str:
    """One of the same form that no object of ours can have."""
    ones = re.sub("[0-9a-f]", "1", fingerprint)
    return ones if ones != fingerprint else re.sub("1", "2", fingerprint)


def surely_ahead_ms(told_ms: float, step_ms: float, before_ms: float, after_ms: float) -> float:
    """How far a clock is ahead of ours, at least: what its steps and the way of its answer could explain is not told.

    It showed `told_ms`, in steps of `step_ms`, at some moment between two of ours; below zero it is behind.
    """
    return max(told_ms - after_ms, min(0.0, told_ms + step_ms - before_ms))


def conditional_writes_of(evidence: Evidence) -> Verdict:
    """The verdict on conditional writes."""
    if any(trial.is_denied for trial in (evidence.create, evidence.replace_wrong, evidence.replace_right)):
        return "write-denied"
    if evidence.create.outcome != "yes":
        return "inconclusive"
    if "yes" in (evidence.create_again.outcome, evidence.replace_wrong.outcome) or evidence.unharmed.outcome == "no":
        return "ignored"
    if (evidence.create_again.outcome, evidence.unharmed.outcome) != ("no", "yes"):
        return "inconclusive"
    return _replacing_of(evidence)


def _replacing_of(evidence: Evidence) -> Verdict:
    """The verdict on If-Match, where creating is honoured and nothing was overwritten."""
    tried = (evidence.replace_wrong, evidence.replace_right, evidence.unquoted_right, evidence.unquoted_wrong)
    if any(trial.outcome == "unknown" or _is_transient(trial) for trial in tried):
        return "inconclusive"
    wrong, right, unquoted_right, unquoted_wrong = (trial.outcome for trial in tried)
    if (wrong, right) == ("no", "yes"):
        return "supported"
    if (wrong, unquoted_right, unquoted_wrong) == ("no", "yes", "no"):
        return "if-match-unquoted"
    return "inconclusive" if "untried" in (wrong, right) else "if-match-unsupported"


def _is_transient(trial: Trial) -> bool:
    return isinstance(trial.error, RemoteError) and trial.error.transient


def report_of(
    evidence: Evidence, *, schema: Schema, name: str, relies_on_delete: bool, allow_untrusted: bool
) -> Report:
    """The report on a remote; `relies_on_delete` says whether its removals are meant to be conditional."""
    can_do_without = any(option.name == CONDITIONAL_DELETE for option in schema.options)
    is_ignored = relies_on_delete and evidence.delete_wrong.outcome == "yes"
    verdict = conditional_writes_of(evidence)
    checks = [Check(name="access", **_plain(evidence.contact, "credentials are accepted, the bucket is there"))]
    if evidence.contact.outcome == "yes":
        advice = "set conditionalDelete: false, which makes two steps of it" if can_do_without else _ONE_WRITER
        checks += _checks_of(evidence, verdict, advice if relies_on_delete else None)
    if all(check.result != "fail" for check in checks):
        # Nothing kept these from being tried, so nothing explains why they were not.
        checks = [replace(each, result="fail") if _is_open(each) else each for each in checks]
    if allow_untrusted:
        checks = [replace(each, result="warn") if each.is_trust and each.result == "fail" else each for each in checks]
    details: dict[str, Any] = {
        "conditionalWrites": verdict,
        "probeCleanup": "failed" if evidence.left_behind else "ok",
        "leftBehind": list(evidence.left_behind),
        "requests": evidence.requests,
    }
    if evidence.clock.outcome == "yes":
        details["clockDifferenceMs"] = round(evidence.clock_ms)
    return Report(
        datastore_type=schema.type,
        name=name,
        checks=tuple(checks),
        latency_ms=evidence.latency_ms,
        details=details,
        remedy={CONDITIONAL_DELETE: False} if is_ignored and can_do_without else {},
    )


def _is_open(check: Check) -> bool:
    return check.result == "skip" and check.name != _PAGING


def _checks_of(evidence: Evidence, verdict: Verdict, delete_advice: str | None) -> Iterator[Check]:
    yield Check(name="format", **_plain(evidence.marker, "no format marker, or one this mire knows"))
    yield _create_check(evidence, verdict)
    yield _replace_check(evidence, verdict)
    yield _delete_check(evidence, delete_advice)
    yield Check(
        name="read after write",
        **worst_of(
            (evidence.read_back, evidence.read_new, evidence.gone),
            "what was written, replaced and removed is seen at once",
            "a read showed an old state: two programs would work on different data; do not share this store",
        ),
    )
    yield Check(
        name="conditional read",
        **worst_of(
            (evidence.unchanged,),
            "an unchanged object is not sent again",
            "an unchanged object is sent again: every look costs a download",
            failing="warn",
        ),
    )
    yield Check(
        name="listing",
        **worst_of(
            (evidence.listed, evidence.listed_after),
            "every object once, in order, and from any key on",
            "a listing left out, repeated or misplaced objects: data would seem to be gone; do not use this store",
        ),
    )
    yield _paging_check(evidence)
    yield clock_check(evidence.clock, evidence.clock_ms)
    yield speed_check(evidence.latency_ms, evidence.requests)
    if evidence.left_behind:
        yield cleanup_check(evidence.left_behind)


def _plain(trial: Trial, good: str) -> dict[str, Any]:
    if trial.outcome == "yes":
        return {"result": "ok", "meaning": good}
    if trial.error is not None:
        return {"result": "fail", "meaning": trial.error.message, "error": trial.error}
    return {"result": "fail", "meaning": "not tried"}


def worst_of(trials: tuple[Trial, ...], good: str, bad: str, *, failing: Result = "fail") -> dict[str, Any]:
    """The worst of some trials: wrong, then failed, then not tried."""
    if any(trial.outcome == "no" for trial in trials):
        return {"result": failing, "meaning": bad}
    failed = next((trial for trial in trials if trial.error is not None), None)
    if failed is not None and failed.error is not None:
        return {"result": failing, "meaning": failed.error.message, "error": failed.error}
    if any(trial.outcome != "yes" for trial in trials):
        return {"result": "skip", "meaning": "not tried"}
    return {"result": "ok", "meaning": good}


_ONE_WRITER = "use another store, or --allow-untrusted if only one program ever writes"


def _create_check(evidence: Evidence, verdict: Verdict) -> Check:
    name = "create only once"
    if evidence.create_again.outcome == "yes" or (verdict == "ignored" and evidence.create_again.outcome != "no"):
        meaning = f"a second create replaced the first: two writers would overwrite each other; {_ONE_WRITER}"
        return Check(name=name, result="fail", meaning=meaning, is_trust=True)
    if evidence.create_again.outcome == "no":
        return Check(name=name, result="ok", meaning="a second create of one name was refused")
    return Check(name=name, **_inconclusive(evidence.create, evidence.create_again))


def _replace_check(evidence: Evidence, verdict: Verdict) -> Check:
    name = "replace if unchanged"
    match verdict:
        case "supported":
            return Check(name=name, result="ok", meaning="a stale writer was refused, an informed one let through")
        case "if-match-unquoted":
            meaning = "a stale writer was refused; the store wants ETags without quotes, and gets them so"
            return Check(name=name, result="ok", meaning=meaning)
        case "ignored":
            meaning = f"a stale writer was let through: changes of others would be lost; {_ONE_WRITER}"
            return Check(name=name, result="fail", meaning=meaning, is_trust=True)
        case "if-match-unsupported":
            meaning = f"no conditional replacement is possible: locks cannot be renewed; {_ONE_WRITER}"
            return Check(name=name, result="fail", meaning=meaning, is_trust=True)
        case "write-denied" | "inconclusive":
            tried = (evidence.replace_wrong, evidence.replace_right, evidence.unquoted_right, evidence.unquoted_wrong)
            return Check(name=name, **_inconclusive(evidence.create, evidence.unharmed, *tried))


def _inconclusive(*trials: Trial) -> dict[str, Any]:
    failed = next((trial for trial in trials if trial.error is not None), None)
    if failed is None:
        return {"result": "fail", "meaning": "the store's answers contradict each other: do not share it"}
    return _plain(failed, "")


def _delete_check(evidence: Evidence, advice: str | None) -> Check:
    """The line about removals; without advice nobody relies on their conditions."""
    name = "remove if unchanged"
    if advice is None:
        good = "removing works; that it is conditional is not relied on"
        return Check(name=name, **worst_of((evidence.delete_right,), good, "an object could not be removed"))
    if evidence.delete_wrong.outcome == "yes":
        meaning = f"an uninformed removal was carried out: a lock could be removed under its holder; {advice}"
        return Check(name=name, result="fail", meaning=meaning, is_trust=True)
    trials = (refused(evidence.delete_wrong), evidence.delete_right)
    good = "an uninformed removal was refused, an informed one carried out"
    return Check(name=name, **worst_of(trials, good, "an object could not be removed although nobody had changed it"))


def refused(trial: Trial) -> Trial:
    """A trial that must be refused, with its answer turned round."""
    return {"no": Trial("yes"), "yes": Trial("no")}.get(trial.outcome, trial)


def _paging_check(evidence: Evidence) -> Check:
    if evidence.paged.outcome == "untried":
        meaning = "listings of more than one page: not proved; run with --paging (it writes 1,001 objects)"
        return Check(name=_PAGING, result="skip", meaning=meaning)
    bad = "a listing of several pages is wrong: data would seem to be gone; do not use this store"
    return Check(name=_PAGING, **worst_of((evidence.paged,), "1,001 objects were listed, each once, in order", bad))


def clock_check(tried: Trial, ahead_ms: float) -> Check:
    """The line about the store's clock."""
    if tried.outcome != "yes":
        return Check(name="clock", **worst_of((tried,), "", "", failing="warn"))
    if abs(ahead_ms) < CLOCK_WARN_MS:
        return Check(name="clock", result="ok", meaning=f"{_apart(ahead_ms)} ours")
    meaning = f"{_apart(ahead_ms)} ours: mire goes by the store's clock, Swamp by this machine's; set it"
    return Check(name="clock", result="warn", meaning=meaning)


def _apart(ahead_ms: float) -> str:
    if abs(ahead_ms) < _NOTABLE_MS:
        return "shows the same time as"
    return f"is {abs(ahead_ms) / 1000:.1f} s {'ahead of' if ahead_ms > 0 else 'behind'}"


def speed_check(latency_ms: float, count: int) -> Check:
    """The line about how long things take."""
    meaning = f"{latency_ms:.1f} ms for one of {count} steps"
    return Check(name="speed", result="warn" if latency_ms > SLOW_MS else "ok", meaning=meaning)


def cleanup_check(left_behind: tuple[str, ...]) -> Check:
    """The line about probes that are still there."""
    some = ", ".join(left_behind[:_SHOWN_MOST]) + (" and more" if len(left_behind) > _SHOWN_MOST else "")
    return Check(name="cleanup", result="warn", meaning=f"could not remove {some}: remove it by hand")
