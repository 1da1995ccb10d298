"""Rewards of proteins: closed forms, Biopython, gradients, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from Bio.SeqUtils.ProtParam import ProteinAnalysis

from app import plugins
from domains import dna, protein
from domains.protein import Protein, baselines, geometry, secondary
from rewards import hotspot_contacts, motif_rmsd, protparam, radius_of_gyration, secondary_structure
from rewards.base import Differentiable, RewardError

FRAMES = protein.build()
SEQUENCES = protein.build("sequence")
EMPTY = Protein("", np.zeros((0, 4, 3)))


@pytest.fixture(scope="module")
def val() -> list[Protein]:
    return FRAMES.corpus("val")[:20]


def _rod(n: int, step: float) -> Protein:
    atoms = np.zeros((n, 4, 3))
    atoms[..., 0] = step * np.arange(n)[:, None]
    return Protein("A" * n, atoms)


def _ideal(phi: float, psi: float, n: int = 20) -> Protein:
    torsions = np.broadcast_to(np.radians([phi, psi]), (1, n, 2))
    return Protein("A" * n, geometry.with_oxygens(baselines.from_torsions(torsions)[0]))


BACKBONE_REWARDS = [
    radius_of_gyration.build(FRAMES),
    radius_of_gyration.build(FRAMES, 15.0),
    secondary_structure.build(FRAMES),
    secondary_structure.build(FRAMES, "strand", 0.3),
]


@pytest.mark.parametrize("reward", BACKBONE_REWARDS)
def test_the_relaxed_value_is_the_exact_one(reward: Differentiable, val: list[Protein]) -> None:
    assert isinstance(reward, Differentiable)
    state = FRAMES.encode(val)
    exact = reward(FRAMES.decode(state))  # type: ignore[operator]
    torch.testing.assert_close(reward.relaxed(state), exact.value, atol=2e-3, rtol=0)
    assert ((exact.value >= 0) & (exact.value <= 1)).all()
    assert exact.valid.all()


@pytest.mark.parametrize("reward", BACKBONE_REWARDS)
def test_gradients_agree_with_differences(reward: Differentiable, val: list[Protein]) -> None:
    noise = torch.randn(3, 80, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    state = {key: x.double() if x.is_floating_point() else x for key, x in FRAMES.encode(val[:3]).items()}
    place = (state["position"] + 0.3 * noise).requires_grad_()
    (slope,) = torch.autograd.grad(reward.relaxed(state | {"position": place}).sum(), place)
    step = 1e-5 * torch.randn(place.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    ends = [reward.relaxed(state | {"position": place.detach() + sign * step}).sum() for sign in (1, -1)]
    assert (slope * step).sum().item() == pytest.approx((ends[0] - ends[1]).item() / 2, rel=1e-3, abs=1e-12)
    assert slope[~state["mask"]].abs().max() == 0
    assert slope.abs().max() > 0


@pytest.mark.parametrize("reward", BACKBONE_REWARDS)
@pytest.mark.parametrize("used", [0, 1, 3, 80])
def test_degenerate_states_have_finite_values_and_gradients(reward: Differentiable, used: int) -> None:
    place = torch.zeros(2, 80, 3)
    place[1, :, 0] = torch.arange(80.0)  # all on a line
    place.requires_grad_()
    state = {"position": place, "mask": (torch.arange(80) < used).expand(2, 80)}
    value = reward.relaxed(state)
    (slope,) = torch.autograd.grad(value.sum(), place)
    assert value.isfinite().all()
    assert slope.isfinite().all()


@pytest.mark.parametrize("reward", BACKBONE_REWARDS)
def test_designs_of_any_length_are_scored(reward: protparam.ProtParam) -> None:
    result = reward([EMPTY, _ideal(-60, -45, 3), _ideal(-60, -45, 100)])
    assert result.value.shape == (3,)
    assert result.value.isfinite().all()
    assert result.valid.tolist()[::2] == [False, True]
    assert reward([]).value.shape == (0,)


# Radius of gyration


@pytest.mark.parametrize("name", list(protparam.PROPERTIES))
def test_targets_far_from_all_chains_are_refused(name: str) -> None:
    known = protparam.PROPERTIES[name]
    for target in (known.mean + 11 * known.spread, known.mean - 11 * known.spread, math.inf, math.nan):
        with pytest.raises(RewardError, match=f"target=.*{name} must be from"):
            protparam.build(SEQUENCES, name, target)
    assert protparam.build(SEQUENCES, name, known.mean + 9 * known.spread)


@pytest.mark.parametrize(("target", "value"), [(math.sqrt(10), 1), (2 * math.sqrt(10), 0.5), (math.sqrt(10) / 4, 0.25)])
def test_value_is_the_ratio_of_radii(target: float, value: float) -> None:
    if target < 1:
        target, value = 1.0, 1 / math.sqrt(10)
    result = radius_of_gyration.build(FRAMES, target)([_rod(11, 1.0)])
    assert result.value.item() == pytest.approx(value)
    assert result.parts["radius"].item() == pytest.approx(math.sqrt(10))


def test_the_wanted_radius_depends_on_the_length() -> None:
    reward = radius_of_gyration.build(FRAMES)
    for n in (40, 80):
        rod = math.sqrt((n**2 - 1) / 12)
        assert reward([_rod(n, 2.2 * n**0.38 / rod)]).value.item() == pytest.approx(1, abs=1e-3)
    assert reward([EMPTY, _rod(1, 1)]).value.tolist() == pytest.approx([0, 0], abs=1e-5)


def test_real_chains_score_more_than_stretched_ones(val: list[Protein]) -> None:
    reward = radius_of_gyration.build(FRAMES)
    stretched = [Protein(x.letters, x.atoms() * 3) for x in val]
    assert reward(val).value.mean() > 0.8 > 0.5 > reward(stretched).value.mean()


# Secondary structure


@pytest.mark.parametrize(
    ("kind", "design", "share"),
    [
        ("helix", _ideal(-60, -45), 1), ("strand", _ideal(-60, -45), 0), ("helix", _ideal(-120, 130), 0),
        ("strand", _ideal(-120, 130), 1), ("helix", _ideal(60, 45), 0), ("strand", _ideal(-139, 135), 1),
    ],
)  # fmt: skip
def test_ideal_chains_are_all_of_their_kind(kind: str, design: Protein, share: float) -> None:
    for target in (0.0, 0.4, 1.0):
        result = secondary_structure.build(FRAMES, kind, target)([design])
        found = result.parts["share"].item()
        assert found == pytest.approx(share, abs=0.06)
        assert result.value.item() == pytest.approx(1 - abs(found - target) / max(target, 1 - target), abs=1e-6)


def test_the_share_of_helix_follows_the_hydrogen_bonds(val: list[Protein]) -> None:
    parts = secondary_structure.build(FRAMES)(val).parts
    bonded = [secondary.assign(x.atoms(), x.letters).count("H") / len(x) for x in val]
    assert parts["by_hydrogen_bonds"].tolist() == pytest.approx(bonded)
    assert np.corrcoef(parts["share"].numpy(), parts["by_hydrogen_bonds"].numpy())[0, 1] > 0.97
    assert (parts["share"] - parts["by_hydrogen_bonds"]).abs().mean() < 0.06


def test_climbing_the_gradient_winds_a_helix() -> None:
    reward = secondary_structure.build(FRAMES)
    state = FRAMES.encode(FRAMES.baselines([_ideal(-60, -45, 40)], 2, 0)["random_coil"])
    before, place = reward.relaxed(state).mean(), state["position"]
    for _ in range(100):
        place = place.detach().requires_grad_()
        (slope,) = torch.autograd.grad(reward.relaxed(state | {"position": place}).sum(), place)
        place = place + 2 * slope / slope.norm()
    assert reward.relaxed(state | {"position": place.detach()}).mean() > before + 0.2


# ProtParam


@pytest.mark.parametrize("name", protparam.PROPERTIES)
def test_properties_are_biopythons_and_defaults_those_of_real_chains(name: str) -> None:
    train = SEQUENCES.corpus("train")[::7]
    result = protparam.build(SEQUENCES, name)(train)
    analysis = ProteinAnalysis(train[3].letters)
    method = {"instability": "instability_index"}.get(name, name)
    expected = analysis.charge_at_pH(7) if name == "charge" else getattr(analysis, method)()
    assert result.parts[name][3].item() == pytest.approx(expected)
    assert result.valid.all()
    if name != "molecular_weight":  # shorter chains than those of the whole corpus
        known = protparam.PROPERTIES[name]
        assert abs(result.parts[name].mean().item() - known.mean) < 0.35 * known.spread
        assert result.parts[name].std().item() == pytest.approx(known.spread, rel=0.35)


@pytest.mark.parametrize(("away", "value"), [(0, 1), (1, 1 / 2), (-2, 1 / 3)])
def test_the_value_falls_with_the_distance_in_spreads(away: float, value: float) -> None:
    target = ProteinAnalysis("ACDEFW").gravy() + away * protparam.PROPERTIES["gravy"].spread
    assert protparam.build(SEQUENCES, "gravy", target)([Protein("ACDEFW")]).value.item() == pytest.approx(value)


@pytest.mark.parametrize("name", protparam.PROPERTIES)
@pytest.mark.parametrize("letters", ["ACXDEF", "ACBDEF", "acdef", "X", "", "ACDEF*"])
def test_letters_outside_the_twenty_are_left_out_and_not_valid(name: str, letters: str) -> None:
    definite = "".join(x for x in letters if x in "ACDEF")
    result = protparam.build(SEQUENCES, name)([Protein(letters), Protein(definite or "A")])
    assert result.valid.tolist() == [False, True]
    if definite:
        assert result.value[0] == result.value[1] > 0
    else:
        assert (result.value[0].item(), result.parts[name][0].item()) == (0, 0)


# What is refused


def test_the_choices_that_a_form_offers_are_those_there_are() -> None:
    assert plugins.choices("reward", "secondary_structure") == {"kind": list(secondary_structure.KINDS)}
    assert plugins.choices("reward", "protparam") == {"property": list(protparam.PROPERTIES)}
    assert plugins.choices("reward", "gc_content") == {}
    with pytest.raises(plugins.PluginError, match="kind is 'sheet'; it must be one of helix, strand"):
        plugins.build("reward", "secondary_structure", {"kind": "sheet"}, FRAMES)


@pytest.mark.parametrize("domain", [SEQUENCES, protein.build("torsions"), dna.build()])
@pytest.mark.parametrize("module", [radius_of_gyration, secondary_structure, motif_rmsd, hotspot_contacts])
def test_rewards_of_backbones_want_frames(module: object, domain: object) -> None:
    with pytest.raises(RewardError, match=r"as frames, not (Sequences|Torsions|Dna); use .*form=frames"):
        module.build(domain)  # type: ignore[attr-defined]


@pytest.mark.parametrize("domain", [FRAMES, dna.build()])
def test_protparam_wants_sequences(domain: object) -> None:
    with pytest.raises(RewardError, match=r"scores proteins as sequence, not (Frames|Dna); use .*form=sequence"):
        protparam.build(domain)  # type: ignore[arg-type]


def test_parameters_outside_their_limits_are_refused_with_the_legal_ones() -> None:
    for target in (0.0, -3.0, 1e9, math.nan):
        with pytest.raises(RewardError, match=r"target=.*from 1 to 1000 angstrom"):
            radius_of_gyration.build(FRAMES, target)
    with pytest.raises(RewardError, match="kind='sheet'; there are helix, strand"):
        secondary_structure.build(FRAMES, "sheet")
    for target in (-0.1, 1.1, math.nan):
        with pytest.raises(RewardError, match="between 0 and 1"):
            secondary_structure.build(FRAMES, "helix", target)
    with pytest.raises(RewardError, match="property='mass'; there are gravy, instability"):
        protparam.build(SEQUENCES, "mass")
