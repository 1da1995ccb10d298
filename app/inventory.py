"""What there is: plug-ins, cells, checkpoints."""

from __future__ import annotations

import inspect
from typing import Any

from app import __version__, cells, plugins
from app.composition import composed
from app.spec import Choice
from data import checkpoints, conditions
from data.errors import InputError
from data.space import Space
from domains.base import Conditional, Domain, Lockable, Repairing, Sequenced
from generators.base import Guidance


def contents() -> dict[str, Any]:
    """All plug-ins of each kind, and the matrix of generators x domains with what goes together in each cell."""
    domains, generators = plugins.names("domain"), plugins.names("generator")
    return {
        "version": __version__,
        "plugins": {kind: [_plugin(kind, name) for name in plugins.names(kind)] for kind in plugins.ROOMS},
        "cells": [_cell(d, g) for d in domains for g in generators],
    }


def models(verify: bool) -> dict[str, Any]:
    """The shipped checkpoints with size and space; with `verify`, raises `CheckpointError` for a damaged one."""
    found = []
    for name in checkpoints.names():
        folder = checkpoints.FOLDER / name
        if verify:
            checkpoints.verify(folder)
        size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        space = str(Space.from_dict(checkpoints.config(folder)["space"]))
        found.append({"name": name, "megabytes": round(size / 1e6, 2), "space": space, "verified": verify})
    return {"models": found}


def as_text(found: dict[str, Any]) -> str:
    """Any of these for people to read."""
    lines: list[str] = []
    for entry in found.get("checks", []):
        lines.append(f"{'ok  ' if entry['ok'] else 'BAD '} {entry['name']}: {entry['detail']}")
    for entry in found.get("models", []):
        lines.append(f"{entry['name']}  {entry['megabytes']} MB  {entry['space']}{'  ok' * entry['verified']}")
    for kind, entries in found.get("plugins", {}).items():
        lines += [f"{kind} {entry['name']}: {entry.get('error') or entry['about']}" for entry in entries]
    lines += [f"{cell['generator']} on {cell['domain']}: {cell['state']}" for cell in found.get("cells", [])]
    return "\n".join(lines)


def _plugin(kind: str, name: str) -> dict[str, Any]:
    try:
        module, defaults = plugins.module(kind, name), plugins.parameters(kind, name)
    except InputError as error:
        return {"name": name, "error": str(error)}
    about = (module.__doc__ or "").strip().splitlines()
    signature = inspect.signature(module.build).parameters
    return {
        "name": name,
        "about": about[0] if about else "",
        "parameters": {key: value if _plain(value) else str(value) for key, value in defaults.items()},
        "types": {key: inspect.formatannotation(signature[key].annotation).strip("'") for key in defaults},
        "choices": plugins.choices(kind, name),
        "known": plugins.known(kind, name),
    }


def _cell(domain: str, generator: str) -> dict[str, Any]:
    """The state of a cell; in a ready one, the rewards and guidances that it takes, and the preset of a run."""
    found: dict[str, Any] = {"domain": domain, "generator": generator, "state": cells.PLANNED}
    try:
        found["state"] = cells.state(domain, generator)
        built = cells.domain(Choice(domain, {}), generator)
        choice = _checkpoints(f"{domain}-{generator}", built)
    except InputError as error:
        return found | {"reason": str(error)}
    if found["state"] != cells.READY:
        return found | {"reason": f"`foreshape train domain={domain} generator={generator}` makes a checkpoint"}
    return found | {
        "rewards": _rewards(domain, built),
        "guidance": _guidances(plugins.returned("generator", generator)),
        "trained": cells.is_trained(generator),
        "sequenced": isinstance(built, Sequenced),
        "repairing": isinstance(built, Repairing),
        "lock": _lock(built, plugins.returned("generator", generator)),
        "checkpoints": choice,
        "preset": composed("generate", [f"domain={domain}", f"generator={generator}"]),
    }


def _rewards(domain_name: str, domain: Domain[Any]) -> list[dict[str, Any]]:
    """The rewards that score designs of this domain in this form, also those that cannot do without parameters."""
    found = []
    for name in plugins.names("reward"):
        try:
            reward = plugins.returned("reward", name)
            fits = domain_name in getattr(reward, "domains", (domain_name,)) and plugins.takes("reward", name, domain)
        except InputError:
            continue
        if fits:
            found.append({"name": name, "differentiable": hasattr(reward, "relaxed")})
    return found


def _lock(domain: Domain[Any], generator: Any) -> dict[str, str]:
    """Annotation of each parameter of a lock; empty where the domain or the generator can hold nothing."""
    if not isinstance(domain, Lockable) or not hasattr(generator, "check_lock"):
        return {}
    parameters = inspect.signature(domain.locked).parameters
    return {name: inspect.formatannotation(each.annotation).strip("'") for name, each in parameters.items()}


def _checkpoints(usual: str, domain: Domain[Any]) -> dict[str, dict[str, Any]]:
    """The shipped checkpoints of a cell, `auto` first, and what each lets be asked of designs, as plain data.

    What all designs of the domain have cannot be asked.
    """
    found: dict[str, dict[str, Any]] = {"auto": {}}
    given = domain.given if isinstance(domain, Conditional) else {}
    for name in checkpoints.names():
        if name == usual or name.startswith(f"{usual}-"):
            learned = Space.from_dict(checkpoints.config(checkpoints.FOLDER / name)["space"]).conditions
            asked = {key: one for key, one in learned.items() if key not in given}
            found["auto" if name == usual else name] = conditions.to_dict(asked)
    return found


def _guidances(generator: Any) -> list[dict[str, Any]]:
    """The guidances that go with a generator of this class."""
    found = []
    for name in plugins.names("guidance"):
        try:
            guidance = plugins.build("guidance", name, {})
        except InputError:
            continue
        steers = isinstance(guidance, Guidance)
        if guidance is None or not (generator.optimises or (steers and not generator.steerable)):
            needs_gradient = steers and guidance.needs_gradient
            found.append({"name": name, "needs_score": guidance is not None, "needs_gradient": needs_gradient})
    return found


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | list | tuple)
