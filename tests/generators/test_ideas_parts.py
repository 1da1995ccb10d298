"""The parts of IDEAS against closed forms and brute force."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from data.noise import StepNoise
from data.space import Categorical, Space
from generators.ideas import explainers, guided, operators, selection, surrogate
from generators.ideas.alphabet import UNUSED, Alphabet
from generators.ideas.explainers import Explainer
from generators.ideas.explanation import Explanation, Motif, critical, explain, mirrored, motifs
from generators.ideas.meter import BudgetError, Meter
from generators.ideas.strategy import FLOOR, SHARES, Credit, Explained
from tests.generators.test_ideas import PAIRS, additive, states

BASES = Alphabet(Space(16, {"base": Categorical(4)}))
BOTH = Alphabet(PAIRS)


def letters(alphabet: Alphabet, n: int, shortest: int | None = None, seed: int = 0) -> Tensor:
    return alphabet.letters(states(alphabet.space, n, seed, shortest))


def model(cells: Tensor) -> Tensor:
    """Smooth, and not additive."""
    weights = torch.linspace(-1, 1, cells[0].numel()).sin()
    return torch.tanh((cells.flatten(1) * weights).sum(-1)) + 0.1 * cells[..., 0].sum(-1).square()


@pytest.mark.parametrize("alphabet", [BASES, BOTH], ids=["one factor", "two factors"])
def test_letters_and_states_are_the_same(alphabet: Alphabet) -> None:
    state = states(alphabet.space, 20, shortest=1)
    found = alphabet.letters(state)
    assert ((found == UNUSED) == ~state["mask"][..., None]).all()
    back = alphabet.state(found)
    assert set(back) == set(state)
    assert all(torch.equal(back[name], state[name]) for name in state)


EXPLAINERS = [explainers.ism, explainers.first_order, explainers.integrated_gradients]


@pytest.mark.parametrize("alphabet", [BASES, BOTH], ids=["one factor", "two factors"])
def test_integrated_gradients_are_complete(alphabet: Alphabet) -> None:
    """Without one, effects differ by their means over the letters from attributions, which add up to the gain."""
    designs = letters(alphabet, 12, shortest=3)
    worth = alphabet.centre(explainers.integrated_gradients(model, alphabet, designs))
    gained = model(alphabet.one_hot(designs)) - model(alphabet.uniform(designs))
    assert torch.allclose((worth * alphabet.one_hot(designs)).sum((1, 2)), gained, atol=0.01)


def test_integrated_gradients_are_those_of_captum() -> None:
    captum = pytest.importorskip("captum.attr")
    designs = letters(BASES, 5)
    start, end = BASES.uniform(designs), BASES.one_hot(designs)
    theirs = captum.IntegratedGradients(model).attribute(
        end, start, n_steps=explainers.POINTS, method="riemann_middle"
    ) / (end - start)
    present = theirs.gather(-1, designs)
    assert torch.allclose(explainers.integrated_gradients(model, BASES, designs), theirs - present, atol=1e-4)


@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.parametrize("alphabet", [BASES, BOTH], ids=["one factor", "two factors"])
def test_every_explainer_explains_a_linear_model_exactly(alphabet: Alphabet, explainer: Explainer) -> None:
    """Effects are those of trying each substitution; criticality is their mean loss."""
    weights = torch.randn(alphabet.space.length, sum(alphabet.sizes), generator=torch.Generator().manual_seed(0))
    designs = letters(alphabet, 4, shortest=3)
    why = explain(explainer, lambda cells: (cells * weights).sum((1, 2)), alphabet, designs)
    assert (why.effects[(designs == UNUSED)[..., 0]] == 0).all()
    effects = alphabet.split(why.effects)
    for row, site, factor in (designs != UNUSED).nonzero().tolist():
        own = int(alphabet.starts[factor])
        column = weights[site, own : own + alphabet.sizes[factor]]
        tried = column - column[designs[row, site, factor]]
        assert torch.allclose(effects[factor][row, site], tried, atol=1e-4)
        loss = -float(tried.sum()) / (alphabet.sizes[factor] - 1)
        assert float(why.criticality[row, site, factor]) == pytest.approx(loss, abs=1e-4)


def test_a_planted_motif_is_critical() -> None:
    criticality = 0.2 * torch.randn(50, 60, 1, generator=torch.Generator().manual_seed(0))
    criticality[:, 20:28] += 1
    found = critical(criticality, torch.ones(50, 60, 1, dtype=torch.bool))[..., 0]
    assert found[:, 20:28].float().mean() > 0.9
    assert found[:, 20:28].sum() / found.sum() > 0.8
    assert not critical(-criticality.abs(), torch.ones(50, 60, 1, dtype=torch.bool)).any()


def test_motifs_are_runs_of_critical_positions_with_small_gaps() -> None:
    why = explanation([[0, 0, 1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 1, 1]])
    found = motifs(why)
    assert [(m.owner, m.start, len(m.letters), m.worth) for m in found] == [
        (0, 2, 3, 3.0),
        (1, 0, 6, 4.0),
        (2, 0, 3, 3.0),
    ]
    assert torch.equal(found[0].letters, why.letters[0, 2:5, 0])
    assert torch.equal(found[1].letters == UNUSED, torch.tensor([False, False, True, True, False, False]))
    assert torch.equal(found[1].letters[[0, 1, 4, 5]], why.letters[1, [0, 1, 4, 5], 0])
    short = motifs(explanation([[0, 0, 1, 0, 0, 0, 1, 1]]))
    assert [(m.start, len(m.letters)) for m in short] == [(2, 1), (6, 2)]


def test_the_other_strand_of_a_motif_is_where_that_of_its_design_has_it() -> None:
    design = torch.tensor([0, 0, 1, 3, 3, 2, 0, 0])
    motif = Motif(torch.tensor([1, UNUSED, 3, 2]), 2, 0, 1.0, 0)
    other = mirrored(motif, 8, 4)
    assert (other.letters.tolist(), other.start) == ([1, 0, UNUSED, 2], 2)
    there = (3 - design.flip(0))[other.start : other.start + 4]
    assert torch.equal(there.where(other.letters != UNUSED, UNUSED), other.letters)
    again = mirrored(other, 8, 4)
    assert torch.equal(again.letters, motif.letters)
    assert again.start == motif.start


def explanation(marks: list[list[int]]) -> Explanation:
    """Of random designs of length 8 whose marked positions are critical."""
    mask = torch.tensor(marks)[..., None]
    alphabet = Alphabet(Space(8, {"base": Categorical(4)}))
    designs = letters(alphabet, len(marks))
    return Explanation(designs, torch.zeros(len(marks), 8, 4), mask.float(), mask.bool())


def test_a_graft_spares_critical_positions_and_finds_the_best_place() -> None:
    alphabet, why = Alphabet(Space(8, {"base": Categorical(4)})), explanation([[0, 0, 0, 1, 0, 0, 0, 0]])
    why.letters[0, :, 0] = 0
    why.effects[0, 4:7, 1:] = torch.eye(3)
    motif = Motif(torch.tensor([1, 2, 3]), 1, 0, 1.0, 0)
    made = guided.graft(alphabet, why, [motif], torch.zeros(40, dtype=torch.long), StepNoise(0))[..., 0]
    assert {tuple(row) for row in made.tolist()} == {(0, 1, 2, 0, 0, 0, 0, 0), (0, 0, 0, 0, 1, 2, 3, 0)}


def test_a_gap_of_a_motif_is_not_written() -> None:
    alphabet, why = Alphabet(Space(8, {"base": Categorical(4)})), explanation([[0] * 8])
    why.letters[0, :, 0] = 0
    motif = Motif(torch.tensor([1, UNUSED, 3]), 2, 0, 1.0, 0)
    why.effects[0, 5, 1] = why.effects[0, 7, 3] = 1
    made = guided.graft(alphabet, why, [motif], torch.zeros(40, dtype=torch.long), StepNoise(0))[..., 0]
    assert {tuple(row) for row in made.tolist()} == {(0, 0, 1, 0, 3, 0, 0, 0), (0, 0, 0, 0, 0, 1, 0, 3)}


def test_recombination_keeps_what_is_critical() -> None:
    why = explanation([[1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1]])
    why.letters[0], why.letters[1] = 0, 3
    why.letters[1, 5:] = UNUSED
    pairs = torch.tensor([0, 1]).repeat(50), torch.tensor([1, 0]).repeat(50)
    made = guided.recombine(why, *pairs, StepNoise(0))[..., 0]
    assert (made[0::2, :2] == 0).all()
    assert (made[0::2, 5:] == 0).all()
    assert (made[1::2, 5:] == UNUSED).all()
    assert (made[1::2, :2] == 0).all()
    assert set(made[:, 2:5].flatten().tolist()) == {0, 3}


@pytest.mark.parametrize("alphabet", [BASES, BOTH], ids=["one factor", "two factors"])
def test_mutation_changes_some_letters_and_no_length(alphabet: Alphabet) -> None:
    designs = letters(alphabet, 400, shortest=2)
    made = operators.mutate(alphabet, designs, alphabet.uniform(designs), StepNoise(0))
    changed = (made != designs).sum((1, 2))
    assert 1 <= int(changed.min()) <= int(changed.max()) <= alphabet.positions // 2
    assert (changed == 1).float().mean() > 0.4
    assert torch.equal(made == UNUSED, designs == UNUSED)
    assert (made < torch.tensor(alphabet.sizes)).all()
    assert ((made != designs) | (designs == UNUSED)).any(0).all()


def test_mutation_follows_its_weights() -> None:
    designs = torch.zeros(4000, 16, 1, dtype=torch.long)
    weights = torch.zeros(4000, 16, 4)
    weights[:, 3, 1], weights[:, 3, 2], weights[:, 9, 3], weights[:, 5, 0] = 1, 2, 3, 100
    made = operators.mutate(BASES, designs, weights, StepNoise(1))[..., 0]
    assert (made[:, [i for i in range(16) if i not in (3, 9)]] == 0).all()
    only_three = made[(made[:, 9] == 0)][:, 3]
    assert float((only_three == 2).float().mean()) == pytest.approx(2 / 3, abs=0.05)
    single = made[(made > 0).sum(-1) == 1]
    assert float((single[:, 9] > 0).float().mean()) == pytest.approx(1 / 2, abs=0.05)


def test_protection_is_in_proportion_to_trust() -> None:
    alphabet, why = Alphabet(Space(8, {"base": Categorical(4)})), explanation([[1, 1, 1, 1, 0, 0, 0, 0]])
    assert torch.allclose(guided.protected(alphabet, why, 0.0), (alphabet.one_hot(why.letters) == 0) / 24, atol=1e-6)
    assert (guided.protected(alphabet, why, 1.0)[:, :4] == 0).all()
    half = guided.protected(alphabet, why, 0.5)
    assert float(half[:, :4].sum() / half[:, 4:].sum()) == pytest.approx(0.5)


@pytest.mark.parametrize(("operator", "spares"), [("protect", True), ("wish", False), ("leak", False)])
def test_only_protection_spares_what_is_critical(operator: str, spares: bool) -> None:
    alphabet, why = Alphabet(Space(8, {"base": Categorical(4)})), explanation([[1, 1, 1, 1, 0, 0, 0, 0]])
    chosen = torch.full((200,), list(SHARES).index(operator))
    made = Explained(alphabet)._apply(why, 1.0, chosen, torch.zeros_like(chosen), StepNoise(0))
    changed = made != why.letters
    assert changed[:, 4:].any(0).all()
    assert bool(changed[:, :4].any()) is not spares


def test_draws_have_the_chances_of_their_weights() -> None:
    drawn = torch.bincount(operators.choose(torch.tensor([1.0, 0.0, 3.0, 0.0]), 8000, StepNoise(0)), minlength=4) / 8000
    assert drawn.tolist() == pytest.approx([0.25, 0, 0.75, 0], abs=0.02)


def test_shares_follow_success_and_none_dies() -> None:
    credit = Credit({"a": 0.5, "b": 0.3, "c": 0.2})
    assert credit.shares().tolist() == pytest.approx([FLOOR + (1 - 3 * FLOOR) * share for share in (0.5, 0.3, 0.2)])
    for _ in range(50):
        credit.add(torch.tensor([0, 0, 1, 1, 2]), torch.tensor([False, False, True, True, False]))
    shares = credit.shares()
    assert float(shares.sum()) == pytest.approx(1)
    assert shares[1] > 0.85
    assert shares.min() >= FLOOR


def test_the_meter_charges_each_design_once_and_never_overdraws() -> None:
    asked: list[int] = []

    def score(state: dict[str, Tensor]) -> Tensor:
        asked.append(len(state["mask"]))
        return additive(state)

    meter, designs = Meter(score, BASES, 10), letters(BASES, 12)
    twice = designs[[0, 1, 1, 0, 2]]
    assert torch.equal(meter.measure(twice), additive(BASES.state(twice)))
    assert meter.left == 7
    assert torch.equal(meter.fresh(designs[[3, 0, 3, 4]]), designs[[3, 4]])
    with pytest.raises(BudgetError, match="8 new designs with 7 of 10 calls left"):
        meter.measure(designs[3:11])
    assert meter.left == 7
    meter.measure(designs[:10])
    meter.measure(designs[:10])
    assert (asked, meter.left) == ([3, 7], 0)


def test_a_surrogate_learns_and_says_how_far_to_trust_it() -> None:
    designs = letters(BASES, 200)
    values = additive(BASES.state(designs))
    model = surrogate.fit(BASES, designs[:150], values[:150], 3, StepNoise(0))
    mean, spread = model.predict(designs[150:])
    assert surrogate.spearman(mean, values[150:]) > 0.6
    assert model.trust > 0.6
    assert spread.shape == (50,)
    shuffled = values[:150][StepNoise(1).uniform(150).argsort()]
    assert surrogate.fit(BASES, designs[:150], shuffled, 3, StepNoise(0)).trust < 0.3


def test_a_member_is_a_gaussian_process() -> None:
    """Mean and variance of the one member, from the textbook's formulas on the rows that it was shown, in float64."""
    designs = letters(BASES, 30)
    values, asked = additive(BASES.state(designs)), letters(BASES, 9, seed=1)
    model = surrogate.fit(BASES, designs, values, 1, StepNoise(0))
    shown = model.weights[:, 0] != 0
    counts = torch.bincount((StepNoise(0).uniform(1, 30)[0] * 30).long(), minlength=30)
    assert torch.equal(shown, counts > 0)

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        hamming = (a[:, None] != b).sum((2, 3)).double()
        return (-hamming / (surrogate.REACH * 16)).exp()

    noise = torch.diag(surrogate.NOISE / counts[shown].double())
    inverse = torch.linalg.inv(kernel(designs[shown], designs[shown]) + noise)
    near = kernel(asked, designs[shown])
    mean, spread = model.predict(asked)
    assert torch.allclose(mean.double(), near @ inverse @ surrogate.standard(values)[shown].double(), atol=1e-3)
    assert torch.allclose(spread.double().square(), 1 - (near @ inverse @ near.T).diagonal(), atol=1e-3)


