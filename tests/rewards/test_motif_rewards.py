"""Motif deviation and hotspots: closed forms, an independent superposition, gradients, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from Bio.SVDSuperimposer import SVDSuperimposer

from domains import protein
from domains.protein import Protein, geometry
from domains.protein.residues import CA
from rewards import hotspot_contacts, motif_rmsd
from rewards.base import Differentiable, RewardError

FRAMES = protein.build()


@pytest.fixture(scope="module")
def val() -> list[Protein]:
    return FRAMES.corpus("val")[:12]


@pytest.fixture(scope="module")
def file(val: list[Protein], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("motif") / "motif.pdb"
    FRAMES.write(val[0], path, {})
    return str(path)


@pytest.fixture(scope="module")
def rewards(file: str) -> dict[str, Differentiable]:
    return {
        "motif": motif_rmsd.build(FRAMES, file, "A5-A19,A30-A35", (5, 30)),
        "moved": motif_rmsd.build(FRAMES, file, "A5-A19,A30-A35", (1, 25), 4.0),
        "hotspots": hotspot_contacts.build(FRAMES, file, "A5,A8.N,A12", 10.0),
        "far": hotspot_contacts.build(FRAMES, file, "A5", 40.0),
    }


NAMES = ["motif", "moved", "hotspots", "far"]


@pytest.mark.parametrize("name", NAMES)
def test_the_relaxed_value_is_the_exact_one(rewards: dict, name: str, val: list[Protein]) -> None:
    assert isinstance(rewards[name], Differentiable)
    state = FRAMES.encode(val)
    exact = rewards[name](FRAMES.decode(state))
    torch.testing.assert_close(rewards[name].relaxed(state), exact.value, atol=2e-3, rtol=0)
    assert ((exact.value >= 0) & (exact.value <= 1)).all()
    assert exact.value.std() > 0


@pytest.mark.parametrize("name", NAMES)
def test_gradients_agree_with_differences(rewards: dict, name: str, val: list[Protein]) -> None:
    state = {key: x.double() if x.is_floating_point() else x for key, x in FRAMES.encode(val[1:4]).items()}
    place = state["position"].clone().requires_grad_()
    (slope,) = torch.autograd.grad(rewards[name].relaxed(state | {"position": place}).sum(), place)
    step = 1e-5 * torch.randn(place.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    ends = [rewards[name].relaxed(state | {"position": place.detach() + sign * step}).sum() for sign in (1, -1)]
    assert (slope * step).sum().item() == pytest.approx((ends[0] - ends[1]).item() / 2, rel=1e-3, abs=1e-12)
    assert slope[~state["mask"]].abs().max() == 0
    assert slope.abs().max() > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("used", [0, 1, 34, 80])
@pytest.mark.parametrize("shape", ["point", "line", "plane"])
def test_degenerate_states_have_finite_values_and_gradients(rewards: dict, name: str, used: int, shape: str) -> None:
    place = torch.zeros(2, 80, 3)
    if shape != "point":
        place[1, :, 0] = torch.arange(80.0)
    if shape == "plane":
        place[1, :, 1] = torch.arange(80.0).sin()
    place.requires_grad_()
    value = rewards[name].relaxed({"position": place, "mask": (torch.arange(80) < used).expand(2, 80)})
    (slope,) = torch.autograd.grad(value.sum(), place)
    assert value.isfinite().all()
    assert slope.isfinite().all()
    assert used or (value == 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_designs_of_any_length_are_scored(rewards: dict, name: str, val: list[Protein]) -> None:
    short = Protein("A" * 3, val[0].atoms()[:3])
    result = rewards[name]([Protein("", np.zeros((0, 4, 3))), short, val[0]])
    assert result.value.isfinite().all()
    assert result.valid.tolist() == [False, "motif" not in name and name != "moved", True]
    assert (result.value[~result.valid] == 0).all()
    assert rewards[name]([]).value.shape == (0,)


# Motif


def test_the_chain_that_has_the_motif_is_worth_one_in_any_pose(rewards: dict, val: list[Protein]) -> None:
    turned = val[0].atoms() @ geometry.frames(val[1].atoms())[3].T.astype(np.float32) + 7
    mirrored = val[0].atoms() * np.array([-1, 1, 1])
    result = rewards["motif"]([val[0], Protein(val[0].letters, turned), Protein(val[0].letters, mirrored)])
    assert result.parts["rmsd"][:2].max() < 2e-3
    assert result.value[:2].min() > 0.999999
    assert result.parts["rmsd"][2] > 2


def test_deviations_are_biopythons(rewards: dict, val: list[Protein]) -> None:
    sites = [*range(4, 19), *range(29, 35)]
    result = rewards["motif"](val)
    for design, found, value in zip(val, result.parts["rmsd"].tolist(), result.value.tolist(), strict=True):
        oracle = SVDSuperimposer()
        oracle.set(val[0].atoms()[sites, CA].astype(float), design.atoms()[sites, CA].astype(float))
        oracle.run()
        assert found == pytest.approx(oracle.get_rms(), abs=2e-3)
        assert value == pytest.approx(1 / (1 + (oracle.get_rms() / 2) ** 2), abs=2e-3)


def test_climbing_the_gradient_builds_the_motif(rewards: dict, val: list[Protein]) -> None:
    state = FRAMES.encode(val[1:4])
    before, place = rewards["motif"].relaxed(state), state["position"]
    for _ in range(60):
        place = place.detach().requires_grad_()
        (slope,) = torch.autograd.grad(rewards["motif"].relaxed(state | {"position": place}).sum(), place)
        place = place + 3 * slope / slope.flatten(1).norm(dim=1)[:, None, None].clamp(min=1e-9)
    after = rewards["motif"].relaxed(state | {"position": place.detach()})
    assert (after > before + 0.3).all()


# Hotspots


def _target(tmp_path: Path, hotspot: list[float], wall: float) -> str:
    """A hotspot and, further along x, the rest of a target: 3 atoms in a row."""
    atoms = np.zeros((2, 4, 3))
    atoms[0] = hotspot
    atoms[1] = [wall, 0, 0]
    path = tmp_path / "target.pdb"
    FRAMES.write(Protein("GG", atoms), path, {})
    return str(path)


@pytest.mark.parametrize(("away", "touched"), [(4.0, 1.0), (8.0, 1.0), (16.0, 0.5), (24.0, 0.2)])
def test_a_hotspot_counts_by_its_distance(tmp_path: Path, away: float, touched: float) -> None:
    reward = hotspot_contacts.build(FRAMES, _target(tmp_path, [0, 0, 0], 30.0), "A1", away)
    result = reward([Protein("A", np.full((1, 4, 3), 5.0))])
    assert result.value.item() == pytest.approx(touched, abs=1e-6)
    assert result.parts["touched"].item() == (touched == 1)
    assert result.parts["clashes"].item() == 0


def test_a_design_is_put_on_the_side_away_from_the_target(tmp_path: Path) -> None:
    reward = hotspot_contacts.build(FRAMES, _target(tmp_path, [0, 0, 0], 9.0), "A1", 6.0)
    assert reward.hotspots[0].tolist() == pytest.approx([6, 0, 0])
    assert reward.target[:, 0].max().item() == pytest.approx(15)


def test_running_into_the_target_costs(tmp_path: Path) -> None:
    reward = hotspot_contacts.build(FRAMES, _target(tmp_path, [0, 0, 0], 9.0), "A1.CA", 1.7)
    result = reward([Protein("A", np.zeros((1, 4, 3)))])
    assert result.parts["clashes"].item() == 1
    assert result.value.item() == pytest.approx(1 / (1 + 0.5))


def test_side_chains_and_what_is_no_protein_belong_to_the_target(file: str, tmp_path: Path) -> None:
    lines = Path(file).read_text().splitlines()
    atom = next(line for line in lines if line.startswith("ATOM") and line[12:16] == " CA ")
    extra = [
        atom[:12] + " CB " + atom[16:76] + " C  ",
        "HETATM 9001 ZN    ZN B 301      30.000  30.000  30.000  1.00  0.00          ZN  ",
        "HETATM 9003  H1   ZN B 301      70.000  30.000  30.000  1.00  0.00           H  ",
        "HETATM 9002  O   HOH B 302      60.000  30.000  30.000  1.00  0.00           O  ",
    ]
    at = lines.index(atom) + 1
    path = tmp_path / "more.pdb"
    path.write_text(
        "\n".join([*lines[:at], extra[0], *(x for x in lines[at:] if x.strip() != "END"), *extra[1:], "END", ""])
    )
    plain, more = (hotspot_contacts.build(FRAMES, str(x), "A5") for x in (file, path))
    assert len(more.target) == len(plain.target) + 2
    with pytest.raises(RewardError, match=r"A:1 has N, CA, CB, C, O, no NZ"):
        hotspot_contacts.build(FRAMES, str(path), "A1.NZ")


# What is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file": ""}, "give both"),
        ({"file": "missing.pdb"}, "cannot be read"),
        ({"file": __file__}, "ends in '.py'"),
        ({"residues": "A5-A500"}, "no residue A:500; .*chain A has 1 to"),
        ({"residues": "B5-B9"}, "no residue B:5; its chains are A"),
        ({"residues": "A9-A5"}, "runs backwards"),
        ({"residues": "5-9"}, "'5-9' names no residues"),
        ({"residues": "A5-A6", "at": ()}, "are 2; it takes 3"),
        ({"at": (1,)}, "for 2 segments"),
        ({"at": (1, 10)}, "at=10 for a segment of 6; it must be from 16 to 75"),
        ({"at": (1, 76)}, "at=76 for a segment of 6; it must be from 16 to 75"),
        ({"at": (-3, 76)}, "at=-3"),
        ({"scale": 0.0}, "scale=0.0; it is from"),
        ({"scale": float("nan")}, "scale=nan"),
        ({"domain": protein.build("sequence")}, "scores proteins as frames"),
    ],
)
def test_a_bad_motif_is_refused_in_one_line(file: str, change: dict, message: str) -> None:
    given = {"domain": FRAMES, "file": file, "residues": "A5-A19,A30-A35", "at": (5, 30), "scale": 2.0}
    with pytest.raises(RewardError, match=message) as caught:
        motif_rmsd.build(**given | change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hotspots": ""}, "give both"),
        ({"hotspots": "A5-A9"}, "is a stretch"),
        ({"hotspots": "A5.CG"}, "no CG"),
        ({"hotspots": "A999"}, "no residue A:999"),
        ({"away": -1.0}, "away=-1.0; it is from 0 to 100"),
        ({"away": float("nan")}, "away=nan"),
        ({"domain": protein.build("sequence")}, "scores proteins as frames"),
    ],
)
def test_bad_hotspots_are_refused_in_one_line(file: str, change: dict, message: str) -> None:
    with pytest.raises(RewardError, match=message):
        hotspot_contacts.build(**{"domain": FRAMES, "file": file, "hotspots": "A5,A8", "away": 15.0} | change)
