"""The UI without a browser: what it imports, what it ranks and shows, and what a click does, cell by cell."""

import base64
import html
import io
import json
import re
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies
from streamlit.testing.v1 import AppTest

from app import cli, explanation, inventory, jobs, plugins, worker
from app.spec import RunSpec, from_plain
from app.terminal import duration
from app.ui import catalogue, design_page, form, ranking, run_view, server, text
from app.ui.catalogue import Catalogue
from data import conditions
from data.conditions import Label, Level, Subset
from data.errors import InputError
from data.store import Run

MAIN = Path(server.__file__).with_name("main.py")
PATIENCE = 120


@pytest.fixture(scope="module")
def found() -> Catalogue:
    return catalogue.parse(json.dumps(inventory.contents()))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Catalogue) -> Iterator[Path]:
    """An empty home, a catalogue that is there at once, and no worker processes."""
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path))
    monkeypatch.setattr(catalogue, "read", lambda: found)
    monkeypatch.setattr(jobs, "start", lambda run: run.event("queued"))
    design_page.what_there_is.clear()
    yield tmp_path
    design_page.what_there_is.clear()


def made(home: Path, found: Catalogue, totals: list[tuple[float, float]], name: str = "one", **changes: Any) -> Run:
    """A finished run of DNA with these rewards, as a worker would leave it; odd designs break a rule."""
    preset = next(cell["preset"] for cell in found.cells if (cell["domain"], cell["generator"]) == ("dna", "rmf"))
    rewards = {"gc_content": {"weight": 1.0}, "motif": {"weight": 0.5}}
    spec = from_plain(RunSpec, preset | {"rewards": rewards, "n": len(totals)} | changes).identity()
    run = Run.open(home / "runs" / name, spec, {"checkpoint": None, "seconds": 0.0}, [".txt"])
    for k, (gc, motif) in enumerate(totals):
        row = {"design": k, "total": gc + 0.5 * motif, "gc_content": gc, "motif": motif, "violations": k % 2}
        words = ["<b>too</b> *long*"] * (k % 2)
        picture = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 120"/>'
        run.add(row, {".txt": lambda path, k=k: path.write_text(f"design {k}") and None}, picture, words)
    run.event("finished", seconds=1.0)
    run.close()
    return run


def opened(**query: str) -> AppTest:
    app = AppTest.from_file(str(MAIN), default_timeout=PATIENCE)
    for key, value in query.items():
        app.query_params[key] = value
    return checked(app.run())


def checked(app: AppTest) -> AppTest:
    assert not app.exception, app.exception
    return app


def click(app: AppTest, label: str) -> AppTest:
    return checked(next(button for button in app.button if button.label == label).click().run())


def numbers(app: AppTest) -> list[int]:
    """The designs on the page, in their order."""
    found = (re.match(r"\*\*(\d{6})\*\* · total", element.value) for element in app.markdown)
    return [int(match[1]) for match in found if match]


def test_the_ui_never_loads_torch() -> None:
    modules = sorted(f"app.ui.{path.stem}" for path in MAIN.parent.glob("*.py") if path.stem != "__init__")
    code = f"import importlib, sys; [importlib.import_module(m) for m in {modules}]; print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False"]


def test_a_parameter_that_is_one_of_a_few_is_chosen_and_not_typed(home: Path) -> None:
    app = opened()
    app = checked(app.selectbox(key="form/domain").select("protein").run())
    app = checked(app.toggle(key="form/rewards/protein/secondary_structure").set_value(True).run())
    kind = app.selectbox(key="form/reward/secondary_structure/kind")
    assert (kind.value, kind.options) == ("helix", ["helix", "strand"])
    checked(kind.select("strand").run())


def test_all_words_that_are_offered_are_legal(found: Catalogue) -> None:
    offered = [(kind, name) for kind in ("domain", "reward") for name in plugins.names(kind) if found.known(kind, name)]
    assert {name for _, name in offered} >= {"layout", "density", "motif"}
    for kind, name in offered:
        domains = plugins.returned(kind, name).domains if kind == "reward" else ()
        subject = [plugins.build("domain", domain, {}) for domain in domains[:1]]
        for key, values in found.known(kind, name).items():
            assert all(plugins.build(kind, name, {key: value}, *subject) is not None for value in values)


