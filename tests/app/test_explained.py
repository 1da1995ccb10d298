"""What a generator explains: which letters the picture shows, and where it is in the report."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import torch
from hypothesis import given, strategies

from app import cli, explained, explanation
from data.store import Run
from domains import dna, protein
from generators import ideas


def test_bars_are_in_proportion_and_tell_losses_from_gains() -> None:
    picture = explained.picture("ACG", [2.0, -1.0, 0.0], [True, False, False]).decode()
    ElementTree.fromstring(picture)
    bars = re.findall(r'height="([\d.]+)" fill="(#\w+)"/>', picture)
    assert bars.pop(0) == ("14", explained.BAND)
    assert bars == [("26.0", explained.LOSS), ("13.0", explained.GAIN), ("0.0", explained.GAIN)]
    ElementTree.fromstring(explained.picture("", [], []))
    ElementTree.fromstring(explained.picture("ACGT" * 40, [0.0] * 160, [False] * 160))


def test_nothing_is_shown_where_nothing_was_measured() -> None:
    domain = dna.build()
    assert explained.pictures(domain, ideas.build(domain.space), dict(enumerate(domain.corpus("val")[:3]))) == {}


class Known:
    """Explains each site by its number."""

    has_measured = True

    def explain(self, state: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.arange(state["mask"].shape[1]).expand(len(state["mask"]), -1).float(), ~state["mask"]


def test_designs_of_other_lengths_have_a_bar_a_letter() -> None:
    domain = protein.build("sequence")
    designs = sorted(domain.corpus("val"), key=len)[:2] + domain.corpus("val")[:4]
    numbered = dict(zip((7, 0, 12, 3, 4, 5), designs, strict=True))
    found = explained.pictures(domain, Known(), numbered)  # type: ignore[arg-type]
    assert list(found) == ["Design 000007", "Design 000000", "Design 000012"]
    for design, picture in zip(designs, found.values(), strict=False):
        assert picture.count(b"<rect") == len(design) + 1


names = strategies.text()
drawn = strategies.text("ACGT<>/ \n").map(lambda inner: f"<svg>{inner}</svg>".encode())


@given(pictures=strategies.dictionaries(names, drawn), around=strategies.text("ACGT<>&"))
def test_pictures_come_out_of_a_page_as_they_went_in(pictures: dict[str, bytes], around: str) -> None:
    assert explanation.pictures(f"{around}{explanation.section(pictures)}{around}") == pictures


def test_where_nothing_is_explained_there_is_no_section() -> None:
    assert explanation.section({}) == ""
    assert explanation.pictures("<figure><svg></svg></figure>") == {}


def test_the_report_of_an_evolution_explains_its_best_by_their_numbers(tmp_path: Path) -> None:
    evolution = ["domain=dna", "generator=ideas", "generator.budget=40", "generator.start=20", "steps=1", "n=2"]
    assert cli.run(["generate", *evolution, "rewards.gc_content.target=0.9", f"out={tmp_path / 'run'}"]) == 0
    page = (tmp_path / "run" / "report.html").read_text()
    best = sorted(Run(tmp_path / "run").rows(), key=lambda row: -float(row["total"]))
    assert list(explanation.pictures(page)) == [f"Design {int(row['design']):06d}" for row in best]
    assert explanation.MEANING in page


def test_of_a_damaged_report_the_whole_pictures_are_shown() -> None:
    whole = explanation.section({"a": b"<svg/>"})
    assert explanation.pictures(whole.replace("</figure>", "") * 50_000 + whole) == {"a": b"<svg/>"}
    assert explanation.pictures(whole[:-10]) == {}
