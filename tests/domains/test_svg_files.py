"""SVG files: round trips, other people's files against resvg, and files that are refused."""

from __future__ import annotations

import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import numpy as np
import pytest
import resvg_py
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from domains.base import DesignError
from domains.svg import files
from domains.svg.icon import Icon, Segment
from tests.domains.test_svg_domain import DOMAIN, ICONS, icon, junk

PROVENANCE = st.dictionaries(st.text(min_size=1, max_size=30), st.text(max_size=200), max_size=5)
NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'
PEN = 'fill="none" stroke="black" stroke-linecap="round" stroke-linejoin="round"'
BOX = icon("M 3 3", "L 9 3", "L 9 9", "Z")


def rendered(text: str, size: int = 96) -> np.ndarray:
    """Opacity (size, size) of a document, as resvg draws it."""
    png = bytes(resvg_py.svg_to_bytes(svg_string=text, width=size, height=size))
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))[..., 3] / 255


def wrapped(body: str, box: str = "0 0 24 24", width: float = 2, more: str = "") -> str:
    return f'<svg {NAMESPACE} viewBox="{box}" {PEN} stroke-width="{width}" {more}>{body}</svg>'


def read(text: str | bytes, folder: Path) -> Icon:
    path = folder / "d.svg"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return DOMAIN.read(path)


@settings(max_examples=30, deadline=None)
@given(design=ICONS, told=PROVENANCE)
def test_reading_undoes_writing_and_keeps_provenance(design: Icon, told: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "design.svg")
        DOMAIN.write(design, path, told)
        assert DOMAIN.read(path) == design
        assert DOMAIN.provenance(path) == told
        assert list(Path(folder).iterdir()) == [path]


def test_real_and_junk_icons_survive_and_resvg_draws_them(tmp_path: Path) -> None:
    designs = [*DOMAIN.corpus("val")[::16], *DOMAIN.decode(junk(3)), *DOMAIN.decode(junk(4, size=0.5))]
    for design in designs:
        DOMAIN.write(design, tmp_path / "d.svg", {"seed": "7"})
        assert DOMAIN.read(tmp_path / "d.svg") == design
        drawn = any(len(path) > 1 for path in design.paths)
        ink = rendered((tmp_path / "d.svg").read_text(), 24).sum()
        assert ink > 0 or not drawn or DOMAIN.violations(design)


def test_a_file_is_as_short_as_it_can_be_and_its_provenance_is_readable(tmp_path: Path) -> None:
    DOMAIN.write(icon("M 3 0.5", "C -0.25 1 10.1 -12 24 1", "Z"), tmp_path / "d.svg", {"spec": '{"n":1}', "a": "<é&>"})
    text = (tmp_path / "d.svg").read_text()
    assert '<path d="M3 0.5C-0.25 1 10.1 -12 24 1Z"/>' in text
    assert text.startswith(files.HEAD)
    assert json.loads(ElementTree.fromstring(text)[0].text or "") == {"spec": '{"n":1}', "a": "<é&>"}


def test_a_negative_zero_is_written_as_zero(tmp_path: Path) -> None:
    DOMAIN.write(Icon(((Segment("M", (-0.0, 1.0)),),)), tmp_path / "d.svg", {})
    assert 'd="M0 1"' in (tmp_path / "d.svg").read_text()