def test_normal_scores_are_those_of_the_order() -> None:
    found = surrogate.standard(torch.tensor([3.0, 1e9, -5.0, 3.0]))
    assert found[0] == found[3]
    assert found[2] < found[0] < found[1]
    assert float(found[1]) == pytest.approx(1.1503, abs=1e-3)
    assert float(found.sum()) == pytest.approx(0, abs=1e-5)


def test_doubt_grows_with_the_distance_to_what_was_measured() -> None:
    designs = letters(BASES, 60)
    model = surrogate.fit(BASES, designs, additive(BASES.state(designs)), 3, StepNoise(0))
    near = designs.clone()
    near[:, 0] = (near[:, 0] + 1) % 4
    known, close, far = (float(model.predict(x)[1].mean()) for x in (designs, near, letters(BASES, 60, seed=5)))
    assert known < close < far < 1.5


@pytest.mark.parametrize("values", [[1.0] * 6, [0.0, 1.0] * 3, [5.0]])
def test_nothing_is_learned_from_too_few_values(values: list[float]) -> None:
    designs = letters(BASES, len(values))
    model = surrogate.fit(BASES, designs, torch.tensor(values), 3, StepNoise(0))
    assert model.trust == 0
    assert model.mean(BASES.one_hot(designs)).isfinite().all()


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 1, 1], [1, 2, 3], 0.0),
        ([], [], 0.0),
        ([1, 2, 2, 3], [1, 3, 2, 4], 3 / 10**0.5),
    ],
)
def test_rank_correlation(a: list[float], b: list[float], wanted: float) -> None:
    assert surrogate.spearman(torch.tensor(a, dtype=torch.float), torch.tensor(b, dtype=torch.float)) == pytest.approx(
        wanted, abs=1e-5
    )


