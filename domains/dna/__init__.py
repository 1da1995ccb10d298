"""Promoters: the bases just before a transcription start, whose last one is at position -1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from data import corpora
from data.space import Categorical, Space, State
from domains.base import DesignError, Violation
from domains.dna import baselines, draw, files, letters, lock, metrics, rules

CORPUS = "fly_promoters_512.npz"
SHORTEST, LONGEST = 128, 512
_CORE = -45


class Dna:
    """Promoters of one length, as upper-case strings; finished ones have only A, C, G, T."""

    def __init__(self, length: int, forbidden_sites: Sequence[str], longest_run: int) -> None:
        self.length = length
        self.space = Space(length, {"base": Categorical(len(letters.LETTERS))})
        self.suffixes: tuple[str, ...] = (".fasta", ".gb")
        self.metric_names = metrics.NAMES
        self.forbidden = rules.sites(forbidden_sites)
        self.longest_run = longest_run

    def corpus(self, split: str) -> list[str]:
        """Drosophila promoters of the split, `train` or `val` (they are from different chromosomes)."""
        if split not in ("train", "val"):
            raise DesignError(f"no split {split!r}; there are train and val; choose one")
        found, splits = self._corpus
        return letters.text(found[splits == split])

    def reference(self, path: Path) -> list[str]:
        """Every sequence of a file in the corpus's format, cut to the last `length` bases."""
        try:
            return letters.text(self._unpack(corpora.read_npz(path, {"bits": ("u", 2), "shape": ("iu", 1)}), path))
        except corpora.CorpusError as error:
            raise DesignError(str(error)) from error

    def encode(self, designs: Sequence[str]) -> State:
        """One-hot bases (n, length, 4), every site in use; `DesignError` on another length or letter."""
        bases = letters.one_hot(letters.definite_codes(designs, self.length))
        return {"base": bases, "mask": torch.ones(bases.shape[:2], dtype=torch.bool)}

    def decode(self, state: State) -> list[str]:
        """The likeliest base of each site; N, which `violations` reports, where the site is not in use."""
        self.space.check(state)
        likeliest = state["base"].argmax(-1).masked_fill(~state["mask"], letters.OTHER)
        return letters.text(likeliest.cpu().numpy().astype(np.uint8))

    def locked(self, text: str = "", at: Sequence[int] = ()) -> State:
        """The bases of `text` from the positions `at` on; see `lock.state`."""
        return lock.state(text, at, self.length)

    def violations(self, design: str) -> list[Violation]:
        """Letters outside ACGT, long homopolymers, forbidden restriction sites on either strand, another length."""
        broken = rules.violations(design, self.forbidden, self.longest_run)
        if len(design) != self.length:
            message = f"{len(design)} letters: this domain has {self.length}; cut it to them"
            broken.append(Violation("length", 0, len(design), message))
        return broken

    def metrics(self, designs: Sequence[str], reference: Sequence[str]) -> dict[str, float]:
        """Distances to `reference`, and how much was copied from the corpus's train split; see `metrics.py`."""
        if not designs or not reference:
            raise DesignError(f"{len(designs)} designs against {len(reference)}; metrics want one or more of each")
        made = self._codes(designs)
        return metrics.closeness(made, self._codes(reference)) | metrics.copying(made, self._train)

    def baselines(self, train: Sequence[str], n: int, seed: int) -> Mapping[str, list[str]]:
        """`n` sequences each of equal bases, of each site's own frequencies, and of a third-order Markov chain."""
        known = self._codes(train)
        models = {"uniform": baselines.uniform, "independent": baselines.independent, "markov3": baselines.markov}
        return {name: letters.text(make(known, n, np.random.default_rng(seed))) for name, make in models.items()}

    def read(self, path: Path) -> str:
        """The sequence in a FASTA or GenBank file of one record; other IUPAC letters are kept."""
        return files.read(path, self.length)

    def write(self, design: str, path: Path, provenance: Mapping[str, str]) -> None:
        """Write FASTA (.fasta .fa) or GenBank (.gb .gbk, with the core motifs as features)."""
        files.write(design, path, provenance, self.length)

    def provenance(self, path: Path) -> Mapping[str, str]:
        """What `write` was told about the design in a file."""
        return files.provenance(path)

    def draw(self, design: str) -> bytes:
        """A track as SVG: core motifs on both strands, share of G and C, broken rules."""
        return draw.track(design, self.violations(design))

    def overview(self, designs: Sequence[str]) -> Mapping[str, bytes]:
        """The sequence logo of the bases where core motifs are."""
        return {f"Sequence logo, {_CORE} to -1": draw.logo(designs, _CORE, 0)}

    def _codes(self, designs: Sequence[str]) -> np.ndarray:
        return letters.definite_codes(designs, self.length)

    @cached_property
    def _corpus(self) -> tuple[np.ndarray, np.ndarray]:
        arrays = corpora.load(CORPUS)
        return self._unpack(arrays, Path(CORPUS)), arrays["split"]

    @cached_property
    def _train(self) -> np.ndarray:
        found, splits = self._corpus
        train: np.ndarray = found[splits == "train"]
        return train

    def _unpack(self, arrays: Mapping[str, np.ndarray], path: Path) -> np.ndarray:
        """Codes (n, length) of the last bases, from two bits a base."""
        bits, (n, width) = arrays["bits"], _shape(arrays, path)
        if width < self.length:
            raise DesignError(
                f"{path} has sequences of {width} bases; at least {self.length} are wanted; "
                f"build the domain with length={width} or less"
            )
        pairs = np.unpackbits(bits, axis=1).reshape(n, -1, 2)[:, width - self.length : width]
        found: np.ndarray = 2 * pairs[..., 0] + pairs[..., 1]
        return found


def _shape(arrays: Mapping[str, np.ndarray], path: Path) -> tuple[int, int]:
    """Number and width of the sequences, when `bits` has the size they need."""
    bits, shape = arrays["bits"], arrays["shape"].tolist()
    if len(shape) != 2 or shape[0] < 1 or bits.dtype != np.uint8 or bits.shape != (shape[0], -(-shape[1] // 4)):
        raise DesignError(
            f"{path}: bits is {bits.dtype} {bits.shape} for shape {shape}; it must be uint8 (n, width / 4), n > 0, "
            f"for shape [n, width]; pack the sequences again"
        )
    return shape[0], shape[1]


def build(
    length: int = 256, forbidden_sites: Sequence[str] = rules.FORBIDDEN, longest_run: int = rules.LONGEST_RUN
) -> Dna:
    """The domain of promoters of `length` bases; `forbidden_sites` are enzyme names or IUPAC sequences."""
    if not SHORTEST <= length <= LONGEST:
        raise DesignError(f"length={length}; promoters have {SHORTEST} to {LONGEST} bases; choose one in between")
    if not 1 <= longest_run <= LONGEST:
        raise DesignError(
            f"longest_run={longest_run}; it is from 1 to {LONGEST} bases; choose e.g. {rules.LONGEST_RUN}"
        )
    return Dna(length, forbidden_sites, longest_run)
