"""PNG files that carry notes, as JSON in a text chunk named after this program.

The parts of such a file: W3C, Portable Network Graphics (third edition), sections 5.3 and 11.3.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from data.errors import InputError

SUFFIX, SIGNATURE, KEYWORD = ".png", b"\x89PNG\r\n\x1a\n", b"foreshape\0"
MOST_BYTES, MOST_TEXT = 1 << 24, 1 << 20
"""Of a file, and of a text in it, at most."""
ZOOM = 2.0
"""Pixels of a picture per pixel of the drawing."""


def renderer() -> Callable[..., bytes]:
    """What draws SVG; raises `InputError` where it is not installed."""
    try:
        import resvg_py
    except ImportError as error:
        raise InputError(
            f"the package resvg-py is needed ({error}); `pip install 'foreshape[png]'` installs it"
        ) from error
    return resvg_py.svg_to_bytes


def drawn(svg: bytes, notes: Mapping[str, str]) -> bytes:
    """A drawing as a PNG file on white, with notes about it; raises `InputError` where it cannot be drawn."""
    try:
        png = bytes(renderer()(svg_string=svg.decode(), zoom=ZOOM, background="white"))
    except ValueError as error:
        raise InputError(f"a picture cannot be drawn ({error}); make its run anew") from error
    text = KEYWORD + json.dumps(dict(notes)).encode("ascii")
    head = len(SIGNATURE) + 12 + 13  # the first chunk, which tells the size of the picture, has 13 bytes of data
    return png[:head] + _chunk(b"tEXt", text) + png[head:]


def notes(path: Path) -> dict[str, Any]:
    """The notes in a file, empty where it has none; raises `InputError` for a file that is no whole PNG."""
    try:
        with path.open("rb") as file:
            if path.stat().st_size > MOST_BYTES or file.read(len(SIGNATURE)) != SIGNATURE:
                raise InputError(f"{path} is no PNG file of at most {MOST_BYTES} bytes; give one that foreshape wrote")
            texts = [text for text in _texts(file) if text.startswith(KEYWORD)]
            found = json.loads(texts[0].removeprefix(KEYWORD)) if texts else {}
    except InputError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as a PNG file ({error}); give one that foreshape wrote") from error
    return found if isinstance(found, dict) else {}


def _texts(file: IO[bytes]) -> Iterator[bytes]:
    """The data of the text chunks; raises `ValueError` where the file is damaged."""
    kind = b""
    while kind != b"IEND":
        head = file.read(8)
        if len(head) < 8:
            raise ValueError("it ends too early")
        size, kind = struct.unpack(">I4s", head)
        if kind != b"tEXt":
            file.seek(size + 4, 1)
            continue
        if size > MOST_TEXT:
            raise ValueError(f"it has a text of {size} bytes, and {MOST_TEXT} are read at most")
        data = file.read(size)
        if head + data + file.read(4) != _chunk(kind, data):
            raise ValueError("a text in it is damaged")
        yield data


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
