"""Conditions have codes, refuse what they cannot be, and survive a trip through JSON inside a space."""

import json

import pytest
import torch

from data.conditions import ConditionError, Label, Level, Subset, codes
from data.space import Categorical, Space, SpaceError

CONDITIONS = {
    "density": Level(0.0, 0.5),
    "function": Label(("inv", "nand2")),
    "layers": Subset("layer", ("diff", "poly", "li")),
}
SPACE = Space(5, {"layer": Categorical(3)}, conditions=CONDITIONS)


def test_codes_are_in_the_order_of_names_and_unknown_where_nothing_is_asked() -> None:
    row = codes(SPACE.conditions, {"layers": ["li", "diff"], "function": "nand2"})
    assert torch.equal(row.nan_to_num(-1), torch.tensor([[-1.0, 1.0, 0b101]]))
    assert codes(SPACE.conditions, {"layers": "li,diff"})[0, 2] == 0b101
    assert codes(SPACE.conditions, {}).isnan().all()
    assert codes({}, {}).shape == (1, 0)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("colour", 1, "no condition 'colour'; there are density, function, layers"),
        ("density", 0.6, "condition.density is 0.6; it must be a number from 0 to 0.5"),
        ("density", True, "condition.density is True"),
        ("density", float("nan"), "condition.density is nan"),
        ("density", "dense", "condition.density is 'dense'"),
        ("function", "xor", "condition.function is 'xor'; it must be one of inv, nand2"),
        ("function", ["inv"], "condition.function is "),
        ("layers", [], "condition.layers is "),
        ("layers", "diff,met9", "it must be a list of some of diff, poly, li"),
        ("layers", 3, "condition.layers is 3"),
    ],
)
def test_what_a_condition_cannot_be_is_refused(name: str, value: object, said: str) -> None:
    with pytest.raises(ConditionError) as caught:
        codes(CONDITIONS, {name: value})
    assert said in str(caught.value)


def test_spaces_keep_conditions_and_are_equal_without_them() -> None:
    again = Space.from_dict(json.loads(json.dumps(SPACE.to_dict())))
    assert again.conditions == CONDITIONS
    assert again == SPACE == Space(5, {"layer": Categorical(3)})
    assert "conditions" not in Space(5, {"layer": Categorical(3)}).to_dict()


@pytest.mark.parametrize(
    "conditions",
    [
        {"x": {"kind": "Label", "names": []}},
        {"x": {"kind": "Level", "least": 1.0, "most": 0.0}},
        {"x": {"kind": "Level", "least": "a", "most": "b"}},
        {"x": {"kind": "Subset", "of": "layer", "names": ["one"]}},
        {"x": {"kind": "Colour"}},
        {"x": 3},
        [1],
    ],
)
def test_descriptions_that_are_none_are_refused(conditions: object) -> None:
    with pytest.raises(SpaceError):
        Space.from_dict({"length": 5, "factors": {"layer": {"kind": "Categorical", "n": 3}}, "conditions": conditions})
