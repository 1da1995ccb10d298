"""Corpora are the files their manifest names; foreign files are read with suspicion."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from data import corpora

LANDSCAPES = ("aav_liver_90.npz", "gb1_pairs.npz", "tfbind8.npz")
"""Oracles of a bench: tables of measurements, on which nothing is trained."""


@pytest.mark.parametrize("name", [name for name in corpora.names() if name not in LANDSCAPES])
def test_shipped_corpora_have_splits(name: str) -> None:
    arrays = corpora.load(name)
    train, val = (int((arrays["split"] == split).sum()) for split in ("train", "val"))
    assert train + val == len(arrays["split"])
    assert val > 0
    assert train > 4 * val or (train == 0 and name.startswith("stdcells"))  # the cells of a bench, for no training


def test_a_changed_corpus_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = corpora.names()[0]
    data = bytearray((corpora.FOLDER / name).read_bytes())
    data[1000] ^= 1
    (tmp_path / name).write_bytes(data)
    monkeypatch.setattr(corpora, "FOLDER", tmp_path)
    with pytest.raises(corpora.CorpusError, match="sha256"):
        corpora.load(name)


def test_an_unknown_corpus_lists_the_known() -> None:
    with pytest.raises(corpora.CorpusError, match="fly_promoters"):
        corpora.load("human.npz")


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("a pickle was run",)


def write_object_array(path: Path) -> None:
    np.savez(path, bits=np.array([Trap()], dtype=object))


def write_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps(Trap()))


def write_nothing(path: Path) -> None:
    path.write_bytes(b"")


def write_other_keys(path: Path) -> None:
    np.savez(path, letters=np.zeros((2, 2), np.uint8))


def write_other_shape(path: Path) -> None:
    np.savez(path, bits=np.zeros(3, np.float32))


def write_other_member(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bits.npy", b"not an array")


def write_huge_header(path: Path) -> None:
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1180591620717411303424, 4), }"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bits.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


def write_broken_deflate(path: Path) -> None:
    np.savez_compressed(path, bits=np.arange(5000, dtype=np.uint8))
    content = bytearray(path.read_bytes())
    content[80:120] = bytes(40)
    path.write_bytes(content)


BROKEN = [
    write_object_array, write_pickle, write_nothing, write_other_keys, write_other_shape, write_other_member,
    write_huge_header, write_broken_deflate, Path.mkdir,
]  # fmt: skip


@pytest.mark.parametrize("make", BROKEN)
def test_bad_files_are_one_clear_error(tmp_path: Path, make, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.npz"
    make(path)
    with pytest.raises(corpora.CorpusError) as caught:
        corpora.read_npz(path, {"bits": ("u", 2)})
    assert str(path) in str(caught.value)
    assert "a pickle was run" not in capsys.readouterr().out


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, bits=np.zeros((1000, 1000), np.uint8))
    monkeypatch.setattr(corpora, "MOST_BYTES", 100_000)
    with pytest.raises(corpora.CorpusError, match="unpacks to"):
        corpora.read_npz(path, {"bits": ("u", 2)})
