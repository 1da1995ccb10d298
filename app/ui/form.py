"""The form of the design page: what to make, with what, and what for. Its value is the plain data of a run's spec."""

from __future__ import annotations

import secrets
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from app.spec import DEVICES, LIMITS
from app.ui.catalogue import Catalogue

EARLY = 8
"""Designs at a time: few, so that the first ones are soon there."""
SLIDER = 3.0
"""Weights go from minus to plus this, or as far as one goes that was loaded."""
SEEDS = 10**6
"""Seeds that the dice throw are below this, so that people can say them."""
STEPS = "Refinements of each design by its network, or rounds of evolution; more take longer"
UNSET = "automatic"
"""What an input says that has no value, so that the plug-in finds one."""
ANY = "any"
"""Chosen where it does not matter what a design has."""
KEPT = "form"
"""Where the values of the form are kept while another page is shown."""


def show(catalogue: Catalogue) -> dict[str, Any] | None:
    """The form; returns the spec that it asks for, None where nothing is ready."""
    domain = _choice("Domain", "domain", catalogue.domains())
    st.caption(catalogue.about("domain", domain))
    cells, others = catalogue.generators(domain), catalogue.generators(domain, ready=False)
    generator = _backend(catalogue, domain, list(cells))
    if generator is None:
        st.info("No backend is ready for this domain yet.")
        _not_ready(others, domain)
        return None
    cell = cells[generator]
    rewards = _rewards(catalogue, cell)
    guidance = _guidance(catalogue, cell, rewards)
    numbers = _numbers(cell)
    with st.expander("More settings"):
        settings = {
            "domain": {"name": domain} | _parameters(catalogue, "domain", domain, cell["preset"]["domain"]),
            "generator": {"name": generator}
            | ({} if cell["trained"] else _parameters(catalogue, "generator", generator, {})),
            "batch": _whole("Designs at a time", "batch", EARLY),
            "device": _choice("Device", "device", DEVICES),
            "repair": cell["preset"]["repair"],
        }
        if cell["sequenced"]:
            settings["sequences"] = _whole("Sequences for each design", "sequences", cell["preset"]["sequences"])
        if cell["repairing"]:
            settings["repair"] = _switch("Repair what designs break", "repair", cell["preset"]["repair"])
        checkpoint = _checkpoint(cell)
        settings |= _lock(domain, cell["lock"]) | _condition(domain, cell["checkpoints"].get(checkpoint, {}))
    _not_ready(others, domain)
    return settings | numbers | {"rewards": rewards, "guidance": guidance, "checkpoint": checkpoint}


def load(spec: Mapping[str, Any], catalogue: Catalogue) -> None:
    """Fill the form with a run's spec; what the spec does not say gets its default."""
    plain = ("n", "batch", "device", "sequences", "repair", "cfg")
    kept: dict[str, Any] = {key: spec[key] for key in plain if key in spec}
    kept["seed"] = str(spec.get("seed", 0))
    names: dict[str, Any] = {}
    for kind in ("domain", "generator", "guidance"):
        entry = spec.get(kind)
        table = dict(entry) if isinstance(entry, dict) else {}
        names[kind] = kept[kind] = table.pop("name", None)
        kept |= {f"{kind}/{names[kind]}/{key}": value for key, value in table.items()}
    kept |= {f"lock/{names['domain']}/{key}": value for key, value in (spec.get("lock") or {}).items()}
    kept |= {f"condition/{names['domain']}/{key}": value for key, value in (spec.get("condition") or {}).items()}
    cell = f"{names['domain']}/{names['generator']}"
    kept |= {f"steps/{cell}": spec.get("steps"), f"guidance/{cell}": names["guidance"]}
    kept[f"checkpoint/{cell}"] = spec.get("checkpoint", "auto")
    asked = spec.get("rewards") if isinstance(spec.get("rewards"), dict) else {}
    for name in catalogue.plugins["reward"]:
        entry = asked.get(name) if isinstance(asked, dict) else None
        kept[f"rewards/{names['domain']}/{name}"] = isinstance(entry, dict)
        kept |= {f"reward/{name}/{key}": value for key, value in (entry or {}).items()}
    for key in [key for key in st.session_state if str(key).startswith(f"{KEPT}/")]:
        del st.session_state[key]
    st.session_state[KEPT] = kept


