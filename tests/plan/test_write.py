"""The life of one name: numbers never mean two things, and every step shows the old or the new state."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mire.errors import ConflictError, InputError, MireError, NotFoundError, OwnershipError
from mire.model.artifact import Highest, Metadata, NameState, Owner
from mire.model.instant import Instant
from mire.model.names import VERSION_MAX, DataName, Uuid, Version
from mire.plan.write import (
    Removal,
    check_not_renamed,
    check_owner,
    check_rename,
    check_streaming,
    is_visible,
    leftover_numbers,
    next_version,
    plan_delete_name,
    plan_delete_version,
    plan_deletion_content,
    plan_grown,
    plan_renamed,
    plan_tombstone,
    published_number,
    visible_numbers,
)
from mire.testing.strategies import data_names, instants, metadata, name_states, owners, uuids, versions

OTHER = Owner(owner_type="manual", owner_ref="somebody else entirely")


@dataclass
class Disk:
    """A name's directory: which versions have a directory, which of them metadata, and the two small files."""

    dirs: dict[int, bool] = field(default_factory=dict)
    marker: int | None = None
    highest: Highest = field(default_factory=lambda: Highest(number=0))
    taken: int = 0

    def state(self) -> NameState:
        """What a look shows."""
        numbers = tuple(sorted(self.dirs))
        return NameState(numbers=numbers, taken=max(self.taken, *numbers, 0), marker=self.marker, highest=self.highest)

    def shown(self) -> set[int]:
        """What a reader sees: visible, and the metadata exists."""
        return {number for number in visible_numbers(self.state()) if self.dirs[number]}

    def unpublished(self) -> set[int]:
        """Versions whose writer died between metadata and marker: complete, and shown with the next one."""
        hidden = {number for number, finished in self.dirs.items() if finished} - self.shown()
        return hidden - set(leftover_numbers(self.state()))

    def remove(self, number: int) -> Iterator[None]:
        """Remove a version as the flow does: metadata first."""
        self.dirs[number] = False
        yield
        del self.dirs[number]
        yield

    def put(self) -> Iterator[None]:
        """Write a version, one file operation a step: sweep, claim, metadata, marker."""
        for number in leftover_numbers(self.state()):
            yield from self.remove(number)
        number = next_version(self.state())
        self.dirs[number] = False
        yield
        self.dirs[number] = True
        yield
        self.marker = max(self.marker or 0, number)
        yield

    def carry_out(self, removal: Removal) -> Iterator[None]:
        """Delete as a plan says, one file operation a step: high-water mark, marker, directories."""
        if removal.highest is not None:
            self.highest = removal.highest
            yield
        if removal.latest is None or not removal.keeps_latest:
            self.marker = removal.latest
            yield
        for number in removal.numbers:
            yield from self.remove(number)

    def delete_name(self) -> Iterator[None]:
        """Delete everything."""
        yield from self.carry_out(plan_delete_name(self.state()))

    def delete_version(self, version: int) -> Iterator[None]:
        """Delete one version."""
        yield from self.carry_out(plan_delete_version(self.state(), sorted(self.shown()), version))


def watch(disk: Disk, steps: Iterator[None], *, after: set[int], dies_after: int | None = None) -> None:
    """Take the steps, or some of them; a reader sees the old state, and from one step on the new one."""
    before, is_new, given_out = disk.shown(), False, next_version(disk.state())
    for count, _ in enumerate(steps, start=1):
        shown = disk.shown()
        is_new = is_new or shown == after
        assert shown == (after if is_new else before)
        assert not shown & set(leftover_numbers(disk.state()))
        assert next_version(disk.state()) >= given_out
        if count == dies_after:
            return
    assert disk.shown() == after


Operation = tuple[str, int, int | None]
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "delete version", "delete name"]),
        st.integers(0, 20),
        st.none() | st.integers(1, 6),
    ),
    max_size=25,
)


