"""What every network for sequences must do."""

import pytest
import torch

from data.noise import StepNoise
from generators.manifolds.rotations import from_quaternion
from generators.networks.dilated_convolutions import DilatedConvolutions
from generators.networks.frame_attention import FrameAttention, Frames, quaternion_turn


def network() -> DilatedConvolutions:
    torch.manual_seed(0)
    made = DilatedConvolutions(length=12, width_in=3, width_out=5, channels=8, depth=3, kernel=3)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return made


def output(x: torch.Tensor, mask: torch.Tensor | None = None, start: float = 0.2, end: float = 0.9) -> torch.Tensor:
    mask = torch.ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
    times = torch.full((len(x),), start), torch.full((len(x),), end)
    made: torch.Tensor = network()(x, mask, *times)
    return made


def test_the_shape_and_type_of_the_output() -> None:
    made = output(torch.randn(2, 12, 3))
    assert made.shape == (2, 12, 5)
    assert made.dtype == torch.float32


def test_autocast_changes_little() -> None:
    x = torch.randn(4, 12, 3)
    with torch.autocast("cpu", torch.bfloat16):
        low = output(x)
    assert low.dtype == torch.float32
    assert (low - output(x)).abs().max() < 0.1 * output(x).std()


@pytest.mark.parametrize("used", [1, 5, 11])
def test_sites_out_of_use_change_nothing(used: int) -> None:
    x = torch.randn(2, 12, 3)
    mask = torch.arange(12).expand(2, 12) < used
    other = torch.where(mask[..., None], x, 9.0)
    assert torch.allclose(output(x, mask)[:, :used], output(other, mask)[:, :used])


@pytest.mark.parametrize(("start", "end"), [(0.3, 0.9), (0.2, 0.8)])
def test_both_times_matter(start: float, end: float) -> None:
    x = torch.randn(2, 12, 3)
    assert not torch.allclose(output(x), output(x, start=start, end=end))


def test_the_place_matters() -> None:
    """The same letters everywhere: a network that did not know places would differ only near the ends."""
    made = output(torch.ones(1, 12, 3))[0]
    assert (made[5] - made[6]).abs().max() > 1e-3