@pytest.mark.parametrize(
    ("domain", "switch", "key", "usual"),
    [
        ("layout", "", "domain/layout/technology", "sky130"),
        ("layout", "density", "reward/density/layer", "li_or_met1"),
        ("dna", "motif", "reward/motif/name", "TATA-Box"),
    ],
)
def test_known_words_are_offered_and_others_may_be_typed(
    home: Path, domain: str, switch: str, key: str, usual: str
) -> None:
    app = checked(opened().selectbox(key="form/domain").select(domain).run())
    if switch:
        app = checked(app.toggle(key=f"form/rewards/{domain}/{switch}").set_value(True).run())
    box = app.selectbox(key=f"form/{key}")
    assert (box.value, box.proto.accept_new_options) == (usual, True)
    assert len(box.options) > 2
    box.options.append("WAWA")  # as the browser does where it is typed
    app = checked(box.select("WAWA").run())
    assert (app.selectbox(key=f"form/{key}").value, app.selectbox(key=f"form/{key}").options) == ("WAWA", box.options)
    click(app, "Generate")
    spec: Any = jobs.runs()[0].spec
    for part in key.replace("reward/", "rewards/").replace("domain/layout", "domain").split("/"):
        spec = spec[part]
    assert spec == "WAWA"


@pytest.mark.parametrize("generator", plugins.names("generator"))
@pytest.mark.parametrize("domain", plugins.names("domain"))
def test_every_ready_cell_from_click_to_files(
    home: Path, found: Catalogue, monkeypatch: pytest.MonkeyPatch, domain: str, generator: str
) -> None:
    if generator not in found.generators(domain):
        pytest.skip(f"{generator} on {domain} is not ready")
    monkeypatch.setattr(jobs, "start", lambda run: worker.work(run.path))
    app = opened()
    checked(app.selectbox(key="form/domain").select(domain).run())
    checked(app.radio(key="form/generator").set_value(generator).run())
    app.number_input(key="form/n").set_value(2)
    app.number_input(key=f"form/steps/{domain}/{generator}").set_value(2)
    if generator == "ideas":
        app.number_input(key="form/generator/ideas/start").set_value(4)
        app.number_input(key="form/generator/ideas/budget").set_value(8)
    click(app, "Generate")
    assert not app.error, app.error[0].value
    run = jobs.runs()[0]
    assert app.query_params["run"] == run.path.name
    assert (jobs.status(run).state, sorted(numbers(app))) == (jobs.DONE, [0, 1])
    assert len([element for element in app.html if '<img alt="design ' in element.proto.body]) == 2
    assert sorted(explained_in(app)) == ["Design 000000", "Design 000001"] * (generator == "ideas")
    labels = [button.label for button in app.download_button]
    assert labels[:2] == ["All as zip", "Report"]
    assert labels[2:] == [suffix[1:] for suffix in run.formats()] * 2


def explained_in(app: AppTest) -> list[str]:
    """The designs that the page explains, by the words of their pictures."""
    words = [element.proto.body for element in app.html]
    return re.findall(r'<img alt="(Design \d{6})"', " ".join(words))


def test_what_carries_the_score_is_beneath_the_designs_of_an_evolution_and_of_no_other(
    home: Path, found: Catalogue
) -> None:
    evolution = ["domain=dna", "generator=ideas", "generator.budget=40", "generator.start=20", "steps=1", "n=2"]
    assert cli.run(["generate", *evolution, f"out={home / 'runs' / 'evolved'}"]) == 0
    made(home, found, [(0.5, 0.5)], "flown")
    (home / "runs" / "flown" / "report.html").write_text("<figure><figcaption>logo</figcaption><svg/></figure>")
    for page in (opened, on_runs):
        app = page(run="evolved")
        assert sorted(explained_in(app)) == ["Design 000000", "Design 000001"]
        assert explanation.TITLE in [element.value for element in app.subheader]
        assert explanation.MEANING in [element.value for element in app.caption]
        app = page(run="flown")
        assert explained_in(app) == []
        assert explanation.TITLE not in [element.value for element in app.subheader]


def test_backends_that_are_not_ready_are_shown_with_the_reason(home: Path, found: Catalogue) -> None:
    shown = opened()
    for domain in found.domains():
        checked(shown.selectbox(key="form/domain").select(domain).run())
        others = found.generators(domain, ready=False)
        radios = [radio for radio in shown.radio if radio.label == f"Not ready for {domain}"]
        assert [radio.options for radio in radios] == ([list(others)] if others else [])
        assert all(radio.disabled and radio.value is None for radio in radios)