def test_elites_are_the_best_that_are_apart() -> None:
    meter, designs = Meter(additive, BASES, 40), letters(BASES, 20)
    near = designs.clone()
    near[:, 0] = (near[:, 0] + 1) % 4
    meter.measure(torch.cat([designs, near]))
    kept = selection.elites(meter, 8)
    assert len(kept) == 8
    values = meter.values[kept].tolist()
    assert values == sorted(values, reverse=True)
    chosen = meter.designs[kept]
    assert all(int(selection.distances(chosen[:i], chosen[i]).min()) >= 2 for i in range(1, 8))
    assert float(meter.values.max()) == values[0]


def test_a_batch_is_good_uncertain_and_apart() -> None:
    mean, alone = torch.tensor([1.0, 0.95, 0.9, 0.0]), 0.01 * torch.eye(4)
    alike = alone.clone()
    alike[:2, :2] = 0.01
    assert selection.batch(mean, alone, 2).tolist() == [0, 1]
    assert selection.batch(mean, alike, 2).tolist() == [0, 2]
    assert selection.batch(mean, torch.diag(torch.tensor([0.0, 0, 0, 9])), 1).tolist() == [3]
    assert sorted(selection.batch(mean, alone, 9).tolist()) == [0, 1, 2, 3]


def test_the_doubt_that_a_batch_leaves_is_that_of_a_process_that_was_told_of_it() -> None:
    """The second choice is the best bound of a Gaussian process conditioned on the first."""
    root = torch.randn(30, 30, generator=torch.Generator().manual_seed(0)) / 30**0.5
    covariance, mean = root @ root.T, torch.zeros(30)
    first, second = selection.batch(mean, covariance, 2).tolist()
    assert first == int(covariance.diagonal().argmax())
    told = covariance[:, first]
    left = covariance.diagonal() - told.square() / (covariance[first, first] + surrogate.NOISE)
    left[first] = 0
    assert second == int(left.argmax())