@given(OPERATIONS)
@example([("put", 0, None)] * 3 + [("delete version", 2, 2), ("put", 0, 2), ("put", 0, None)])
@example([("put", 0, None)] * 3 + [("delete name", 0, 1), ("put", 0, None), ("delete name", 0, 2), ("put", 0, None)])
@example([("put", 0, None), ("put", 0, 1), ("put", 0, None), ("delete version", 1, 2), ("put", 0, None)])
@example([("put", 0, None)] * 2 + [("put", 0, 1), ("delete version", 1, 1), ("put", 0, None)])
@example([("put", 0, None)] * 2 + [("put", 0, 1), ("delete version", 1, 2), ("put", 0, None)])
def test_the_life_of_a_name(operations: list[Operation]) -> None:
    """Whatever is written, deleted and left half done, numbers are never reused and what is gone stays gone."""
    disk, given_out, ever_shown, gone = Disk(), set[int](), set[int](), set[int]()
    for operation, pick, dies_after in operations:
        shown = sorted(disk.shown())
        if operation == "put":
            number = next_version(disk.state())
            assert number not in given_out
            given_out.add(number)
            after = {*shown, *disk.unpublished(), number}
            watch(disk, disk.put(), after=after, dies_after=dies_after)
        elif operation == "delete name":
            watch(disk, disk.delete_name(), after=set(), dies_after=dies_after)
        elif shown:
            version = shown[pick % len(shown)]
            watch(disk, disk.delete_version(version), after={*shown} - {version}, dies_after=dies_after)
        ever_shown |= disk.shown()
        gone |= ever_shown - disk.shown()
        assert not gone & disk.shown()
        # The number of a put that died before its directory existed was not given out.
        given_out &= set(range(next_version(disk.state())))


def of(state: NameState, *, finished: bool = True) -> Disk:
    """A directory that shows a state."""
    dirs = dict.fromkeys(state.numbers, finished)
    return Disk(dirs=dirs, marker=state.marker, highest=state.highest, taken=state.taken)


@given(name_states())
def test_what_is_visible_is_never_swept(state: NameState) -> None:
    """Leftovers and visible versions are different directories, whatever the state."""
    visible, leftover = visible_numbers(state), leftover_numbers(state)
    assert not set(visible) & set(leftover)
    assert {*visible, *leftover} <= set(state.numbers)
    assert list(visible) == sorted(visible) == [number for number in state.numbers if is_visible(state, number)]


@given(name_states())
def test_the_next_number_is_new(state: NameState) -> None:
    """Directories, odd directories, marker and high-water mark all keep their numbers."""
    assert next_version(state) == 1 + max(*state.numbers, state.taken, state.marker or 0, state.highest.number, 0)


@given(name_states())
def test_a_name_goes_in_one_step_from_any_state(state: NameState) -> None:
    """Also a damaged or foreign directory is deleted in one step, and its numbers are remembered."""
    disk = of(state)
    watch(disk, disk.delete_name(), after=set())
    assert disk.dirs == {}
    assert next_version(disk.state()) == next_version(state)


@given(name_states(), st.data())
def test_a_version_goes_in_one_step_from_any_state(state: NameState, data: st.DataObject) -> None:
    """Also in a damaged or foreign directory one version is deleted in one step, and no other."""
    disk = of(state)
    if disk.shown():
        version = data.draw(st.sampled_from(sorted(disk.shown())))
        watch(disk, disk.delete_version(version), after=disk.shown() - {version})
        assert version not in disk.dirs
        assert next_version(disk.state()) == next_version(state)


def state_of(
    numbers: str = "", marker: int | None = None, highest: int = 0, floor: int = 0, taken: int = 0
) -> NameState:
    """A state in few words; numbers are digits."""
    return NameState(
        numbers=tuple(map(int, numbers)), taken=taken, marker=marker, highest=Highest(number=highest, floor=floor)
    )


