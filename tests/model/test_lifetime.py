"""Lifetimes, version policies and durations."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import InputError
from mire.model.lifetime import duration_of, parse_lifetime, parse_version_policy
from mire.model.names import VERSION_MAX
from mire.testing.strategies import durations, lifetimes, version_policies


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("1m", timedelta(minutes=1)),
        ("90m", timedelta(minutes=90)),
        ("2h", timedelta(hours=2)),
        ("90d", timedelta(days=90)),
        ("3w", timedelta(days=21)),
        ("2mo", timedelta(days=60)),
        ("1y", timedelta(days=365)),
        ("007d", timedelta(days=7)),
        ("0d", timedelta(0)),
        ("99999999999y", timedelta.max),
        ("9" * 5000 + "d", timedelta.max),
    ],
    ids=lambda value: str(value)[:20],
)
def test_durations_have_a_length(text: str, length: timedelta) -> None:
    """A duration is a number and a unit; a month has 30 days, a year 365, and too long is as long as can be."""
    assert duration_of(text) == length


@pytest.mark.parametrize(
    "text", ["", "d", "1", "1s", "1D", "1 d", " 1d", "1d ", "1d\n", "-1d", "1.5d", "1dd", "٣d", "1mon"]
)
def test_other_texts_are_no_durations(text: str) -> None:
    """Anything else has no length."""
    assert duration_of(text) is None


@pytest.mark.parametrize("value", ["ephemeral", "infinite", "job", "workflow", "90d", "1mo", "2y"])
def test_lifetimes_are_words_and_durations(value: str) -> None:
    """The four words and the durations are lifetimes."""
    assert parse_lifetime(value) == value


@pytest.mark.parametrize("value", ["0d", "0m", "00w", "000mo"])
def test_a_lifetime_of_nothing_means_workflow(value: str) -> None:
    """A zero duration becomes `workflow`, as in the reference."""
    assert parse_lifetime(value) == "workflow"


@pytest.mark.parametrize("value", ["", "forever", "Infinite", "10", "1s", 90, 1.5, True, None, ["90d"]])
def test_other_lifetimes_are_refused(value: object) -> None:
    """Any other lifetime is refused in a line that shows it."""
    with pytest.raises(InputError) as caught:
        parse_lifetime(value)
    assert repr(value) in caught.value.message
    assert caught.value.kind == "bad_lifetime"


@pytest.mark.parametrize("value", [1, 10, VERSION_MAX, "30d", "1mo"])
def test_policies_are_counts_and_durations(value: object) -> None:
    """A version policy is a number of versions or an age."""
    assert parse_version_policy(value) == value


@pytest.mark.parametrize(
    "value", [0, -1, VERSION_MAX + 1, True, False, 1.0, 2.5, "0d", "00w", "10", "infinite", "", "forever", None, [1]]
)
def test_other_policies_are_refused(value: object) -> None:
    """Zero, booleans, fractions, `infinite` and other texts are no policies, and the refusal shows them."""
    with pytest.raises(InputError) as caught:
        parse_version_policy(value)
    assert repr(value) in caught.value.message
    assert caught.value.kind == "bad_version_policy"


@given(lifetimes(), version_policies(), durations())
def test_valid_values_stay_as_they_are(lifetime: str, policy: object, duration: str) -> None:
    """Parsing a valid value gives it back."""
    assert parse_lifetime(lifetime) == lifetime
    assert parse_version_policy(policy) == policy
    assert duration_of(duration)


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    """Any text is accepted or refused by name, never anything else."""
    for parse in (parse_lifetime, parse_version_policy):
        try:
            outcome = parse(text)
        except InputError as error:
            outcome = error.message
        assert outcome in (text, "workflow") or outcome.isprintable()
