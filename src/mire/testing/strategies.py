"""Hypothesis strategies for the nouns of mire and for documents, the nasty corners included.

Owns: what arbitrary names, metadata, leases, documents and states of a name look like.
Must not know: files, locks, what a test asserts.
Keeps: every value is one its `parse_` function accepts, so a property that fails has found a bug, not a bad input.
"""

from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mire.errors import InputError
from mire.model.artifact import OWNER_TYPES, Highest, Metadata, ModelRef, NameState, Owner
from mire.model.instant import Instant, instant_of
from mire.model.lease import Lease
from mire.model.lifetime import Lifetime, VersionPolicy
from mire.model.names import (
    VERSION_MAX,
    DataName,
    ModelId,
    ModelType,
    Uuid,
    Version,
    parse_data_name,
    parse_model_id,
    parse_model_type,
)

TRAPS = (
    *("", " ", "~", "null", "Null", "true", "yes", "on", "n", "NO", "=", "<<", "-", "?", ":", "---", "..."),
    *("7e10932", "1e5", "01.02", "08.2026", "1_", "0x_", "0x1F", "0b11", "017", "1:30", "190:20:30", ".inf", ".nan"),
    *("-.5", "+1", "1.", "1.e5", "2026-05-17", "2026-05-17T08:30:02.417Z", "- a", "a: b", "a #b", "#", "'", "''", '"'),
    *("\\", "\\n", "{}", "[]", "&a", "*a", "!x", "|", ">", "%x", "@x", "`x", "a,b", " a", "a ", "a\n", "\na", "a\n\nb"),
    *("\t", "\r", "\r\n", "\x00", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u2029", "\ufeff", "\ufffe", "\xa0"),
    *("é", "漢字", "\U0001f600", "\U0010ffff", "__proto__", "constructor"),
)
"""Texts that some YAML reader takes for something else, or that some writer does not escape."""

_NUMBER_MAX = 12


def texts(*, min_size: int = 0) -> SearchStrategy[str]:
    """Text that can be encoded, often one that is easily misread."""
    traps = st.sampled_from([trap for trap in TRAPS if len(trap) >= min_size])
    return traps | st.text(st.characters(exclude_categories=["Cs"]), min_size=min_size, max_size=40)


def long_keys() -> SearchStrategy[str]:
    """Keys around and above the length at which YAML wants them marked as keys."""
    return st.tuples(st.integers(980, 1100), texts()).map(lambda pair: "k" * pair[0] + pair[1])


def scalars() -> SearchStrategy[Any]:
    """What a document can hold below its lists and maps; NaN, which equals nothing, is left out."""
    numbers = st.integers(-VERSION_MAX, VERSION_MAX) | st.floats(allow_nan=False)
    return st.none() | st.booleans() | numbers | texts()


def documents() -> SearchStrategy[dict[str, Any]]:
    """Documents: maps of anything YAML and JSON both can hold."""
    keys = texts() | long_keys()
    values = st.recursive(
        scalars(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    )
    return st.dictionaries(keys, values, max_size=5)


def unknown_members() -> SearchStrategy[dict[str, Any]]:
    """Members of a newer writer: their names begin with `x`, as none of ours does; null is a value, too."""
    values = scalars() | st.lists(scalars(), max_size=2) | st.dictionaries(texts(), scalars(), max_size=2)
    return st.dictionaries(texts().map("x{}".format), values, max_size=2)


def uuids() -> SearchStrategy[Uuid]:
    """Random (version 4) UUIDs."""
    return st.uuids(version=4).map(lambda uuid: Uuid(str(uuid)))


def instants() -> SearchStrategy[Instant]:
    """Instants with milliseconds, as the store writes them."""
    offsets = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
    # The first and the last day of the calendar lie outside it elsewhere on the globe.
    days = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=offsets)  # noqa: DTZ001 - see timezones
    return days.map(instant_of)


def _segments() -> SearchStrategy[str]:
    plain = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1, max_size=30)
    return plain | st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True)


def data_names() -> SearchStrategy[DataName]:
    """Names of data items: any characters a file name can have."""
    return _accepted(_segments(), parse_data_name)


def model_ids() -> SearchStrategy[ModelId]:
    """Model ids: mostly UUIDs, as in the reference, sometimes any safe segment."""
    return uuids().map(ModelId) | _accepted(_segments(), parse_model_id)


