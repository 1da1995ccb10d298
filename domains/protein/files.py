"""Text files of one protein each: read with a limit, written whole or not at all, provenance packed into lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from domains.base import DesignError

MOST_BYTES = 1 << 24
"""No file of one chain is larger, even with its side chains, water and several models."""
_PLAIN = "/:,@()[]{}'\"*!?|$"  # characters that stay readable in provenance; white space and ; = % never do


def read(path: Path) -> str:
    """The text of a file; `DesignError` where it cannot be read, is too large, or is not text."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DesignError(f"{path} cannot be read ({error.strerror}); give an existing file") from error
    if len(content) > MOST_BYTES:
        raise DesignError(f"{path} is larger than {MOST_BYTES} bytes; give a file of one chain")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DesignError(f"{path} has byte {content[error.start]:#04x} at {error.start}; give a text file") from error


def write(path: Path, text: str) -> None:
    """Write text in ASCII; the file appears whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="ascii")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


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
