"""What every network for sequences must do."""

import pytest
import torch

from generators.networks.dilated_convolutions import DilatedConvolutions


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