@pytest.mark.parametrize(
    ("state", "visible", "leftover", "following"),
    [
        (state_of(), "", "", 1),
        (state_of("123", 3), "123", "", 4),
        (state_of("123", 2), "12", "", 4),
        (state_of("123"), "123", "", 4),
        (state_of("12", 9), "12", "", 10),
        (state_of("12", 2, highest=5), "12", "", 6),
        (state_of("125", 2, highest=5), "12", "5", 6),
        (state_of("126", 2, highest=5), "12", "", 7),
        (state_of("12", highest=5), "12", "", 6),
        (state_of("", highest=5, floor=5), "", "", 6),
        (state_of("345", highest=5, floor=5), "", "345", 6),
        (state_of("3456", highest=5, floor=5), "6", "345", 7),
        (state_of("12345", 5, highest=5, floor=5), "12345", "", 6),
        (state_of("1", 1, highest=5, floor=5), "1", "", 6),
        (state_of("67", 7, highest=5, floor=5), "67", "", 8),
        (state_of("12", 2, taken=8), "12", "", 9),
    ],
)
def test_what_a_look_means(state: NameState, visible: str, leftover: str, following: int) -> None:
    """The table of states: ordinary, unpublished, without marker, dangling, half deleted, written by others."""
    assert visible_numbers(state) == tuple(map(int, visible))
    assert leftover_numbers(state) == tuple(map(int, leftover))
    assert next_version(state) == following
    assert published_number(state) == state.marker


def test_a_name_we_deleted_and_the_reference_wrote_again() -> None:
    """The reference counts from 1 again where we deleted; its versions are shown, and our next put keeps them."""
    disk = Disk()
    for steps in (disk.put(), disk.put(), disk.delete_name()):
        list(steps)
    disk.dirs[1], disk.marker = True, 1
    assert disk.shown() == {1}
    watch(disk, disk.put(), after={1, 3})


def test_the_last_number_there_can_be() -> None:
    """Behind the greatest number there is none; what has it can still be deleted."""
    state = NameState(numbers=(VERSION_MAX,), marker=VERSION_MAX)
    with pytest.raises(InputError, match=str(VERSION_MAX)):
        next_version(state)
    assert plan_delete_name(state).highest == Highest(number=VERSION_MAX, floor=VERSION_MAX)


@pytest.mark.parametrize(
    ("state", "version", "removal"),
    [
        (state_of("123", 3), 1, Removal(highest=None, latest=3, keeps_latest=True, numbers=(1,))),
        (state_of("123", 3), 3, Removal(highest=Highest(number=3), latest=2, keeps_latest=False, numbers=(3,))),
        (state_of("12", 2, highest=3), 2, Removal(highest=None, latest=1, keeps_latest=False, numbers=(2,))),
        (state_of("12", 9), 1, Removal(highest=Highest(number=9), latest=2, keeps_latest=False, numbers=(1,))),
        (state_of("12"), 1, Removal(highest=None, latest=2, keeps_latest=True, numbers=(1,))),
        (
            state_of("1", 1),
            1,
            Removal(highest=Highest(number=1, floor=1), latest=None, keeps_latest=False, numbers=(1,)),
        ),
    ],
)
def test_plans_write_no_more_than_needed(state: NameState, version: int, removal: Removal) -> None:
    """The high-water mark is written only when a number would be forgotten or a dead version could return."""
    assert plan_delete_version(state, visible_numbers(state), version) == removal


@given(metadata(), owners())
def test_only_the_producer_may_write(current: Metadata, owner: Owner) -> None:
    """Another producer is refused with the name and its owner; the same one, or nobody before, passes."""
    check_owner(None, owner)
    check_owner(current, current.owner)
    check_owner(current, replace(owner, owner_type=current.owner.owner_type, owner_ref=current.owner.owner_ref))
    with pytest.raises(OwnershipError) as caught:
        check_owner(current, OTHER)
    assert caught.value.names == {"name": current.name, "owner": str(current.owner)}


@given(metadata(), data_names())
def test_an_old_name_is_not_written_by_accident(current: Metadata, new: DataName) -> None:
    """A renamed name is refused with its new one, unless it is meant."""
    renamed = replace(current, renamed_to=new)
    check_not_renamed(None, revive=False)
    check_not_renamed(replace(current, renamed_to=None), revive=False)
    check_not_renamed(renamed, revive=True)
    with pytest.raises(ConflictError) as caught:
        check_not_renamed(renamed, revive=False)
    assert (caught.value.kind, caught.value.names["renamed_to"]) == ("renamed", new)