AWKWARD = {
    "compact arc flags": '<path d="M5 12a4 4 0 1114 0a7 3 30 015-6"/>',
    "abutting numbers": '<path d="M10-2.5.5.5-1-.25L5.5.5.5-1e1 4E0 3e-1"/>',
    "implied lines": '<path d="m2 2 5 0 0 5 M12 12 20 12 20 20m-4-4 1 1zl2 2"/>',
    "after close": '<path d="M4 4h5v5zl3 9zm8 8l3-3z l9 0"/>',
    "H V": '<path d="M2 2H9V9h5v5H2 3 4v1 1 1"/>',
    "S": '<path d="M2 12C2 4 8 4 10 12S18 20 20 12s1-7 2-9"/>',
    "S after a line": '<path d="M2 12L5 12S18 20 20 12"/>',
    "Q T": '<path d="M2 12Q6 2 10 12T18 12t3-3q1 1 2 5"/>',
    "T after a cubic": '<path d="M2 12C2 4 8 4 10 12T18 12"/>',
    "large turned arc": '<path d="M6 9A9 4 30 1 0 17 14"/>',
    "radii too small": '<path d="M3 12a1 2 45 0 1 18 3"/>',
    "no radius": '<path d="M3 12A0 5 0 0 1 20 12a5 0 0 0 1-9 9"/>',
    "negative radius": '<path d="M3 12A-5 -5 0 0 1 12 12"/>',
    "arc to itself": '<path d="M3 12a5 5 0 1 1 0 0l9 3"/>',
    "four sweeps": '<path d="M6 10A8 6 0 0 0 18 10M6 10A8 6 0 0 1 18 10M6 14A8 6 0 1 0 18 14M6 14A8 6 0 1 1 18 14"/>',
    "line": '<line x1="3" y1="4" x2="20" y2="20"/>',
    "circle": '<circle cx="12" cy="11" r="9.5px"/>',
    "ellipse": '<ellipse cx="12" cy="12" rx="10" ry="4"/>',
    "rect": '<rect x="3" y="4" width="17" height="9"/>',
    "rect rx": '<rect x="3" y="4" width="17" height="9" rx="3"/>',
    "rect rx ry": '<rect x="3" y="4" width="17" height="9" rx="3" ry="1"/>',
    "rect ry auto": '<rect x="3" y="4" width="17" height="9" ry="2" rx="auto"/>',
    "rect too round": '<rect x="3" y="4" width="17" height="9" rx="30"/>',
    "no rect": '<rect x="3" y="4" width="0" height="9"/><circle cx="3" cy="3" r="0"/><path d="M1 1h3"/>',
    "polyline": '<polyline points="3,4 9 9,20 3 , 20 21"/>',
    "polygon": '<polygon points="3,4,9,9,20,3"/>',
    "no points": '<polygon points=""/><polyline/><path/><path d="M4 4h9"/>',
    "nested groups": '<g><g id="a"><path d="m4 4h9"/></g><path d="m4 9h9"/></g><title>t</title>',
    "invisible box": '<path stroke="none" fill="none" d="M0 0h24v24H0z"/><path d="M4 4h9"/>',
    "hidden group": '<g style="display: none"><rect width="9" height="9"/></g><path d="M4 4h9"/>',
    "hidden path": '<path visibility="hidden" d="M3 3h9"/><path d="M4 4h9"/>',
    "white space": '<path d="\n M 4\t4 ,\r\n h 9 "/>',
}


@pytest.mark.parametrize("body", AWKWARD.values(), ids=AWKWARD.keys())
@pytest.mark.parametrize("form", ["plain", "512", "wide"])
def test_other_files_look_the_same_to_resvg(tmp_path: Path, body: str, form: str) -> None:
    text = wrapped(body)
    if form == "512":
        text = f'<?xml version="1.0" encoding="utf-8"?>\n{wrapped(body, "-8 -16 48 48", 4)}'
    if form == "wide":
        text = "\ufeff" + wrapped(body, "0,0 36 24", 3, 'width="24" height="24"')
    found = rendered(files.document(read(text, tmp_path), {}))
    wanted = rendered(text.removeprefix("\ufeff"))
    assert wanted.sum() > 50
    assert np.abs(found - wanted).mean() < 0.003


def test_a_view_box_of_512_is_scaled(tmp_path: Path) -> None:
    text = wrapped(
        '<path d="M256 128h64"/><rect x="64" y="64" width="128" height="128" rx="32"/>', "0 0 512 512", 42.67
    )
    design = read(text, tmp_path)
    assert design.paths[0] == icon("M 12 6", "L 15 6").paths[0]
    assert np.abs(rendered(files.document(design, {})) - rendered(text)).mean() < 0.002


