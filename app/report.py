"""A run as one HTML page that needs nothing else: what was asked, how it scored, every design with its picture."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import yaml

from app.spec import RunSpec
from data.store import Run
from domains.base import Domain, Overview

MOST_PICTURES = 200
"""Designs shown, at most; the others are in `designs` and in `scores.csv` all the same."""

FEW = 3
"""Broken rules of a design that are shown at once."""

STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent) }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .75rem .25rem 0; text-align: right; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 0 2rem }
article { border-top: 1px solid var(--line); padding: .75rem 0 }
article p, article h3 { margin: 0 } article p, details { font-size: .85rem } small { font-weight: normal }
.bad { color: #c33 } pre { overflow-x: auto; font-size: .85rem }
svg { max-width: 100%; height: auto; max-height: 24rem } figure { margin: 0 }
"""


def page(run: Run, domain: Domain[Any], spec: RunSpec) -> str:
    """The page of one run, best designs first."""
    return document(title(run, spec), body(run, domain, spec, MOST_PICTURES, ""))


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


def body(run: Run, domain: Domain[Any], spec: RunSpec, most: int, place: str) -> list[str]:
    """What a page says about a run whose files are at `place` from it."""
    rows = sorted(run.rows(), key=lambda row: -float(row["total"]))
    designs = [domain.read(run.design_path(int(row["design"]), domain.suffixes[0])) for row in rows]
    shown = list(zip(rows, designs, strict=True))[:most]
    return [
        f"<h1>{html.escape(title(run, spec))}</h1>",
        f"<p>{spec.steps} steps, seed {spec.seed}, guidance {html.escape(spec.guidance.name)}</p>",
        "<h2>Scores</h2>",
        summary(rows),
        *overviews(domain, designs),
        f"<h2>Designs, best first</h2>{'' if len(rows) <= most else f'<p>The first {most}.</p>'}",
        '<div class="cards">',
        *(card(row, domain, design, place) for row, design in shown),
        "</div><details><summary>What was asked for</summary>",
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


def overviews(domain: Domain[Any], designs: Sequence[Any]) -> list[str]:
    """Pictures of all designs together, where the domain has any."""
    if not isinstance(domain, Overview) or not designs:
        return []
    pictures = domain.overview(designs).items()
    return [f"<h2>{html.escape(name)}</h2><figure>{svg.decode()}</figure>" for name, svg in pictures]


def card(row: dict[str, str], domain: Domain[Any], design: Any, place: str) -> str:
    """One design: its number and files, picture, scores and what is wrong with it."""
    number = f"{int(row['design']):06d}"
    links = " ".join(f'<a href="{html.escape(place)}designs/{number}{end}">{end[1:]}</a>' for end in domain.suffixes)
    shown = {name: value for name, value in row.items() if name != "design" and not name.endswith(".valid")}
    scores = " · ".join(f"{name} <b>{float(value):.4g}</b>" for name, value in shown.items())
    broken = [f'<p class="bad">{html.escape(violation.message)}</p>' for violation in domain.violations(design)]
    if len(broken) > FEW:
        broken = [
            *broken[:FEW],
            f"<details><summary>and {len(broken) - FEW} more</summary>",
            *broken[FEW:],
            "</details>",
        ]
    heading = f"<h3>{number} <small>{links}</small></h3><p>{scores}</p>"
    return f"<article>{heading}{domain.draw(design).decode()}{''.join(broken)}</article>"
