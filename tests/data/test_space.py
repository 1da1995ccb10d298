"""Spaces describe states, refuse what does not fit, and survive a trip through JSON."""

import json

import pytest
import torch

from data.space import Angle, Categorical, Real, Rotation, Space, SpaceError, State

SPACE = Space(5, {"letter": Categorical(4), "place": Real(3, 2.5), "turn": Angle(2), "frame": Rotation()})


def state() -> State:
    widths = {"letter": 4, "place": 3, "turn": 2, "frame": 9}
    values = {name: torch.zeros(2, 5, width) for name, width in widths.items()}
    return values | {"mask": torch.ones(2, 5, dtype=torch.bool)}


def test_accepts_what_it_describes() -> None:
    SPACE.check(state())
    assert Space.from_dict(json.loads(json.dumps(SPACE.to_dict()))).to_dict() == SPACE.to_dict()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("letter", torch.zeros(2, 5, 3), r"letter has shape \(2, 5, 3\)"),
        ("place", torch.full((2, 5, 3), float("nan")), "place has 30 values"),
        ("turn", torch.full((2, 5, 2), float("inf")), "turn has 20 values"),
        ("mask", torch.ones(2, 5), "mask is torch.float32"),
        ("mask", torch.ones(2, 4, dtype=torch.bool), r"\(2, 4\)"),
        ("extra", torch.zeros(2, 5, 1), "extra"),
    ],
)
def test_refuses_with_the_value(name: str, value: torch.Tensor, said: str) -> None:
    with pytest.raises(SpaceError, match=said):
        SPACE.check(state() | {name: value})


@pytest.mark.parametrize(
    "plain",
    [None, {}, {"length": 3}, {"length": 3, "factors": {"x": {}}}, {"length": 3, "factors": {"x": {"kind": "Evil"}}}],
)
def test_refuses_other_descriptions(plain: object) -> None:
    with pytest.raises(SpaceError, match="not the description of a space"):
        Space.from_dict(plain)  # type: ignore[arg-type]


def test_the_order_of_factors_is_that_of_their_names() -> None:
    given = Space(3, {"shape": Categorical(2), "corner": Real(4)})
    assert list(given.factors) == ["corner", "shape"]
    assert list(Space.from_dict(json.loads(json.dumps(given.to_dict(), sort_keys=True))).factors) == ["corner", "shape"]


def test_numbers_that_depend_on_a_category_name_it() -> None:
    table = ((True, False), (True, True), (False, False))
    space = Space(3, {"kind": Categorical(3), "place": Real(2, given="kind", used=table)})
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space
    with pytest.raises(SpaceError, match=r"given 'kind', which is Categorical\(n=2\); it must be Categorical\(3\)"):
        Space(3, {"kind": Categorical(2), "place": Real(2, given="kind", used=table)})
    with pytest.raises(SpaceError, match="used has rows of"):
        Real(3, given="kind", used=table)