def test_without_a_view_box_the_size_counts(tmp_path: Path) -> None:
    assert read(f'<svg {NAMESPACE} width="48px" height="48"><path d="M6 6h24"/></svg>', tmp_path) == icon(
        "M 3 3", "L 15 3"
    )
    assert read('<svg><path d="M6 6h9"/></svg>', tmp_path) == icon("M 6 6", "L 15 6")


def test_notes_of_editors_are_passed_over(tmp_path: Path) -> None:
    notes = '<defs><linearGradient id="a"/></defs><n:view xmlns:n="urn:n"><path d="M1 1h1"/></n:view><!-- <script/> -->'
    assert read(wrapped(notes + '<path d="M4 4h9"/>'), tmp_path) == icon("M 4 4", "L 13 4")


REFUSED = {
    "doctype": (f'<!DOCTYPE svg PUBLIC "x" "y">{wrapped("")}', "<!DOCTYPE"),
    "entity bomb": (
        '<!DOCTYPE b [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>' + wrapped("<title>&b;</title>"),
        "<!DOCTYPE",
    ),
    "external entity": ('<!doctype b [<!entity a SYSTEM "file:///etc/passwd">]>' + wrapped("&a;"), "<!DOCTYPE"),
    "utf-16 doctype": ('<!DOCTYPE svg><svg xmlns="http://www.w3.org/2000/svg"/>'.encode("utf-16"), "byte 0xff at 0"),
    "huge": (wrapped('<path d="M' + "1 1 " * 300_000 + '"/>'), "larger than 1048576 bytes"),
    "many segments": (wrapped('<path d="M' + "1 1 " * 5000 + '"/>'), "5000 segments; at most 4000"),
    "script": (wrapped("<script>alert(1)</script>"), "<script> has a script"),
    "hidden script": (wrapped("<metadata><a><script/></a></metadata>"), "has a script"),
    "handler": (wrapped('<path d="M1 1h3" onclick="x()"/>'), "has a script"),
    "transform": (wrapped('<g transform="rotate(9)"><path d="M1 1h3"/></g>'), "transform='rotate"),
    "style transform": (wrapped('<path style="transform: scale(2)" d="M1 1h3"/>'), "transform='scale"),
    "clip": (wrapped('<path clip-path="url(#a)" d="M1 1h3"/>'), "clip-path"),
    "text": (wrapped("<text>a</text>"), "<text> is not a stroke; legal are g, path"),
    "image": (wrapped('<image href="http://a/b.png"/>'), "<image> is not a stroke"),
    "use": (wrapped('<use href="#a"/>'), "<use> is not a stroke"),
    "nested svg": (wrapped("<svg/>"), "<svg> is not a stroke"),
    "style": (wrapped("<style>path{}</style>"), "<style> is not a stroke"),
    "not xml": ("M1 1h3", "is not XML"),
    "torn": (wrapped("")[:-3], "is not XML"),
    "null": ("\0", "is not XML"),
    "nothing": ("", "is not XML"),
    "html": ("<html/>", "holds <html>"),
    "latin-1": (wrapped("<title>é</title>").encode("latin-1"), "byte 0xe9"),
    "no move": (wrapped('<path d="L1 1"/>'), "begins with 'L'"),
    "number first": (wrapped('<path d="1 1"/>'), "'1' at character 1, where a command"),
    "odd": (wrapped('<path d="M1 1L2"/>'), "the end at character 7, where a number"),
    "garbage": (wrapped('<path d="M327 4;68z"/>'), "';' at character 7, where a number"),
    "after z": (wrapped('<path d="M3 3z4 5"/>'), "'4' at character 6, where a command"),
    "flag": (wrapped('<path d="M3 3a1 1 0 2 1 3 3"/>'), "'2' at character 12, where a flag"),
    "nan": (wrapped('<path d="Mnan 1"/>'), "'n' at character 2"),
    "infinite": (wrapped('<path d="M1e999 1"/>'), "number 1e999"),
    "far away": (wrapped('<path d="M1000 1h1"/>'), "coordinate 1000 is at 1000"),
    "percent": (wrapped('<circle cx="50%" cy="1" r="1"/>'), "cx has '50%'"),
    "huge radius": (wrapped('<circle r="1e300"/>'), "r has '1e300'"),
    "odd points": (wrapped('<polyline points="1 2 3"/>'), "points has 3 numbers"),
    "flat box": (wrapped("", "0 0 24 0"), "24 wide and 0 high"),
    "short box": (wrapped("", "0 0 24"), "viewBox has 3 numbers"),
}