def test_weights_rank_anew_and_make_nothing(home: Path, found: Catalogue) -> None:
    run = made(home, found, [(0.1, 0.9), (0.5, 0.5), (0.9, 0.2)])
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    app = opened(run=run.path.name)
    assert numbers(app) == [2, 1, 0]
    checked(app.slider(key="form/reward/motif/weight").set_value(3.0).run())
    assert numbers(app) == [0, 1, 2]
    checked(app.slider(key="form/reward/gc_content/weight").set_value(-1.0).run())
    assert any("**000000** · total **2.6**" in element.value for element in app.markdown)
    checked(app.toggle(key="form/rewards/dna/motif").set_value(False).run())
    assert numbers(app) == [0, 1, 2]
    checked(app.selectbox(key="sort/one").select("gc_content").run())
    assert numbers(app) == [2, 1, 0]
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before


def test_designs_without_violations_and_pages(home: Path, found: Catalogue) -> None:
    made(home, found, [(k / 100, 0.0) for k in range(60)])
    app = opened(run="one")
    assert numbers(app) == list(range(59, 35, -1))
    checked(app.pagination(key="page/one").select(3).run())
    assert numbers(app) == list(range(11, -1, -1))
    checked(app.toggle(key="clean/one").set_value(True).run())
    assert numbers(app) == list(range(58, 10, -2))  # the third page is no more
    checked(app.pagination(key="page/one").select(2).run())
    assert numbers(app) == list(range(10, -1, -2))
    checked(app.selectbox(key="sort/one").select("number").run())
    assert numbers(app) == list(range(48, 60, 2))


def test_a_reload_comes_back_to_the_run_and_to_what_was_asked(home: Path, found: Catalogue) -> None:
    rewards = {"motif": {"weight": -7.5, "name": "TATAWAAR", "end": -20}}
    domain = {"name": "dna", "length": 200, "forbidden_sites": ["EcoRI"]}
    guidance = {"name": "lookahead", "strength": 2.0}
    made(home, found, [(0.5, 0.5)], rewards=rewards, domain=domain, guidance=guidance, seed=10**15, steps=7)
    app = opened(run="one")
    assert numbers(app) == [0]
    click(app, "Generate")
    assert not app.error
    again = jobs.runs()[0]
    assert again.path.name != "one"
    first = Run.find(str(home / "runs" / "one"))
    assert {**again.spec, "batch": 0} == {**first.spec, "batch": 0}


def test_a_lock_is_asked_for_and_stays_until_it_is_left_out(home: Path, found: Catalogue) -> None:
    lock = {"text": "TATAAA", "at": [-61]}
    made(home, found, [(0.5, 0.5)], lock=lock)
    app = opened(run="one")
    held = {text.label: text for text in app.text_input if text.label.startswith("Hold ")}
    assert {label: text.value for label, text in held.items()} == {"Hold text": "TATAAA", "Hold at": "-61"}
    click(app, "Generate")
    assert Run.find(app.query_params["run"]).spec["lock"] == lock
    for label, value in (("Hold text", "CATG,TATAAA"), ("Hold at", "-60, -31")):
        next(text for text in app.text_input if text.label == label).set_value(value).run()
    click(app, "Generate")
    assert Run.find(app.query_params["run"]).spec["lock"] == {"text": "CATG,TATAAA", "at": [-60, -31]}
    for label in held:
        next(text for text in app.text_input if text.label == label).set_value("").run()
    click(app, "Generate")
    assert not Run.find(app.query_params["run"]).spec.get("lock")


