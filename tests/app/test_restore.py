"""Every format gives back the run that made it, pictures too; and files that others wrote, or broke."""

import contextlib
import io
import json
import struct
import sys
import zlib
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from app import cells, cli, plugins, png, provenance
from app.composition import composed
from app.spec import Choice, RunSpec, from_plain
from data.errors import InputError

CELLS = [("dna", "rmf"), ("protein", "rmf"), ("protein", "ideas"), ("svg", "hybrid"), ("layout", "hybrid")]
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"><rect width="5" height="5"/></svg>'


@pytest.mark.parametrize(("domain", "generator"), CELLS)
def test_every_format_gives_back_its_spec(domain: str, generator: str, tmp_path: Path) -> None:
    overrides = [f"domain={domain}", f"generator={generator}", "seed=7", "n=3", "repair=false"]
    spec = from_plain(RunSpec, composed("generate", overrides))
    built = cells.domain(Choice(domain, {}), generator)
    notes = provenance.of_design(spec, 2, {"checkpoint": None})
    design = built.corpus("val")[0]
    for suffix in built.suffixes:
        path = tmp_path / f"000002{suffix}"
        built.write(design, path, notes)
        assert provenance.restored(path) == spec.identity(), suffix
    (tmp_path / "000002.png").write_bytes(png.drawn(built.draw(design), notes))
    assert provenance.restored(tmp_path / "000002.png") == spec.identity()


def test_pictures_of_a_run_make_it_again(arguments: list[str], tmp_path: Path, capsys) -> None:
    assert cli.run(["generate", *arguments]) == 0
    run = Path(capsys.readouterr().out.splitlines()[-1])
    for _ in range(2):  # the second time they are there already
        assert cli.run(["export", str(run), "--to", str(tmp_path / "to"), "--format", "png"]) == 0
        assert "5 files" in capsys.readouterr().out
    assert [path.name for path in sorted((tmp_path / "to").iterdir())] == [f"{k:06d}.png" for k in range(5)]
    picture = tmp_path / "to" / "000003.png"
    assert cli.run(["restore", str(picture)]) == 0
    (tmp_path / "spec.yaml").write_text(capsys.readouterr().out)
    assert cli.run(["generate", f"spec={tmp_path / 'spec.yaml'}", f"out={tmp_path / 'again'}"]) == 0
    for path in (run / "designs").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / "designs" / path.name).read_bytes()
    with Image.open(picture) as image:  # as other programs read it
        image.verify()
        notes = json.loads(image.info["foreshape"])
    assert (notes["design"], json.loads(notes["spec"])) == ("3", yaml.safe_load((run / "spec.yaml").read_text()))


def test_a_picture_differs_from_the_bare_one_by_its_notes_alone() -> None:
    bare = bytes(png.renderer()(svg_string=DRAWING.decode(), zoom=png.ZOOM, background="white"))
    with Image.open(io.BytesIO(bare)) as one, Image.open(io.BytesIO(png.drawn(DRAWING, {"spec": "ü"}))) as other:
        assert (one.size, one.tobytes()) == (other.size, other.tobytes())
        assert one.size == (40, 20)


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=200), max_size=5))
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_notes_come_back(tmp_path: Path, notes: dict[str, str]) -> None:
    (tmp_path / "a.png").write_bytes(png.drawn(DRAWING, notes))
    assert png.notes(tmp_path / "a.png") == notes


def strangers(text: str | None) -> bytes:
    """A picture of another program, with a text under our name."""
    info, file = PngInfo(), io.BytesIO()
    if text is not None:
        info.add_text("foreshape", text)
    Image.new("L", (3, 3)).save(file, "png", pnginfo=info)
    return file.getvalue()


def chunk(size: int, data: bytes) -> bytes:
    body = b"tEXt" + data
    return struct.pack(">I", size) + body + struct.pack(">I", zlib.crc32(body))


WHOLE = png.drawn(DRAWING, {"spec": "{}"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no PNG"),
        (b"hello", "no PNG"),
        (png.SIGNATURE, "too early"),
        (WHOLE[:60], "damaged"),
        (WHOLE[:-20], "too early"),
        (WHOLE.replace(b'"spec"', b'"spek"'), "damaged"),
        (png.SIGNATURE + chunk(1 << 30, b"x"), "at most"),
        (png.SIGNATURE + chunk(0xFFFFFFFF, b"x"), "at most"),
        (strangers(None), "no spec"),
        (strangers("not JSON"), "cannot be read"),
        (strangers("[1]"), "no spec"),
        (strangers("[" * 100_000), "cannot be read"),
        (strangers('{"spec": 3}'), "no spec"),
        (strangers('{"spec": "3"}'), "no spec"),
        (strangers('{"spec": "{\\"n\\": 0}"}'), "domain"),
    ],
)
def test_pictures_that_carry_nothing_are_one_line(content: bytes, said: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "a.png").write_bytes(content)
    assert cli.run(["restore", str(tmp_path / "a.png")]) == 2
    caught = capsys.readouterr()
    assert (caught.out, caught.err.count("\n")) == ("", 1)
    assert said in caught.err


@given(st.binary(max_size=200), st.integers(0, len(WHOLE)))
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_is_more_than_an_answer(tmp_path: Path, junk: bytes, place: int) -> None:
    (tmp_path / "a.png").write_bytes(WHOLE[:place] + junk + WHOLE[place + len(junk) :])
    with contextlib.suppress(InputError):
        assert isinstance(png.notes(tmp_path / "a.png"), dict)


def test_without_the_renderer_export_says_what_to_install(arguments: list[str], tmp_path: Path, monkeypatch, capsys):
    assert cli.run(["generate", *arguments]) == 0
    run = capsys.readouterr().out.splitlines()[-1]
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert cli.run(["export", run, "--to", str(tmp_path / "to"), "--format", "png"]) == 2
    assert "foreshape[png]" in capsys.readouterr().err
    assert not (tmp_path / "to").exists()


def test_no_domain_writes_pictures_as_designs() -> None:
    """Else `restore` would not ask it."""
    for name in plugins.names("domain"):
        assert png.SUFFIX not in plugins.build("domain", name, {}).suffixes
