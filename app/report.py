"""A run as one HTML page that needs nothing else: what was asked, how it scored, every design with its picture."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from app import explanation
from app.spec import RunSpec
from app.ui.text import width
from data.store import Run
from domains.base import Domain, Overview

Explain = Callable[[Mapping[int, Any]], Mapping[str, bytes]]
"""Of designs by number, the best first: SVG by title."""
MOST_PICTURES = 200
"""Designs shown, at most; the others are in `designs` and in `scores.csv` all the same."""

FEW = 3
"""Broken rules of a design that are shown at once."""

STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent) }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 74rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .75rem .25rem 0; text-align: right; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left }
.cards { display: grid; gap: 0 2rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, max(16rem, var(--picture))), 1fr)) }
article { border-top: 1px solid var(--line); padding: .75rem 0 }
article p, article h3 { margin: 0 } article p, details { font-size: .85rem } small { font-weight: normal }
.bad { color: light-dark(#b3261e, #ff8a80) } pre { overflow-x: auto; font-size: .85rem }
svg { max-width: 100%; height: auto; max-height: 24rem; background: white; border-radius: .3rem }
article > svg { display: block; margin: .3rem 0 } figure { margin: 0 }
.explained { margin: 1rem 0 } .explained svg { max-height: none } figcaption { font-weight: bold }
"""


def page(run: Run, domain: Domain[Any], spec: RunSpec, explain: Explain = lambda designs: {}) -> str:
    """The page of one run, best designs first; `explain` draws what carries their scores."""
    return document(title(run, spec), body(run, domain, spec, MOST_PICTURES, "", explain))


def album(name: str, runs: Sequence[tuple[Run, Domain[Any], RunSpec]], most: int) -> str:
    """One page, beside their folders, of several runs; at most `most` designs of each."""
    parts = [f"<h1>{html.escape(name)}</h1>"]
    for run, domain, spec in runs:
        parts += body(run, domain, spec, most, f"{run.path.name}/")
    return document(name, parts)


def document(name: str, parts: Sequence[str]) -> str:
    """Parts of a page as HTML."""
    head = f'<meta charset="utf-8"><title>{html.escape(name)}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def title(run: Run, spec: RunSpec) -> str:
    """What a run holds, in a few words."""
    return f"{len(run.rows())} {spec.domain.name} designs by {spec.generator.name}"


def body(
    run: Run, domain: Domain[Any], spec: RunSpec, most: int, place: str, explain: Explain = lambda designs: {}
) -> list[str]:
    """What a page says about a run whose files are at `place` from it."""
    rows = sorted(run.rows(), key=lambda row: -float(row["total"]))
    designs = [domain.read(run.design_path(int(row["design"]), domain.suffixes[0])) for row in rows]
    shown = list(zip(rows, designs, strict=True))[:most]
    details = f"{spec.steps} steps · guidance {spec.guidance.name} · seed {spec.seed} · {run.path.name}"
    return [
        f"<h1>{html.escape(title(run, spec))}</h1>",
        f"<p>{html.escape(details)}</p>",
        "<h2>Scores</h2>",
        summary(rows),
        *figures(domain.overview(designs) if isinstance(domain, Overview) and designs else {}),
        explanation.section(explain({int(row["design"]): design for row, design in zip(rows, designs, strict=True)})),
        f"<h2>Designs, best first</h2>{'' if len(rows) <= most else f'<p>The first {most}.</p>'}",
        cards(shown, domain, run.formats(), place),
        "<details><summary>What was asked for</summary>",
        f"<pre>{html.escape(yaml.safe_dump(spec.identity(), sort_keys=False))}</pre></details>",
    ]


def summary(rows: Sequence[dict[str, str]]) -> str:
    """A table of the minimum, mean and maximum of every score."""
    lines = []
    for name, (low, mean, high) in statistics(rows).items():
        lines.append(f"<tr><td>{html.escape(name)}<td>{low:.4g}<td>{mean:.4g}<td>{high:.4g}</tr>")
    return f"<table><tr><th>score<th>lowest<th>mean<th>highest</tr>{''.join(lines)}</table>"


def statistics(rows: Sequence[dict[str, str]]) -> dict[str, tuple[float, float, float]]:
    """Minimum, mean and maximum of every score of a run's rows, by column."""
    found = {}
    for name in rows[0] if rows else ():
        if name != "design" and not name.endswith(".valid"):
            values = [float(row[name]) for row in rows]
            found[name] = (min(values), sum(values) / len(values), max(values))
    return found


def text(rows: Sequence[dict[str, str]]) -> str:
    """The statistics for a terminal."""
    lines = [f"{'score':<28}{'lowest':>10}{'mean':>10}{'highest':>10}"]
    lines += [f"{name:<28}" + "".join(f"{v:>10.4g}" for v in values) for name, values in statistics(rows).items()]
    return "\n".join(lines)


def figures(pictures: Mapping[str, bytes]) -> list[str]:
    """Pictures as SVG under their titles."""
    return [f"<h2>{html.escape(name)}</h2><figure>{svg.decode()}</figure>" for name, svg in pictures.items()]


def cards(shown: Sequence[tuple[dict[str, str], Any]], domain: Domain[Any], formats: Sequence[str], place: str) -> str:
    """The cards of designs, in columns that are wide enough for their pictures."""
    pictures = [domain.draw(design) for _, design in shown]
    found = [
        card(row, domain, design, picture, [f"{place}designs/{int(row['design']):06d}{end}" for end in formats])
        for (row, design), picture in zip(shown, pictures, strict=True)
    ]
    return f'<div class="cards" style="--picture:{max(map(width, pictures), default=0):g}px">{"".join(found)}</div>'


def measured(row: dict[str, str]) -> str:
    """The scores of a design, each with its parts in brackets."""
    words = []
    for name in row:
        if name != "design" and "." not in name:
            parts = [key for key in row if key.startswith(f"{name}.") and not key.endswith(".valid")]
            each = ", ".join(f"{key.partition('.')[2].replace('_', ' ')} {float(row[key]):.4g}" for key in parts)
            brackets = f" ({html.escape(each)})" if parts else ""
            words.append(f"{html.escape(name)} <b>{float(row[name]):.4g}</b>{brackets}")
    return " · ".join(words)


def card(row: dict[str, str], domain: Domain[Any], design: Any, picture: bytes, files: Sequence[str]) -> str:
    """One design: its number and files, picture, scores and what is wrong with it."""
    number = f"{int(row['design']):06d}"
    links = " ".join(f'<a href="{html.escape(file)}">{Path(file).suffix[1:]}</a>' for file in files)
    broken = [f'<p class="bad">{html.escape(violation.message)}</p>' for violation in domain.violations(design)]
    if len(broken) > FEW:
        broken = [
            *broken[:FEW],
            f"<details><summary>and {len(broken) - FEW} more</summary>",
            *broken[FEW:],
            "</details>",
        ]
    heading = f"<h3>{number} <small>{links}</small></h3><p>{measured(row)}</p>"
    return f"<article>{heading}{picture.decode()}{''.join(broken)}</article>"
