"""What the files of all domains have in common: read with a limit, written whole or not at all, provenance as words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

from domains.base import DesignError

_PLAIN = "/:,@()[]{}'\"*!?|$"  # characters that stay readable in provenance; white space and ; = % never do


def read_bytes(path: Path, most: int, what: str) -> bytes:
    """What a file of one `what` holds; `DesignError` where it cannot be read or has more than `most` bytes."""
    try:
        if path.exists() and not path.is_file():
            raise DesignError(f"{path} cannot be read (not a regular file); give a file of one {what}")
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise DesignError(f"{path} cannot be read ({error.strerror}); give an existing file") from error
    if len(content) > most:
        raise DesignError(f"{path} is larger than {most} bytes; give a file of one {what}")
    return content


def read_text(path: Path, most: int, what: str) -> str:
    """The same as text in UTF-8; `DesignError` where it is none."""
    content = read_bytes(path, most, what)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DesignError(f"{path} has byte {content[error.start]:#04x} at {error.start}; give a text file") from error


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Another path, to write to; what is there in the end becomes `path`, and after an error nothing does."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write text in ASCII; the file appears whole or not at all."""
    with whole(path) as part:
        part.write_text(text, encoding="ascii")


def name(path: Path) -> str:
    """The stem of a file's name as a word of at most 16 letters, digits and _ . -, which every format takes."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", path.stem)[:16] or "design"


def pack(told: Mapping[str, str]) -> list[str]:
    """Provenance as words `key=value` without white space or semicolons, percent-encoded where it has to be."""
    return [f"{quote(key, safe='')}={quote(value, safe=_PLAIN)}" for key, value in told.items()]


def pack_lines(told: Mapping[str, str], width: int) -> list[str]:
    """Provenance as lines of at most `width` characters: words that end in a semicolon, continued where too long."""
    words = (f"{word};" for word in pack(told))
    return [word[i : i + width] for word in words for i in range(0, len(word), width)]


def unpack(words: Iterable[str]) -> dict[str, str]:
    """The inverse of `pack`; other words are left out."""
    pairs = (word.partition("=") for word in words)
    return {unquote(key): unquote(value) for key, equals, value in pairs if equals}


def unpack_lines(lines: Iterable[str]) -> dict[str, str]:
    """The inverse of `pack_lines`."""
    return unpack("".join(lines).split(";"))