@pytest.mark.parametrize(("text", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_strokes_is_refused_in_one_line(tmp_path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(DesignError) as caught:
        read(text, tmp_path)
    assert words in str(caught.value)
    assert "d.svg" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_deep_nesting_is_no_trouble(tmp_path: Path) -> None:
    depth = 50_000
    assert read(wrapped("<g>" * depth + '<path d="M4 4h9"/>' + "</g>" * depth), tmp_path) == icon("M 4 4", "L 13 4")


@pytest.mark.parametrize("name", ["d.png", "absent.svg"])
def test_other_and_absent_files_are_refused(tmp_path: Path, name: str) -> None:
    for look in (DOMAIN.read, DOMAIN.provenance):
        with pytest.raises(DesignError, match=name):
            look(tmp_path / name)


@pytest.mark.parametrize(
    "text", ["", "<metadata>words</metadata>", '<metadata>{"a": 1}</metadata>', "<metadata>[1]</metadata>"]
)
def test_files_from_elsewhere_have_no_provenance(tmp_path: Path, text: str) -> None:
    (tmp_path / "d.svg").write_text(wrapped(text))
    assert DOMAIN.provenance(tmp_path / "d.svg") == {}


def _outcome(path: Path) -> Icon | str:
    """What reading gives: the design, or the words of the refusal; any other error passes."""
    try:
        return DOMAIN.read(path)
    except DesignError as error:
        return str(error)


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=60) | st.text(" 0123456789.,-eMmLlHhAaSsTtQqZz<>/", max_size=60), seed=st.integers(0))
def test_broken_files_never_raise_anything_else(content: bytes | str, seed: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "d.svg")
        DOMAIN.write(BOX, path, {"seed": "7"})
        whole = path.read_bytes()
        patch = content if isinstance(content, bytes) else content.encode()
        place = seed % len(whole)
        path.write_bytes(whole[:place] + patch + whole[place + len(patch) // 2 :])
        outcome = _outcome(path)
        assert isinstance(outcome, Icon) or outcome.startswith(str(path))


@settings(max_examples=80, deadline=None)
@given(data=st.text(" 0123456789.,-+eMmLlHhVvCcAaSsTtQqZz", max_size=60))
def test_any_path_data_is_an_icon_or_a_refusal(data: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "d.svg")
        path.write_text(wrapped(f'<path d="M5 5{data}"/>'))
        outcome = _outcome(path)
        if isinstance(outcome, Icon):
            DOMAIN.write(outcome, path, {})
            assert DOMAIN.read(path) == outcome


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    long = icon("M 3 3", *["L 4 4"] * 4000)
    for design, name, told in ((BOX, "d.png", {}), (long, "d.svg", {}), (BOX, "d.svg", {"a": "x" * (1 << 20)})):
        with pytest.raises(DesignError):
            DOMAIN.write(design, tmp_path / name, told)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.svg"
    DOMAIN.write(BOX, path, {})

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        DOMAIN.write(icon("M 1 1"), path, {})
    assert DOMAIN.read(path) == BOX
    assert list(tmp_path.iterdir()) == [path]