def is_filled() -> bool:
    """Whether this session has seen the form."""
    return KEPT in st.session_state


def _backend(catalogue: Catalogue, domain: str, names: Sequence[str]) -> str | None:
    if not names:
        return None
    captions = [catalogue.about("generator", name) for name in names]
    return str(_choice("Backend", "generator", names, st.radio, captions=captions))


def _not_ready(cells: Mapping[str, Mapping[str, Any]], domain: str) -> None:
    """The backends that cannot be chosen, with the reason."""
    if cells:
        reasons = [f"{cell['state']}: {textwrap.shorten(cell['reason'], 200)}" for cell in cells.values()]
        key = f"not ready/{domain}"
        st.radio(f"Not ready for {domain}", list(cells), index=None, captions=reasons, disabled=True, key=key)


def _rewards(catalogue: Catalogue, cell: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """A switch for each reward; one that is on has its weight and its parameters."""
    st.markdown("**Rewards**")
    domain, preset = cell["domain"], cell["preset"]["rewards"]
    names = [reward["name"] for reward in cell["rewards"]]
    usual = [name for name in preset if name in names] or names[:1]
    chosen = {}
    for name in names:
        key = f"rewards/{domain}/{name}"
        if _kept(st.toggle, name, key, name in usual, help=catalogue.about("reward", name)):
            weight = _weight(name, preset.get(name, {}).get("weight", 1.0))
            chosen[name] = {"weight": weight} | _parameters(catalogue, "reward", name, preset.get(name, {}))
    if not names:
        st.caption("There are none for this domain.")
    return chosen


def _weight(name: str, default: float) -> float:
    key = f"reward/{name}/weight"
    start = _remembered(key, default, (int, float))
    most = max(SLIDER, abs(float(start)))
    return float(_kept(st.slider, f"Weight of {name}", key, float(start), min_value=-most, max_value=most, step=0.1))


def _guidance(catalogue: Catalogue, cell: Mapping[str, Any], rewards: Mapping[str, Any]) -> dict[str, Any]:
    """The guidances that work with this backend and these rewards; by gradients, where that can be."""
    if [guidance["name"] for guidance in cell["guidance"]] == ["free"]:
        st.caption(f"{cell['generator']} climbs the rewards itself, so there is no guidance to choose.")
        return {"name": "free"}
    flat = [reward["name"] for reward in cell["rewards"] if not reward["differentiable"] and reward["name"] in rewards]
    fit = [
        guidance["name"]
        for guidance in cell["guidance"]
        if (rewards or not guidance["needs_score"]) and not (flat and guidance["needs_gradient"])
    ]
    steering = [guidance["name"] for guidance in cell["guidance"] if guidance["needs_gradient"]]
    usual = next((name for name in steering if name in fit), cell["preset"]["guidance"]["name"])
    name = str(_choice("Guidance", f"guidance/{cell['domain']}/{cell['generator']}", fit, default=usual))
    ranked = " The rewards only rank them." if rewards and name == "free" else ""
    st.caption(f"{catalogue.about('guidance', name)}{ranked}")
    if flat and steering:
        st.caption(f"{', '.join(steering)} needs gradients, and {', '.join(flat)} has none.")
    return {"name": name} | _parameters(catalogue, "guidance", name, {})


def _checkpoint(cell: Mapping[str, Any]) -> str:
    """One of the checkpoints of a backend, or the folder of one that a loaded spec names."""
    key = f"checkpoint/{cell['domain']}/{cell['generator']}"
    options = list(dict.fromkeys([*cell["checkpoints"], str(_memory().get(key, "auto"))]))
    return str(_choice("Checkpoint", key, options)) if len(options) > 1 else "auto"


def _lock(domain: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """Inputs for what some sites of every design are held at; nothing where all are left empty."""
    if parameters:
        st.caption("Held in every design, which is made around it; leave empty for nothing.")
    made = {
        name: INPUTS[annotation](f"Hold {name}", f"lock/{domain}/{name}", "" if annotation == "str" else [])
        for name, annotation in parameters.items()
        if annotation in INPUTS
    }
    lock = {name: value for name, value in made.items() if value}
    return {"lock": lock} if lock else {}


def _condition(domain: str, conditions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Inputs for what every design is to have, and how closely; nothing where all are left open."""
    if not conditions:
        return {}
    st.caption("What every design is to have; leave open what does not matter.")
    made = {name: _asked(name, f"condition/{domain}/{name}", one) for name, one in conditions.items()}
    asked = {name: value for name, value in made.items() if value not in (None, ANY, [])}
    weight = _number("How closely", "cfg", 1.0)
    return {"condition": asked, "cfg": weight} if asked else {}


def _asked(name: str, key: str, condition: Mapping[str, Any]) -> Any:
    label = f"With {name}"
    if condition["kind"] == "Label":
        return _choice(label, key, [ANY, *condition["names"]])
    if condition["kind"] == "Level":
        bounds = f"From {condition['least']:g} to {condition['most']:g}"
        return _number(label, key, None, help=bounds)
    return _words(label, key, [], help=f"Some of {', '.join(condition['names'])}")


def _numbers(cell: Mapping[str, Any]) -> dict[str, Any]:
    left, right = st.columns(2)
    with left:
        n = _whole("Designs", "n", cell["preset"]["n"])
    with right:
        place = f"steps/{cell['domain']}/{cell['generator']}"
        steps = _whole("Steps", "steps", cell["preset"]["steps"], place, help=STEPS)
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    with right:
        st.button("", icon=":material/casino:", help="Another seed", key="dice", on_click=_throw)
    with left:
        seed = str(_kept(st.text_input, "Seed", "seed", str(cell["preset"]["seed"]), max_chars=20)).strip()
    return {"n": n, "steps": steps, "seed": int(seed) if seed.isdecimal() else seed}


def _throw() -> None:
    st.session_state[f"{KEPT}/seed"] = str(secrets.randbelow(SEEDS))


def _parameters(catalogue: Catalogue, kind: str, name: str, preset: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs for the parameters of a plug-in, two in a row; returns those that are not at their default."""
    few = {key: partial(_one_of, values) for key, values in catalogue.choices(kind, name).items()}
    few |= {key: partial(_offered, values) for key, values in catalogue.known(kind, name).items()}
    inputs = {
        parameter: (few.get(parameter) or INPUTS[type_name], default)
        for parameter, (type_name, default) in catalogue.parameters(kind, name).items()
        if (parameter in few or type_name in INPUTS) and not _by_itself(parameter, f"{kind}/{name}/{parameter}")
    }
    given = {}
    columns = st.columns(2) if len(inputs) > 1 else [st.container()]
    for k, (parameter, (make, default)) in enumerate(inputs.items()):
        with columns[k % len(columns)]:
            label = parameter.replace("_", " ").capitalize()
            value = make(label, f"{kind}/{name}/{parameter}", preset.get(parameter, default))
        if value != default or parameter in preset:
            given[parameter] = value
    return given


def _by_itself(parameter: str, key: str) -> bool:
    """A domain's form is the one that the backend can make, unless a spec was loaded that names one."""
    return parameter == "form" and key not in _memory()


def _whole(label: str, key: str, default: int, place: str = "", **more: Any) -> int:
    least, most = LIMITS[key]
    start = _remembered(place or key, default, (int,))
    options = {"min_value": least, "max_value": most, "step": 1} | more
    return int(_kept(st.number_input, label, place or key, min(max(start, least), most), **options))


def _integer(label: str, key: str, default: Any) -> Any:
    return _kept(st.number_input, label, key, _remembered(key, default, (int, type(None))), step=1, placeholder=UNSET)


def _number(label: str, key: str, default: Any, **more: Any) -> Any:
    start = _remembered(key, default, (int, float, type(None)))
    start = start if start is None else float(start)
    return _kept(st.number_input, label, key, start, step=0.05, format="%g", placeholder=UNSET, **more)


def _text(label: str, key: str, default: Any) -> Any:
    return _kept(st.text_input, label, key, _remembered(key, default, (str, type(None))), placeholder=UNSET)


def _switch(label: str, key: str, default: Any) -> Any:
    return _kept(st.toggle, label, key, _remembered(key, default, (bool,)))


def _one_of(options: Sequence[str], label: str, key: str, default: str) -> Any:
    return _choice(label, key, options, default=default)


def _offered(options: Sequence[str], label: str, key: str, default: str) -> Any:
    """One of the options, or another that is typed."""
    now = st.session_state.get(f"{KEPT}/{key}") or _remembered(key, default, (str,))
    return _choice(label, key, list(dict.fromkeys([*options, now])), default=default, accept_new_options=True)


def _words(label: str, key: str, default: Any, **more: Any) -> list[str]:
    """A list of words, typed with commas between them."""
    start = _remembered(key, default, (list, tuple, int))
    start = ", ".join(map(str, [start] if isinstance(start, int) else start))
    typed = st.text_input(label, start, key=f"{KEPT}/{key}", **more)
    words = [word.strip() for word in typed.split(",") if word.strip()]
    st.session_state[KEPT][key] = words
    return words


def _places(label: str, key: str, default: Any) -> list[int | str]:
    """Whole numbers, typed with commas between them; what is none is left as it is, to be refused by name."""
    words = _words(label, key, default)
    return [int(word) if word.removeprefix("-").isdecimal() else word for word in words]


INPUTS: dict[str, Callable[[str, str, Any], Any]] = {
    "int": _integer,
    "float": _number,
    "str": _text,
    "bool": _switch,
    "Sequence[str]": _words,
    "tuple[str, ...]": _words,
    "Sequence[int]": _places,
}
"""Inputs by the annotation of a parameter; one of another type is left at its default."""


def _choice(
    label: str,
    key: str,
    options: Sequence[str],
    widget: Callable[..., Any] = st.selectbox,
    default: str | None = None,
    **more: Any,
) -> Any:
    """One of the options; a remembered one that is no longer among them gives way to the default."""
    first = default if default in options else options[0]
    kept = _memory().get(key)
    if st.session_state.get(f"{KEPT}/{key}") not in options:
        st.session_state[f"{KEPT}/{key}"] = kept if kept in options else first
    return _kept(widget, label, key, first, options=list(options), **more)


def _kept(widget: Callable[..., Any], label: str, key: str, default: Any, **options: Any) -> Any:
    """The value of a widget that remembers it while other pages are shown."""
    own = f"{KEPT}/{key}"
    if own not in st.session_state:
        st.session_state[own] = _memory().get(key, default)
    # Said to the browser again and again: the state is told once, and that is lost where this run of the page is cut
    # short by the next; the browser would then show, and send back, a value of its own.
    now = st.session_state[own]
    start = {"index": options["options"].index(now)} if "options" in options else {"value": now}
    value = widget(label, key=own, **start, **options)
    _memory()[key] = value
    return value


def _remembered(key: str, default: Any, types: tuple[type, ...]) -> Any:
    """What a widget is to start from: what is remembered, if it is of a type that the widget takes."""
    value = _memory().get(key, default)
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        value = _memory()[key] = default
    return value


def _memory() -> dict[str, Any]:
    kept: dict[str, Any] = st.session_state.setdefault(KEPT, {})
    return kept