def type_texts() -> SearchStrategy[str]:
    """Model types as people write them, not normalized."""
    words = st.lists(_segments() | st.sampled_from(("AWS", "ec2", "@acme", "Tools")), min_size=1, max_size=4)
    joints = st.sampled_from(("::", "/", ".", " ", "//"))
    written = st.builds(lambda joint, parts: joint.join(parts), joints, words)
    return written.filter(lambda text: _is_accepted(text, parse_model_type))


def model_types() -> SearchStrategy[ModelType]:
    """Normalized model types."""
    return type_texts().map(parse_model_type)


def model_refs() -> SearchStrategy[ModelRef]:
    """Model instances."""
    return st.builds(ModelRef, model_type=model_types(), model_id=model_ids())


def _accepted(written: SearchStrategy[str], parse: Any) -> SearchStrategy[Any]:
    return written.filter(lambda text: _is_accepted(text, parse)).map(parse)


def _is_accepted(text: str, parse: Any) -> bool:
    try:
        parse(text)
    except InputError:
        return False
    return True


def versions() -> SearchStrategy[Version]:
    """Version numbers."""
    return st.integers(1, VERSION_MAX).map(Version)


def durations() -> SearchStrategy[str]:
    """Durations above zero."""
    return st.builds("{}{}".format, st.integers(1, 10**6), st.sampled_from(("m", "h", "d", "w", "mo", "y")))


def lifetimes() -> SearchStrategy[Lifetime]:
    """Lifetimes: the words and the durations."""
    return (st.sampled_from(("ephemeral", "infinite", "job", "workflow")) | durations()).map(Lifetime)


def version_policies() -> SearchStrategy[VersionPolicy]:
    """How many versions to keep, or how long."""
    return st.integers(1, VERSION_MAX) | durations()


def owners() -> SearchStrategy[Owner]:
    """Producers of names."""
    text = texts(min_size=1)
    return st.builds(
        Owner,
        owner_type=st.sampled_from(OWNER_TYPES),
        owner_ref=text,
        definition_hash=st.none() | text,
        workflow_id=st.none() | uuids(),
        workflow_run_id=st.none() | uuids(),
        workflow_name=st.none() | text,
        job_name=st.none() | text,
        step_name=st.none() | text,
        source=st.none() | text,
        extra=unknown_members(),
    )


def metadata() -> SearchStrategy[Metadata]:
    """Metadata of one version, tombstones and unknown members included."""
    return st.builds(
        Metadata,
        id=uuids(),
        name=data_names(),
        version=versions(),
        content_type=texts(min_size=1),
        lifetime=lifetimes(),
        version_policy=version_policies(),
        streaming=st.booleans(),
        tags=st.builds(
            lambda tags, kind: {**tags, "type": kind}, st.dictionaries(texts(), texts(), max_size=4), texts()
        ),
        owner=owners(),
        created_at=instants(),
        size_bytes=st.none() | st.integers(0, VERSION_MAX),
        checksum=st.none() | texts(min_size=1),
        is_deleted=st.booleans(),
        renamed_to=st.none() | data_names(),
        extra=unknown_members(),
    )


def leases() -> SearchStrategy[Lease]:
    """Bodies of locks, those of old writers (no nonce) and newer ones (unknown members) included."""
    return st.builds(
        Lease,
        holder=texts(min_size=1),
        hostname=texts(),
        pid=st.integers(0, 2**31),
        acquired_at=instants(),
        ttl_ms=st.integers(1, 10**9),
        nonce=st.none() | uuids(),
        extra=unknown_members(),
    )


@st.composite
def name_states(draw: st.DrawFn) -> NameState:
    """What a look into a name's directory can show, damage and foreign writers included; numbers are small."""
    numbers = draw(st.sets(st.integers(1, _NUMBER_MAX)))
    number = draw(st.integers(0, _NUMBER_MAX))
    return NameState(
        numbers=tuple(sorted(numbers)),
        taken=max(draw(st.integers(0, _NUMBER_MAX)), *numbers, 0),
        marker=draw(st.none() | st.integers(1, _NUMBER_MAX)),
        highest=Highest(number=number, floor=draw(st.integers(0, number))),
    )
