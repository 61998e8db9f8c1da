"""Instants: which texts are one, and what they mean."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mire.errors import InputError
from mire.model.instant import datetime_of, instant_of, parse_instant
from mire.testing.strategies import instants

MOMENT = datetime(2026, 5, 17, 8, 30, 2, 417_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-05-17T08:30:02.417Z", MOMENT),
        ("2026-05-17T08:30:02Z", MOMENT.replace(microsecond=0)),
        ("2026-05-17T08:30Z", MOMENT.replace(second=0, microsecond=0)),
        ("2026-05-17T08:30:02.4Z", MOMENT.replace(microsecond=400_000)),
        ("2026-05-17T08:30:02.417000Z", MOMENT),
        ("2026-05-17T08:30:02.417000999Z", MOMENT),
        ("2024-02-29T00:00:00.000Z", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_instants_keep_their_text_and_have_a_moment(text: str, moment: datetime) -> None:
    """An instant is kept as written and means a moment in UTC."""
    assert parse_instant(text) == text
    assert datetime_of(parse_instant(text)) == moment


@pytest.mark.parametrize(
    "value",
    [
        "",
        "now",
        "2026-05-17",
        "2026-05-17T08:30:02",
        "2026-05-17T08:30:02+00:00",
        "2026-05-17T10:30:02+02:00",
        "2026-05-17t08:30:02z",
        "2026-05-17 08:30:02Z",
        "2026-05-17T08:30:02.Z",
        "2026-05-17T08:30:02Z\n",
        " 2026-05-17T08:30:02Z",
        "2026-02-30T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-05-17T25:00:00Z",
        "2026-05-17T08:30:61Z",
        "0000-01-01T00:00:00Z",
        "٢٠٢٦-05-17T08:30:02Z",
        None,
        1_779_000_000,
        MOMENT,
    ],
    ids=ascii,
)
def test_other_values_are_no_instants(value: object) -> None:
    """Offsets, impossible dates and other values are refused in a line that says how to write a time."""
    with pytest.raises(InputError) as caught:
        parse_instant(value, "createdAt")
    assert caught.value.kind == "bad_time"
    assert caught.value.message.startswith("createdAt ")
    assert "2026-05-17T08:30:02.417Z" in caught.value.message


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (MOMENT, "2026-05-17T08:30:02.417Z"),
        (MOMENT.replace(microsecond=417_999), "2026-05-17T08:30:02.417Z"),
        (MOMENT.replace(microsecond=999_999), "2026-05-17T08:30:02.999Z"),
        (MOMENT.replace(microsecond=0), "2026-05-17T08:30:02.000Z"),
        (MOMENT.astimezone(timezone(timedelta(hours=-9))), "2026-05-17T08:30:02.417Z"),
        (datetime(987, 1, 2, tzinfo=UTC), "0987-01-02T00:00:00.000Z"),
    ],
)
def test_moments_are_written_in_utc_with_milliseconds(moment: datetime, text: str) -> None:
    """A moment of any zone becomes the reference's text: UTC, cut to milliseconds."""
    assert instant_of(moment) == text


@given(instants())
def test_every_moment_reads_back(text: str) -> None:
    """What is written for a moment is an instant of 24 characters that means the same moment."""
    assert len(text) == 24
    assert instant_of(datetime_of(parse_instant(text))) == text


@given(st.lists(instants(), min_size=2))
def test_instants_sort_as_moments(texts: list[str]) -> None:
    """Texts of the same precision sort by time, which listings rely on."""
    assert sorted(texts) == sorted(texts, key=lambda text: datetime_of(parse_instant(text)))