def test_conditions_are_asked_for_where_they_were_learned(
    home: Path, found: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = json.loads(json.dumps(inventory.contents()))
    (cell,) = (cell for cell in plain["cells"] if (cell["domain"], cell["generator"]) == ("dna", "rmf"))
    assert cell["checkpoints"]["auto"] == {}
    learned = {"gc": Level(0, 1), "kind": Label(("tata", "dpe")), "letters": Subset("base", tuple("ACGT"))}
    cell["checkpoints"]["auto"] = conditions.to_dict(learned)
    told = catalogue.parse(json.dumps(plain))
    monkeypatch.setattr(catalogue, "read", lambda: told)
    condition = {"gc": 0.4, "kind": "tata", "letters": ["A", "T"]}
    made(home, told, [(0.5, 0.5)], condition=condition, cfg=1.5)
    app = opened(run="one")
    click(app, "Generate")
    spec = Run.find(app.query_params["run"]).spec
    assert (spec["condition"], spec["cfg"]) == (condition, 1.5)
    next(box for box in app.selectbox if box.label == "With kind").set_value("any").run()
    next(text for text in app.text_input if text.label == "With letters").set_value("").run()
    click(app, "Generate")
    assert Run.find(app.query_params["run"]).spec["condition"] == {"gc": 0.4}
    made(home, told, [(0.5, 0.5)], name="two")
    app = opened(run="two")
    click(app, "Generate")
    assert not {"condition", "cfg"} & set(Run.find(app.query_params["run"]).spec)


def test_another_checkpoint_can_be_chosen_and_asked_for_what_it_has_learned(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "start", lambda run: run.event("queued"))
    app = opened()
    app = checked(app.selectbox(key="form/domain").select("layout").run())
    assert not [box for box in app.number_input if box.label == "With density"]
    box = app.selectbox(key="form/checkpoint/layout/hybrid")
    assert box.options == ["auto", "layout-hybrid-conditioned"]
    app = checked(box.select("layout-hybrid-conditioned").run())
    checked(next(box for box in app.number_input if box.label == "With density").set_value(0.3).run())
    click(app, "Generate")
    spec = jobs.runs()[0].spec
    assert (spec["checkpoint"], spec["condition"]) == ("layout-hybrid-conditioned", {"density": 0.3})
    app = opened(run=jobs.runs()[0].path.name)
    assert app.selectbox(key="form/checkpoint/layout/hybrid").value == "layout-hybrid-conditioned"


def test_a_wrong_lock_is_refused_by_name(home: Path) -> None:
    app = opened()
    for label, value in (("Hold text", "TATAAA"), ("Hold at", "soon")):
        next(text for text in app.text_input if text.label == label).set_value(value).run()
    click(app, "Generate")
    run = Run.find(app.query_params["run"])
    with pytest.raises(InputError, match=r"lock.at\[0\] is 'soon'; it must be a whole number"):
        worker.work(run.path)


def test_sequences_are_asked_for_where_there_are_any(home: Path, found: Catalogue) -> None:
    app = opened()
    assert "Sequences for each design" not in [number.label for number in app.number_input]
    app.selectbox[0].set_value("protein").run()
    next(number for number in app.number_input if number.label == "Sequences for each design").set_value(3).run()
    click(app, "Generate")
    assert Run.find(app.query_params["run"]).spec["sequences"] == 3


@pytest.mark.parametrize("seed", ["", "many", "-1", "9" * 20, "1.5"])
def test_a_wrong_value_is_one_line_and_makes_no_run(home: Path, seed: str) -> None:
    app = opened()
    app.text_input(key="form/seed").set_value(seed)
    click(app, "Generate")
    assert len(app.error) == 1
    assert text.plain("it must be a whole number from 0") in app.error[0].value
    assert jobs.runs() == []


def test_what_the_worker_refuses_is_shown_and_not_tried_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(run: Run) -> None:
        with pytest.raises(InputError):
            worker.work(run.path)

    monkeypatch.setattr(jobs, "start", refused)
    app = opened()
    app.number_input(key="form/reward/gc_content/target").set_value(7.0)
    click(app, "Generate")
    assert "target\\=7\\.0" in app.error[0].value
    assert not any(button.label == "Resume" for button in app.button)
    assert any("Nothing was made" in caption.value for caption in app.caption)


@pytest.mark.parametrize(("begun", "buttons"), [(True, ["Resume"]), (False, [])])
def test_a_run_without_designs_is_resumed_if_it_had_begun(
    home: Path, found: Catalogue, begun: bool, buttons: list[str]
) -> None:
    run = made(home, found, [(0.5, 0.5)])
    (run.path / "scores.csv").unlink()
    (run.path / "events.jsonl").unlink()
    run.event("preparing")
    if begun:
        run.event("started", n=1, missing=1)
    run.event("failed", message="no luck")
    app = opened(run="one")
    assert [button.label for button in app.button if button.label in ("Cancel", "Resume")] == buttons


@pytest.mark.parametrize(
    ("events", "state", "buttons"),
    [
        ([("finished", {"seconds": 1})], "done", []),
        ([("cancelled", {})], "cancelled", ["Resume"]),
        ([("failed", {"message": "no *luck*"})], "failed", ["Resume"]),
        ([("started", {"n": 4, "missing": 4})], "lost", ["Resume"]),
    ],
)
def test_each_state_has_its_words_and_buttons(
    home: Path, found: Catalogue, events: list[tuple[str, dict[str, Any]]], state: str, buttons: list[str]
) -> None:
    run = made(home, found, [(0.5, 0.5)], n=4)
    for name, values in events:
        run.event(name, **values)
    app = opened(run="one")
    words = " ".join(element.value for element in (*app.error, *app.warning, *app.info, *app.markdown))
    assert state in words
    assert state == "done" or text.plain("1 of 4 designs are kept") in words
    assert [button.label for button in app.button if button.label in ("Cancel", "Resume")] == buttons


def test_a_run_in_use_shows_progress_and_can_be_cancelled(home: Path, found: Catalogue) -> None:
    run = made(home, found, [(0.5, 0.5)], n=4)
    again = Run.open(run.path, run.spec, {"checkpoint": None}, [".txt"])
    try:
        again.event("started", n=4, missing=4)
        again.event("progress", done=1, batch=2, steps=3, total=6)
        app = opened(run="one")
        assert app.get("progress")[0].proto.value == 50
        click(app, "Cancel")
        assert (run.path / "cancel").exists()
    finally:
        again.close()


def runs_page() -> None:
    import streamlit as st

    from app.ui import runs_page

    def note() -> None:
        st.session_state["turned"] = True

    runs_page.show(note)


def on_runs(**query: str) -> AppTest:
    app = AppTest.from_function(runs_page, default_timeout=PATIENCE)
    for key, value in query.items():
        app.query_params[key] = value
    return checked(app.run())


def test_past_runs_are_listed_opened_and_used_again(home: Path, found: Catalogue) -> None:
    assert "None yet" in on_runs().caption[0].value
    made(home, found, [(0.1, 0.9), (0.9, 0.2)], "first", seed=5)
    made(home, found, [(0.5, 0.5)], "sec*ond*", n=3)
    (home / "runs" / "broken").mkdir()
    (home / "runs" / "broken" / "spec.yaml").write_text("{")
    (home / "runs" / "thesis").mkdir()
    app = on_runs()
    names = [button.label for button in app.button]
    assert sorted(names) == sorted(["first", "sec\\*ond\\*", "broken"])
    words = [element.value for element in app.markdown]
    assert {"2 of 2", "1 of 3", "dna by rmf", "seed 5", ":green-badge[done]"} <= set(words)
    click(app, "first")
    assert app.query_params["run"] == "first"
    assert numbers(app) == [1, 0]
    checked(app.slider(key="rank/first/motif").set_value(2.0).run())
    assert numbers(app) == [0, 1]
    click(app, "Use as new")
    assert app.session_state["turned"]
    assert app.session_state[form.KEPT]["seed"] == "5"
    click(app, "All runs")
    assert len(app.button) == 3


@pytest.mark.parametrize("name", ["none", "..", "../runs/one", "<b>*"])
def test_a_name_that_is_no_run(home: Path, found: Catalogue, name: str) -> None:
    made(home, found, [(0.5, 0.5)])
    app = on_runs(run=name)
    assert numbers(app) == []
    assert [button.label for button in app.button] == ["one"]
    assert numbers(opened(run=name)) == []


def test_the_zip_has_all_that_a_run_is(home: Path, found: Catalogue) -> None:
    run = made(home, found, [(0.1, 0.9), (0.9, 0.2)])
    (run.path / "report.html").write_text("all of it")
    with zipfile.ZipFile(io.BytesIO(run_view.zipped(run))) as archive:
        names = set(archive.namelist())
        assert archive.read("one/designs/000001.txt") == b"design 1"
        assert archive.read("one/scores.csv") == (run.path / "scores.csv").read_bytes()
    tables = {f"one/{name}" for name in run_view.TABLES}
    assert names == tables | {"one/designs/000000.txt", "one/designs/000001.txt"}


HOSTILE = [
    "<script>alert(1)</script>",
    "[x](javascript:1)",
    "$\\alpha$ :red[x] `y` ![z](w)",
    "a\n# b",
    "<img src=x>",
    "",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_markup(name: str) -> None:
    shown = text.plain(name)
    assert re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", shown) == " ".join(name.split())
    assert not re.search(r"(?<!\\)[<>\[\]`$*_:#!]", shown.replace("\\\\", ""))


@given(svg=strategies.binary(max_size=200), alt=strategies.text(max_size=50))
def test_a_picture_cannot_leave_its_frame(svg: bytes, alt: str) -> None:
    shown = text.image(svg, alt)
    match = re.fullmatch(
        r'<img alt="([^"<>]*)" src="data:image/svg\+xml;base64,([A-Za-z0-9+/=]*)" style="[^"<>]*">', shown
    )
    assert match is not None
    assert base64.b64decode(match[2]) == svg
    assert html.unescape(match[1]) == alt


@pytest.mark.parametrize(
    ("svg", "width", "cards"),
    [
        ('<svg viewBox="0 0 640 120">', 640, 2),
        ("<svg a='b' viewBox='-1 -1,24 24'/>", 24, 4),
        ('<svg viewBox="0 0 2000 2000" width="324.5px">', 324.5, 3),
        ('<?xml version="1.0"?>\n<svg xmlns="x"\n height="10" width=\'90\'><rect width="900"/>', 90, 4),
        ('<svg stroke-width="900" width="100%">', 0, 4),
        ("<svg>", 0, 4),
        ('<svg viewBox="0 0 a b">', 0, 4),
        ("", 0, 4),
    ],
)
def test_wide_pictures_get_wide_cards(svg: str, width: float, cards: int) -> None:
    assert (text.width(svg.encode()), text.per_row(svg.encode())) == (width, cards)


@pytest.mark.parametrize(("seconds", "said"), [(0.2, "1 s"), (42.4, "42 s"), (600, "10 min"), (9000, "2.5 h")])
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


weights = strategies.dictionaries(strategies.sampled_from("abc"), strategies.floats(-1000, 1000))
values = strategies.lists(strategies.tuples(*[strategies.floats(0, 1)] * 3), max_size=20)


@given(weights=weights, values=values)
def test_ranking_is_by_the_weighted_sum(weights: dict[str, float], values: list[tuple[float, ...]]) -> None:
    rows = [
        {"design": str(k), "violations": "0"} | dict(zip("abc", map(str, v), strict=True)) for k, v in enumerate(values)
    ]
    order = ranking.ordered(ranking.entries(rows, weights), "total", clean_only=True)
    expected = [sum(weights.get(name, 0) * x for name, x in zip("abc", v, strict=True)) for v in values]
    assert [entry.total for entry in order] == pytest.approx(sorted(expected, reverse=True))
    assert sorted(entry.number for entry in order) == list(range(len(values)))


def test_scores_that_are_no_numbers_come_last() -> None:
    rows = [
        {"design": str(k), "a": value, "violations": ""} for k, value in enumerate(["nan", "0.5", "", "inf", "0.7"])
    ]
    found = ranking.entries(rows, {"a": 1.0, "b": 2.0})
    assert [entry.number for entry in ranking.ordered(found, "total", clean_only=True)][:2] == [4, 1]


@pytest.mark.parametrize("make", [lambda: 70000, lambda: -1])
def test_a_port_that_cannot_be(make: Callable[[], int]) -> None:
    with pytest.raises(InputError, match="--port"):
        server.check_free(make())


def test_a_port_in_use() -> None:
    with socket.socket() as taken:
        taken.bind((server.ADDRESS, 0))
        taken.listen()
        with pytest.raises(InputError, match="--port"):
            server.check_free(taken.getsockname()[1])


def test_streamlit_is_told_to_be_local_and_quiet() -> None:
    words = server.command(1234)
    assert {"--server.address=127.0.0.1", "--server.port=1234", "--browser.gatherUsageStats=false"} <= set(words)
    assert Path(words[words.index("run") + 1]) == MAIN


def test_what_was_begun_is_read_once_and_a_failure_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "asked"
    code = f"open({str(log)!r}, 'a').write('x'); print('{{\"plugins\": {{}}, \"cells\": []}}')"
    monkeypatch.setattr(catalogue, "PROGRAM", (sys.executable, "-c", "raise SystemExit('not yet')"))
    catalogue.begin()
    with pytest.raises(InputError, match="not yet"):
        catalogue.read()
    monkeypatch.setattr(catalogue, "PROGRAM", (sys.executable, "-c", code))
    catalogue.begin()
    assert catalogue.read() == Catalogue({}, [])
    assert log.read_text() == "x"
    catalogue.read()
    assert log.read_text() == "xx"


def test_a_catalogue_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "PROGRAM", (sys.executable, "-c", "raise SystemExit('no torch here')"))
    with pytest.raises(InputError, match=r"no torch here.*doctor"):
        catalogue.read()