def test_it_has_a_gradient_everywhere() -> None:
    x = torch.randn(2, 12, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(output(x).square().sum(), x)
    assert gradient.isfinite().all()
    assert (gradient.abs().sum(-1) > 0).all()


Pair = tuple[torch.Tensor, torch.Tensor]
BODY = ((-0.05, 0.14, 0.0), (0.0, 0.0, 0.0), (0.15, 0.0, 0.0))
TURN = from_quaternion(torch.tensor([0.3, -1.0, 0.5, 2.0]))


def frames(batch: int = 2, length: int = 12, seed: int = 0) -> Pair:
    """Places (B, L, 3) and rotations (B, L, 9)."""
    rng = StepNoise(seed)
    return 0.5 * rng.normal(batch, length, 3), from_quaternion(rng.normal(batch, length, 4)).flatten(-2)


def frame_network() -> FrameAttention:
    torch.manual_seed(0)
    made = FrameAttention(channels=16, depth=3, kernel=3, body=BODY)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.03 * torch.randn_like(parameter)
    return made


def updated(x: Pair, mask: torch.Tensor | None = None, start: float = 0.2, end: float = 0.9) -> Pair:
    mask = torch.ones(x[0].shape[:2], dtype=torch.bool) if mask is None else mask
    place, turn = frame_network()(*x, mask, torch.full((len(mask),), start), torch.full((len(mask),), end))
    return place, turn


def turned(x: Pair) -> Pair:
    return x[0] @ TURN.T, (TURN @ x[1].unflatten(-1, (3, 3))).flatten(-2)


def test_frames_are_moved_and_turned() -> None:
    x = frames()
    place, turn = updated(x)
    r = turn.unflatten(-1, (3, 3))
    assert torch.allclose(r.mT @ r, torch.eye(3).expand(2, 12, 3, 3), atol=1e-5)
    assert (place - x[0]).abs().max() > 0.1
    assert (turn - x[1]).abs().max() > 0.1


def test_output_turns_with_input() -> None:
    before, after = turned(updated(frames())), updated(turned(frames()))
    assert torch.allclose(before[0], after[0], atol=1e-5)
    assert torch.allclose(before[1], after[1], atol=1e-5)


def test_it_tells_left_from_right() -> None:
    """Places in a mirror, each frame at its place's mirror image: no network of distances alone would see it."""
    place, turn = frames()
    mirror = torch.tensor([1.0, 1.0, -1.0])
    flipped = (mirror[:, None] * turn.unflatten(-1, (3, 3)) * mirror).flatten(-2)
    assert (updated((place * mirror, flipped))[0] - updated((place, turn))[0] * mirror).abs().max() > 1e-2


def test_at_time_1_nothing_is_left_to_do() -> None:
    x = frames()
    place, turn = updated(x, start=1.0, end=1.0)
    assert torch.allclose(place, x[0], atol=1e-6)
    assert torch.allclose(turn, x[1], atol=1e-6)


@pytest.mark.parametrize("used", [1, 5, 11])
def test_frames_out_of_use_change_nothing(used: int) -> None:
    mask = torch.arange(12).expand(2, 12) < used
    one, other = frames(), frames(seed=1)
    mixed = tuple(torch.where(mask[..., None], a, b) for a, b in zip(one, other, strict=True))
    for a, b in zip(updated(one, mask), updated(mixed, mask), strict=True):  # type: ignore[arg-type]
        assert torch.allclose(a[:, :used], b[:, :used], atol=1e-5)


def test_padding_changes_nothing() -> None:
    short = frames(length=7)
    padded = tuple(torch.nn.functional.pad(part, (0, 0, 0, 5)) for part in short)
    mask = torch.arange(12).expand(2, 12) < 7
    for a, b in zip(updated(short), updated(padded, mask), strict=True):  # type: ignore[arg-type]
        assert torch.allclose(a, b[:, :7], atol=1e-5)


@pytest.mark.parametrize(("start", "end"), [(0.3, 0.9), (0.2, 0.8)])
def test_both_times_matter_to_frames(start: float, end: float) -> None:
    assert not torch.allclose(updated(frames())[0], updated(frames(), start=start, end=end)[0], atol=1e-4)


def test_autocast_changes_frames_little() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        low = updated(frames())
    for a, b, before in zip(low, updated(frames()), frames(), strict=True):
        assert a.dtype == torch.float32
        assert (a - b).abs().max() < 0.1 * (b - before).abs().max()


@pytest.mark.parametrize("coincident", [False, True])
def test_frames_have_a_gradient_everywhere(coincident: bool) -> None:
    place, turn = frames()
    x = ((0 * place if coincident else place).requires_grad_(), turn.requires_grad_())
    gradients = torch.autograd.grad(sum(part.square().sum() for part in updated(x)), x)
    for gradient in gradients:
        assert gradient.isfinite().all()
        assert coincident or (gradient.abs().sum(-1) > 0).all()


def test_a_link_moves_all_that_follow() -> None:
    """By one along the first axis of frame 2; the mean stays where it was."""
    place, turn = frames(batch=1, length=5)
    link = torch.zeros(1, 5, 3)
    link[0, 2, 0] = 1.0
    mask = torch.tensor([[True] * 4 + [False]])
    found = Frames(place, turn.unflatten(-1, (3, 3)), mask, torch.zeros(0, 3)).updated(0 * link, link, 0 * link)
    moved = found.place - place
    axis = turn[0, 2].reshape(3, 3)[:, 0]
    assert torch.allclose(moved[0, 3] - moved[0, 1], axis, atol=1e-6)
    assert torch.allclose(moved[0, 1], moved[0, 0], atol=1e-6)
    assert torch.allclose(moved[0, :4].mean(0), torch.zeros(3), atol=1e-6)
    assert torch.allclose(found.turn, turn.unflatten(-1, (3, 3)), atol=1e-6)


def test_bonds_are_between_the_points_of_neighbours() -> None:
    place, turn = frames(batch=1, length=4)
    rotation, mask = turn.unflatten(-1, (3, 3)), torch.tensor([[True] * 3 + [False]])
    way, length = Frames(place, rotation, mask, torch.tensor(BODY)).bonds()
    from_c = place[0, 1] + rotation[0, 1] @ torch.tensor(BODY[2])
    to_n = place[0, 2] + rotation[0, 2] @ torch.tensor(BODY[0])
    assert torch.allclose(length[0, 1, 2, 0], (to_n - from_c).norm(), atol=1e-4)
    assert torch.allclose(way[0, 1, 2, 0] * length[0, 1, 2, 0], to_n - from_c, atol=1e-4)
    assert not length[0, 2:].any()
    assert not way[0, 2:].any()


def test_a_pull_brings_two_points_together_and_moves_nothing_else() -> None:
    """Both by the same length along the line between them, so that their common centre stays."""
    place, turn = frames(batch=1, length=5)
    mask = torch.ones(1, 5, dtype=torch.bool)
    before = Frames(place, turn.unflatten(-1, (3, 3)), mask, torch.tensor(BODY))
    strength = torch.zeros(1, 5, 3, 3)
    strength[0, 1, 1, 1] = 0.01
    after = before.pulled(strength)
    assert torch.allclose(after.bonds()[1][0, 1, 1, 1], before.bonds()[1][0, 1, 1, 1] - 0.02, atol=1e-4)
    assert torch.allclose(after.place.mean(1), before.place.mean(1), atol=1e-6)
    assert torch.equal(after.place[0, [0, 3, 4]], before.place[0, [0, 3, 4]])
    strength[0, 1, 1, 1], strength[0, 1, 2, 0] = 0.0, 0.001
    bond = [found.bonds()[1][0, 1, 2, 0] for found in (before, before.pulled(strength))]
    assert bond[1] < bond[0]


def test_a_frame_without_a_body_has_no_bonds() -> None:
    assert not [name for name in FrameAttention(16, 2, 3).state_dict() if "bonds" in name]


def test_turns_are_those_of_quaternions() -> None:
    q = StepNoise(0).normal(20, 3)
    assert torch.allclose(quaternion_turn(q), from_quaternion(torch.nn.functional.pad(q, (1, 0), value=1.0)), atol=1e-6)