def test_joint_predictions_agree_with_single_ones() -> None:
    designs = letters(BASES, 60)
    model = surrogate.fit(BASES, designs, additive(BASES.state(designs)), 3, StepNoise(0))
    asked = torch.cat([designs[:5], letters(BASES, 20, seed=1)])
    mean, covariance = model.joint(asked)
    alone, spread = model.predict(asked)
    assert torch.allclose(mean, alone, atol=1e-5)
    assert torch.allclose(covariance.diagonal(), spread.square(), atol=1e-4)
    assert torch.allclose(covariance, covariance.T, atol=1e-4)
    assert torch.linalg.eigvalsh(covariance.double()).min() > -1e-3


@pytest.mark.parametrize("alphabet", [BASES, BOTH], ids=["one factor", "two factors"])
def test_neighbours_that_only_broken_designs_had_are_avoided(alphabet: Alphabet) -> None:
    """The score forbids a letter after another; with all pairs seen, what is sound is what can be made."""

    def broken(designs: Tensor) -> Tensor:
        return ((designs[:, :-1, 0] == 1) & (designs[:, 1:, 0] == 2)).any(-1)

    def score(state: dict[str, Tensor]) -> Tensor:
        return torch.zeros(len(state["mask"])).masked_fill(broken(alphabet.letters(state)), -torch.inf)

    meter = Meter(score, alphabet, 300)
    meter.measure(letters(alphabet, 200, shortest=2))
    asked = letters(alphabet, 100, shortest=2, seed=5)
    assert selection.sound(meter, asked).tolist() == (~broken(asked)).nonzero().flatten().tolist()
    assert selection.sound(meter, asked[broken(asked)]).tolist() == list(range(int(broken(asked).sum())))
