"""The domain of icons: states, what junk decodes to, the corpus, foreign reference files, baselines, rules."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data import corpora
from data.space import Categorical, Real, State
from domains import svg
from domains.base import DesignError, Overview
from domains.svg import files, units
from domains.svg.icon import COORDINATES, HIGH, LOW, Icon, Segment, assembled

DOMAIN = svg.build(40)
CORPUS = {split: DOMAIN.corpus(split) for split in ("train", "val")}


def icon(*words: str) -> Icon:
    """The icon of segments written `C 1 2 3 4 5 6`."""
    return assembled([Segment(w.split()[0], tuple(map(float, w.split()[1:]))) for w in words])


def coordinates(n: int) -> st.SearchStrategy[tuple[float, ...]]:
    return st.tuples(*[st.integers(round(100 * LOW), round(100 * HIGH)).map(lambda i: i / 100)] * n)


def segments(command: str) -> st.SearchStrategy[Segment]:
    return st.builds(Segment, st.just(command), coordinates(COORDINATES[command]))


PATHS = st.builds(
    lambda first, others, last: (first, *others, *last),
    segments("M"),
    st.lists(st.one_of(segments("L"), segments("C")), max_size=5),
    st.sampled_from([(), (Segment("Z"),)]),
)
ICONS = st.builds(Icon, st.lists(PATHS, max_size=5).map(tuple))


def junk(seed: int, n: int = 50, size: float = 2.0) -> State:
    """States that no one drew: any commands, numbers far off the canvas, holes in the mask."""
    rng = torch.Generator().manual_seed(seed)
    return {
        "command": torch.rand(n, 40, 4, generator=rng),
        "arguments": size * torch.randn(n, 40, 6, generator=rng),
        "mask": torch.rand(n, 40, generator=rng) < torch.rand(n, 1, generator=rng),
    }


def test_the_space_says_which_numbers_a_command_uses() -> None:
    arguments = DOMAIN.space.factors["arguments"]
    assert DOMAIN.space.factors["command"] == Categorical(4)
    assert isinstance(arguments, Real)
    assert (arguments.given, [sum(row) for row in arguments.used]) == ("command", list(COORDINATES.values()))


@pytest.mark.parametrize("length", [0, 7, 129])
def test_other_lengths_are_refused_with_value_and_limits(length: int) -> None:
    with pytest.raises(DesignError, match=rf"length={length}; .*8 to 128.*choose"):
        svg.build(length)


@pytest.mark.parametrize("split", ["train", "val"])
def test_decoding_undoes_encoding_of_every_real_icon(split: str) -> None:
    state = DOMAIN.encode(CORPUS[split])
    DOMAIN.space.check(state)
    assert DOMAIN.decode(state) == CORPUS[split]
    used = torch.tensor(units.space(40).factors["arguments"].used)[state["command"].argmax(-1)]
    assert not (state["arguments"] * ~(used & state["mask"][..., None])).any()
    assert not state["command"][~state["mask"]].any()


@settings(max_examples=25, deadline=None)
@given(designs=st.lists(ICONS, max_size=3))
def test_decoding_undoes_encoding_of_any_icon(designs: list[Icon]) -> None:
    assert DOMAIN.decode(DOMAIN.encode(designs)) == designs


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [0.1, 1e6])
def test_any_state_decodes_to_an_icon_that_encodes_again(seed: int, size: float) -> None:
    designs = DOMAIN.decode(junk(seed, size=size))
    assert len(designs) == 50
    assert DOMAIN.decode(DOMAIN.encode(designs)) == designs
    assert all(DOMAIN.violations(design) is not None for design in designs)


def test_what_a_path_lacks_is_mended_and_unused_units_are_left_out() -> None:
    """A line where no path is open begins one at its end, and a Z there is nothing."""
    codes = ["Z", "L", "C", "Z", "Z", "L", "L", "M"]
    state = {
        "command": torch.eye(4)[[units.COMMANDS.index(code) for code in codes] + [1] * 32][None],
        "arguments": torch.zeros(1, 40, 6),
        "mask": torch.arange(40)[None] < 8,
    }
    state["arguments"][0, :, 4] = torch.arange(40) / 12  # ends at x = 12, 13, 14 …
    state["mask"][0, 6] = False
    curve = "C 13 12 14 12 14 12"
    assert DOMAIN.decode(state) == [icon("M 13 12", curve, "Z", "M 17 12", "M 19 12")]


def test_numbers_mean_ends_and_handles() -> None:
    state = DOMAIN.encode([icon("M 3 6", "C 3 9 18 21 21 21")])
    assert state["arguments"][0, 0].tolist() == [0, 0, 0, 0, -0.75, -0.5]
    assert state["arguments"][0, 1].tolist() == [0, 0.5, -0.5, 0, 0.75, 0.75]


def test_an_icon_with_too_many_segments_is_not_encoded_but_said_to_break_a_rule() -> None:
    long = icon("M 2 2", *[f"L {2 + i % 20} 9" for i in range(40)])
    with pytest.raises(DesignError, match=r"design 1 has 41 segments; at most 40.*length=41"):
        DOMAIN.encode([icon("M 2 2", "L 3 3"), long])
    assert [(v.rule, v.start, v.end) for v in DOMAIN.violations(long)] == [("too long", 40, 41)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["M 1 2", "L 3"], "segment 1: 'L' with 1 coordinates"),
        (["M 1 2", "A 3 4"], "segment 1: 'A' with 2"),
        (["M 1 2.005"], "segment 0: coordinate 2.005"),
        (["M nan 2"], "coordinate nan"),
        (["M 1 36.01"], "coordinate 36.01"),
        (["M 1 2", "Z", "L 3 4"], "segment 1: Z is out of place"),
    ],
)
def test_an_icon_is_always_legal_svg(words: list[str], message: str) -> None:
    with pytest.raises(DesignError, match=message):
        icon(*words)


def test_a_path_begins_with_a_move() -> None:
    with pytest.raises(DesignError, match="segment 0: L is out of place"):
        Icon(((Segment("L", (1.0, 2.0)),),))
    with pytest.raises(DesignError, match="without segments"):
        Icon(((),))


def test_corpus_is_the_short_icons_of_a_split() -> None:
    arrays = corpora.load("icons_stroke24.npz")
    sizes = np.diff(arrays["ptr"]) - 1
    for split, designs in CORPUS.items():
        assert len(designs) == ((arrays["split"] == split) & (sizes <= 40)).sum()
    assert len(svg.build(16).corpus("val")) < len(CORPUS["val"])
    with pytest.raises(DesignError, match="'test'; there are train and val"):
        DOMAIN.corpus("test")


def test_real_icons_hardly_break_rules() -> None:
    broken = [DOMAIN.violations(design) for design in CORPUS["val"]]
    assert sum(map(bool, broken)) < 0.01 * len(broken)
    assert {v.rule for violations in broken for v in violations} <= {"idle"}


@pytest.mark.parametrize(
    ("words", "broken"),
    [
        ([], [("empty", 0, 0)]),
        (["M 3 3", "M 5 5"], [("idle", 0, 1), ("empty", 0, 2), ("idle", 1, 2)]),
        (["M 3 3", "L 3 3"], []),  # a dot
        (["M 3 3", "L 3 3", "L 9 9"], [("idle", 1, 2)]),
        (["M 3 3", "L 9 9", "C 9 9 9 9 9 9"], [("idle", 2, 3)]),
        (["M 3 3", "C 9 9 9 3 3 3", "L 5 5"], []),  # a loop has length
        (["M 3 3", "L 23 3", "M 1 1", "L 23.2 3"], [("outside", 3, 4)]),
        (["M 0.8 12", "L 9 9"], [("outside", 1, 2)]),
        (["M 9 12", "C -9 12 -9 9 9 9"], [("outside", 1, 2)]),
        (["M 9 12", "C 0.5 12 0.5 9 9 9"], []),  # its control points are outside, its ink is not
        (["M 30 30", "L 5 5", "Z"], [("outside", 1, 2), ("outside", 2, 3)]),
    ],
)
def test_rules_name_the_segments_that_break_them(words: list[str], broken: list[tuple[str, int, int]]) -> None:
    found = DOMAIN.violations(icon(*words))
    assert [(v.rule, v.start, v.end) for v in found] == broken
    assert all("\n" not in v.message and ";" in v.message for v in found)


def _packed() -> dict[str, np.ndarray]:
    """Two icons: M L Z and M C."""
    points = np.zeros((7, 6), np.int16)
    points[:, 4:] = [[-8000, 0], [8000, 0], [0, 0], [0, 0], [0, -16000], [16000, 0], [0, 0]]
    return {"ptr": np.array([0, 4, 7]), "cmd": np.array([0, 1, 3, 4, 0, 2, 4], np.uint8), "pts": points}


def test_reference_reads_a_file_in_the_format_of_the_corpus(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", **_packed())
    assert DOMAIN.reference(tmp_path / "other.npz") == [
        icon("M 6 12", "L 18 12", "Z"),
        icon("M 12 0", "C 12 12 12 12 24 12"),
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ptr": np.array([0, 4, 8])}, "must rise from 0"),
        ({"ptr": np.array([1, 4, 7])}, "must rise from 0"),
        ({"ptr": np.array([0, 7, 4, 7])}, "must rise from 0"),
        ({"ptr": np.array([0, 1, 7])}, "must rise from 0"),
        ({"ptr": np.array([], np.int32)}, "must rise from 0"),
        ({"ptr": np.array([0, 2**63, 7], np.uint64)}, "must rise from 0"),
        ({"pts": np.zeros((7, 5), np.int16)}, "must have 6 columns"),
        ({"pts": np.full((7, 6), np.nan)}, "axes, type"),
        ({"pts": np.full((7, 6), -32001)}, "pts has 32001; the largest is 32000"),
        ({"cmd": np.array([0, 1, 3, 4, 1, 2, 4], np.uint8)}, "command 1 of segment 4"),
        ({"cmd": np.array([0, 3, 1, 4, 0, 2, 4], np.uint8)}, "command 1 of segment 2"),
        ({"cmd": np.array([0, 9, 3, 4, 0, 2, 4], np.uint8)}, "command 9 of segment 1"),
        ({"cmd": np.array([0, 4, 3, 4, 0, 2, 4], np.uint8)}, "command 4 of segment 1"),
        ({"cmd": np.array([0, 1, 3, 4, 0, 2, 2], np.uint8)}, "command 2 of segment 6"),
        ({"cmd": np.array([[None]])}, "plain arrays"),
    ],
)
def test_reference_refuses_other_shapes(tmp_path: Path, change: dict[str, np.ndarray], words: str) -> None:
    np.savez(tmp_path / "bad.npz", **_packed() | change)
    with pytest.raises(DesignError, match=words) as caught:
        DOMAIN.reference(tmp_path / "bad.npz")
    assert "\n" not in str(caught.value)


def test_baselines_follow_their_models() -> None:
    train = CORPUS["val"]
    made = DOMAIN.baselines(train, 300, seed=1)
    assert list(made) == ["uniform", "independent"]
    assert all(len(designs) == 300 for designs in made.values())
    known = {(s.command, s.coordinates[-2:]) for design in train for s in design.segments}
    assert {(s.command, s.coordinates[-2:]) for d in made["independent"] for s in d.segments} <= known

    def follows(designs: list[Icon]) -> dict[str, float]:
        pairs = Counter(
            a.command + b.command for d in designs for a, b in zip(d.segments, d.segments[1:], strict=False)
        )
        return {pair: count / pairs.total() for pair, count in pairs.items()}

    real, drawn = follows(list(train)), follows(made["independent"])
    assert max(abs(real[pair] - drawn.get(pair, 0)) for pair in real) < 0.02


def test_baselines_depend_on_the_seed_alone() -> None:
    one, same, other = (DOMAIN.baselines(CORPUS["val"][:50], 3, seed) for seed in (5, 5, 6))
    assert one == same != other


def test_pictures_are_for_those_who_ask() -> None:
    designs = [*CORPUS["val"][:3], *DOMAIN.decode(junk(0, n=3)), Icon(())]
    assert isinstance(DOMAIN, Overview)
    for picture in [*DOMAIN.overview(designs).values(), *DOMAIN.overview([]).values(), *map(DOMAIN.draw, designs)]:
        assert picture.startswith(b"<svg")
        assert b"id=" not in picture  # many of them share a page


@pytest.mark.parametrize(("end", "rings"), [("3 3", 1), ("4 3", 0), ("3 9", 0)])
def test_what_ink_hides_has_a_ring(end: str, rings: int) -> None:
    picture = DOMAIN.draw(icon("M 3 3", f"L {end}", "L 9 9"))
    assert picture.count(b"<circle") == rings


def test_broken_segments_are_marked() -> None:
    good, bad = (DOMAIN.draw(icon("M 3 3", f"L {x} 9")).decode() for x in (9, 30))
    marks = files.path_data(icon("M 3 3", "C 3 3 30 9 30 9").paths[0]).replace("M3 3C", "")
    assert marks in bad
    assert '<path d="" ' in good