@given(metadata())
def test_only_streaming_data_grows(current: Metadata) -> None:
    """Nothing, or something deleted, is not found; what is not streaming is refused; streaming data passes."""
    name = current.name
    streaming = replace(current, is_deleted=False, streaming=True)
    assert check_streaming(streaming, name) is streaming
    for nothing in (None, replace(streaming, is_deleted=True)):
        with pytest.raises(NotFoundError):
            check_streaming(nothing, name)
    with pytest.raises(InputError, match="not streaming"):
        check_streaming(replace(streaming, streaming=False), name)


@given(metadata(), metadata())
def test_a_rename_needs_a_source_and_a_free_target(source: Metadata, target: Metadata) -> None:
    """The same name, a deleted source and an active target are refused; a deleted target is none."""
    old, new = DataName("old"), DataName("new")
    active, deleted = replace(source, is_deleted=False), replace(source, is_deleted=True)
    check_rename(old, new, active, None)
    check_rename(old, new, active, replace(target, is_deleted=True))
    refusals: list[tuple[type[MireError], str, Callable[[], None]]] = [
        (InputError, "input", lambda: check_rename(old, old, active, None)),
        (NotFoundError, "deleted", lambda: check_rename(old, new, deleted, None)),
        (ConflictError, "exists", lambda: check_rename(old, new, active, replace(target, is_deleted=False))),
    ]
    for error, kind, attempt in refusals:
        with pytest.raises(error) as caught:
            attempt()
        assert caught.value.kind == kind


@given(metadata(), st.integers(0, VERSION_MAX))
def test_what_grew_has_a_new_size_and_no_checksum(current: Metadata, size: int) -> None:
    """An append changes the size, drops the checksum, and leaves everything else."""
    grown = plan_grown(current, size)
    assert (grown.size_bytes, grown.checksum) == (size, None)
    assert replace(grown, size_bytes=current.size_bytes, checksum=current.checksum) == current


@given(metadata(), data_names(), versions(), uuids(), instants())
def test_a_rename_copies_and_forwards(
    source: Metadata, new: DataName, version: Version, id: Uuid, now: Instant
) -> None:
    """The copy has the source's facts under the new name; the tombstone forwards and describes no content."""
    copy = plan_renamed(source, new=new, version=version, id=id, now=now)
    assert (copy.name, copy.version, copy.id, copy.created_at) == (new, version, id, now)
    same = replace(copy, name=source.name, version=source.version, id=source.id, created_at=source.created_at)
    assert same == source
    tombstone, content = plan_tombstone(source, version=version, renamed_to=new, id=id, now=now)
    assert (tombstone.name, tombstone.version, tombstone.renamed_to) == (source.name, version, new)
    assert (tombstone.is_deleted, tombstone.streaming, tombstone.content_type) == (True, False, "application/json")
    assert (tombstone.size_bytes, tombstone.checksum) == (None, None)
    assert (tombstone.owner, tombstone.tags, tombstone.extra) == (source.owner, source.tags, source.extra)
    assert content == {"renamedTo": new, "renamedAt": now}


@pytest.mark.parametrize(
    ("last", "kept"),
    [
        ({"a": 1, "b": None}, {"a": 1, "b": None}),
        ({"deletedAt": "x"}, {}),
        (None, {}),
        ([1], {}),
        ("text", {}),
        (3, {}),
    ],
)
def test_a_deletion_marker_keeps_the_last_attributes(last: Any, kept: dict[str, Any]) -> None:
    """What was last known stays, with when and by what it ended; content that is no object has no attributes."""
    now = Instant("2026-05-17T08:30:02.417Z")
    content = plan_deletion_content(last, now=now, method="destroy")
    assert content == {**kept, "deletedAt": now, "deletedByMethod": "destroy"}
