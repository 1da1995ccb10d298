"""The numbers of the technologies, against those read from the foundries' decks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from domains.layout import technology
from domains.layout.technology import Area, Technology

DECKS = Path(__file__).parents[2].parent / "shared/data/design_rules.json"


def numbers(known: Technology) -> Iterator[tuple[str, int]]:
    """Name and number, in nm or nm², of each rule that has one; wholly to lie in something else has none."""
    for layer in known.layers:
        for rule in (layer.width, layer.space, layer.size, layer.notch, layer.area):
            if rule:
                yield rule.rule, rule.nm2 if isinstance(rule, Area) else rule.nm
    yield from ((pair.rule, pair.nm) for pair in known.pairs if pair.nm)


@pytest.mark.skipif(not DECKS.exists(), reason=f"no {DECKS.name} of the decks' numbers beside the repository")
@pytest.mark.parametrize("name", technology.names())
def test_every_rule_has_the_number_of_the_deck(name: str) -> None:
    deck = json.loads(DECKS.read_text())[name]["rules"]
    known = technology.load(name + technology.CELLS)
    areas = {layer.area.rule for layer in known.layers if layer.area}
    ours = dict(numbers(known))
    assert len(ours) >= 25
    assert ours == {rule: round(deck[rule] * (1e6 if rule in areas else 1e3)) for rule in ours}


@pytest.mark.parametrize("name", technology.names())
def test_a_rule_has_one_number_wherever_it_is(name: str) -> None:
    found = list(numbers(technology.load(name + technology.CELLS)))
    assert len({rule for rule, _ in found}) == len({*found})
    assert set(numbers(technology.load(name))) <= {*found}


@pytest.mark.parametrize("name", technology.names())
def test_numbers_are_on_the_manufacturing_grid(name: str) -> None:
    known = technology.load(name + technology.CELLS)
    areas = {layer.area.rule for layer in known.layers if layer.area}
    assert all(amount % known.grid ** (2 if rule in areas else 1) == 0 for rule, amount in numbers(known))
