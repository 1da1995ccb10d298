"""Real designs, shipped: npz files whose digests `manifest.json` pins and whose items each carry a split."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from data import digests
from data.errors import InputError

FOLDER = Path(__file__).parent
MANIFEST = FOLDER / "manifest.json"
MOST_BYTES = 2 << 30
"""No array file may unpack to more than this."""
_UNREADABLE = (
    OSError, ValueError, EOFError, MemoryError, OverflowError, NotImplementedError, RuntimeError, SyntaxError,
    zipfile.BadZipFile, zlib.error, tokenize.TokenError,
)  # fmt: skip
"""What numpy and zipfile raise on broken files: any of these means only that the file is not one of ours."""


class CorpusError(InputError):
    """A file that is not a corpus of the wanted format; the message says what was found and what is legal."""


def names() -> list[str]:
    """The shipped corpora."""
    return sorted(digests.read_manifest(MANIFEST))


def load(name: str) -> dict[str, np.ndarray]:
    """The arrays of a shipped corpus, after checking its sha256; raises `CorpusError` where it does not match."""
    path = FOLDER / name
    manifest = digests.read_manifest(MANIFEST)
    if name not in manifest:
        raise CorpusError(f"no corpus {name!r}; there are {', '.join(sorted(manifest))}")
    try:
        digests.verify(path, manifest[name], MANIFEST)
    except (digests.DigestError, OSError) as error:
        raise CorpusError(str(error)) from error
    return _arrays(path)


def read_npz(path: Path, wanted: Mapping[str, tuple[str, int]]) -> dict[str, np.ndarray]:
    """The arrays of a foreign npz file, which must have the `wanted` keys: key -> (dtype kinds, number of axes).

    Raises `CorpusError` for anything that is not an npz, holds a pickle, is too large, or has other keys or shapes.
    """
    arrays = _arrays(path)
    for key, (kinds, axes) in wanted.items():
        if key not in arrays:
            raise CorpusError(f"{path} has arrays {sorted(arrays)}; it must have {sorted(wanted)}")
        array = arrays[key]
        if array.dtype.kind not in kinds or array.ndim != axes:
            raise CorpusError(
                f"{path}: {key} is {array.dtype} with shape {array.shape}; it must have {axes} axes, type {kinds}"
            )
    return arrays


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        if not path.is_file():
            raise CorpusError(f"{path} is not a file; give an npz in the format of the corpus")
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST_BYTES:
            raise CorpusError(f"{path} unpacks to {size} bytes; the most that is read is {MOST_BYTES}")
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except CorpusError:
        raise
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CorpusError(f"{path} cannot be read as plain arrays ({reason:.200}); pickles are not read") from error
    strange = [key for key, value in arrays.items() if not isinstance(value, np.ndarray)]
    if strange:
        raise CorpusError(f"{path}: {strange[0]} is not an array; give an npz in the format of the corpus")
    return arrays
