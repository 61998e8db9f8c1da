"""What a migration moves: decided for every path, and the same numbers before and after."""

from hypothesis import given
from hypothesis import strategies as st

from mire.plan.relocation import Share, collision_error, plan_relocation

RELS = st.sampled_from(["data/a", "data/b", "outputs/a", "logs/x", "notes"])


@given(found=st.dictionaries(RELS, st.integers(0, 99)), at_target=st.dictionaries(RELS, st.booleans()))
def test_every_path_is_decided_once(found: dict[str, int], at_target: dict[str, bool]) -> None:
    """It moves, is there already, or collides; nothing else is touched, and every size is counted once."""
    plan = plan_relocation(found, at_target)
    parts = [set(plan.moves), set(plan.duplicates), set(plan.collisions)]
    assert set.union(*parts) == set(found)
    assert sum(map(len, parts)) == len(found)
    for rel in found:
        wanted = {None: plan.moves, True: plan.duplicates, False: plan.collisions}[at_target.get(rel)]
        assert rel in wanted
    counted = [*plan.moves.values(), *plan.duplicates.values()]
    assert sum(share.files for share in plan.shares.values()) == len(counted)
    assert sum(share.size_bytes for share in plan.shares.values()) == sum(counted)


def test_shares_are_by_directory() -> None:
    """A duplicate counts: it leaves its place, too."""
    plan = plan_relocation({"data/a": 1, "data/b": 2, "logs/x": 3}, {"data/b": True})
    assert plan.shares == {"data": Share(files=2, size_bytes=3), "logs": Share(files=1, size_bytes=3)}


def test_a_collision_names_both_places() -> None:
    """The first few in the message, all of them in the document, one line in all."""
    error = collision_error([f"data/{number}" for number in range(5)], "", "team-a/")
    assert "'data/0' and 'team-a/data/0'" in error.message
    assert "and 2 more" in error.message
    assert "\n" not in error.message
    assert error.document()["pairs"][4] == ["data/4", "team-a/data/4"]
