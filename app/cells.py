"""Cells of the matrix generators x domains: the form of a domain that a generator can make, and its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from app import plugins
from app.spec import Choice
from data import checkpoints
from data.errors import InputError
from data.noise import StepNoise, stable_seed
from data.space import Space
from domains.base import Conditional, Domain
from generators.base import Conditioned, Generator, Resizable, Starting

READY, UNTRAINED, PLANNED = "ready", "no checkpoint", "planned"


def domain(choice: Choice, generator: str) -> Domain[Any]:
    """The domain in the first of its forms that the generator can make; raises `InputError` where there is none."""
    forms = getattr(plugins.module("domain", choice.name), "FORMS", ())
    asked = dict(choice.parameters)
    kinds = plugins.module("generator", generator).FACTORS
    spaces = []
    for form in forms if forms and "form" not in asked else (None,):
        built: Domain[Any] = plugins.build("domain", choice.name, asked | ({"form": form} if form else {}))
        if all(isinstance(factor, kinds) for factor in built.space.factors.values()):
            return built
        spaces.append(str(built.space))
    handled = ", ".join(kind.__name__ for kind in kinds)
    raise InputError(
        f"{generator} makes {handled}, and {choice.name} is {' or '.join(spaces)}; choose another generator or form"
    )


def is_trained(generator: str) -> bool:
    """Whether a generator comes with a checkpoint; the others learn from the corpus before each run."""
    return callable(getattr(plugins.module("generator", generator), "load", None))


def checkpoint(domain_name: str, generator: Choice, wanted: str, built: Domain[Any]) -> Path | None:
    """The folder of a checkpoint that fits, `auto` being the shipped one; None for a generator that has none."""
    if not is_trained(generator.name):
        if wanted != "auto":
            raise InputError(f"checkpoint is {wanted!r:.100}, and {generator.name} needs none; leave it out")
        return None
    if generator.parameters:
        key = next(iter(generator.parameters))
        raise InputError(f"generator.{key} is fixed by a checkpoint; leave it out, or `foreshape train` one with it")
    return checkpoints.find(f"{domain_name}-{generator.name}" if wanted == "auto" else wanted, built.space)


def ready(
    generator: Choice,
    built: Domain[Any],
    folder: Path | None,
    seed: int,
    device: torch.device,
    condition: Mapping[str, Any] | None = None,
    cfg: float = 1.0,
) -> Generator:
    """A generator that draws designs with a `condition`, which a weight of `cfg` keeps to more closely.

    Loaded from its checkpoint, or shown the corpus, or the design that it starts from.
    """
    if folder is None:
        found = shown(generator, built, seed).to(device)
    else:
        found = loaded(generator.name, folder, built.space, device)
    ask(found, built, condition or {}, cfg)
    return found


def shown(generator: Choice, built: Domain[Any], seed: int) -> Generator:
    """A generator that learns nothing beforehand, with what it starts from."""
    made: Generator = plugins.build("generator", generator.name, generator.parameters, built.space)
    file = made.file if isinstance(made, Starting) else ""
    designs = [built.read(Path(file))] if file else built.corpus("train")
    corpus, rng = built.encode(designs), StepNoise(stable_seed("corpus", seed))
    rows = (rng.fork(k).integers(len(corpus["mask"]), BATCH) for k in range(made.steps))
    made.fit(({name: value[row] for name, value in corpus.items()} for row in rows), rng, lambda step, losses: None)
    return made


def loaded(generator: str, folder: Path, space: Space, device: torch.device) -> Generator:
    """A trained generator for the lengths of a space; raises `InputError` where it has one length of its own."""
    found: Generator = plugins.load_generator(generator, folder, device)
    if found.space != space:
        if not isinstance(found, Resizable):
            raise InputError(f"{folder.name} is for {found.space}, not {space}; give that length")
        found.resize(space)
    return found


def ask(generator: Generator, built: Domain[Any], asked: Mapping[str, Any], weight: float) -> None:
    """Have a generator draw designs with the conditions of a domain and those asked for; raises `InputError`.

    `weight` is that of classifier-free guidance.
    """
    given = built.given if isinstance(built, Conditional) else {}
    for name, value in asked.items():
        if name in given and value != given[name]:
            has = f"all designs of this domain have {given[name]!r}; give domain.{name}"
            raise InputError(f"condition.{name} is {value!r:.60}, and {has}")
    if isinstance(generator, Conditioned):
        generator.ask(given, {name: value for name, value in asked.items() if name not in given}, weight)
    elif asked:
        name = next(iter(asked))
        raise InputError(f"condition.{name}: this generator learns no conditions; leave it out, or use hybrid")


BATCH = 64
"""Designs of the corpus that a generator without checkpoint is shown at a time."""


def state(domain_name: str, generator: str) -> str:
    """`ready`, `no checkpoint` (it could be trained) or `planned` (the generator cannot make the domain's factors)."""
    try:
        domain(Choice(domain_name, {}), generator)
    except InputError:
        return PLANNED
    return READY if not is_trained(generator) or f"{domain_name}-{generator}" in checkpoints.names() else UNTRAINED
