"""Owners and model references."""

from dataclasses import replace

import pytest
from hypothesis import given

from mire.errors import InputError
from mire.model.artifact import Metadata, ModelRef, Owner, parse_owner
from mire.model.names import ModelId, ModelType
from mire.testing.strategies import metadata, owners


@pytest.mark.parametrize(
    ("text", "owner_type", "owner_ref"),
    [
        ("manual:alice", "manual", "alice"),
        ("model-method:31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603", "model-method", "31f6d0aa-8c47-4b0e-a5d9-e47c2b19f603"),
        ("workflow-step:a:b", "workflow-step", "a:b"),
    ],
)
def test_owners_are_written_type_and_ref(text: str, owner_type: str, owner_ref: str) -> None:
    """`TYPE:REF` names an owner, and an owner is shown so."""
    owner = parse_owner(text)
    assert (owner.owner_type, owner.owner_ref) == (owner_type, owner_ref)
    assert str(owner) == text


@pytest.mark.parametrize("text", ["", "manual", "manual:", "manual: ", ":x", "robot:x", "Manual:x", "MODEL-METHOD:x"])
def test_other_owners_are_refused(text: str) -> None:
    """An owner without a known type or without a ref is refused in a line that shows it."""
    with pytest.raises(InputError) as caught:
        parse_owner(text)
    assert repr(text) in caught.value.message
    assert caught.value.kind == "bad_owner"


@given(owners(), owners())
def test_type_and_ref_make_the_producer(one: Owner, other: Owner) -> None:
    """Two owners are the same producer when type and ref are equal, whatever else differs."""
    assert one.is_same_producer(replace(other, owner_type=one.owner_type, owner_ref=one.owner_ref))
    assert not one.is_same_producer(replace(one, owner_ref=f"{one.owner_ref}x"))
    assert not one.is_same_producer(replace(one, owner_type="other"))


@given(metadata())
def test_what_is_not_deleted_is_active(described: Metadata) -> None:
    """A version is active or deleted, never both."""
    assert (described.is_active, described.is_deleted) in ((True, False), (False, True))


def test_a_model_is_shown_as_its_path() -> None:
    """A model instance is its type and its id, joined as on disk."""
    assert str(ModelRef(model_type=ModelType("aws/ec2/vpc"), model_id=ModelId("x"))) == "aws/ec2/vpc/x"
