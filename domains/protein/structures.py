"""Backbones as PDB and mmCIF files, through Biopython, with author numbers, insertion codes and gaps as they are.

Of a file only the first model is read and, of alternate locations, the one with the highest occupancy. Residues other
than the 20 (selenomethionine and the like) are X where they are bonded to the chain; ligands, water, nucleic acids and
side chains are left out. A missing O is put where the peptide plane has it. A blank chain id is read as A.

A .pdb file has one column for the chain and four for numbers. A chain that they do not hold is A there, its residues
count from 1, and remarks tell which ids they stand for; `read` gives those back.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from Bio.PDB import MMCIFParser, PDBParser
from Bio.PDB.Chain import Chain
from Bio.PDB.MMCIF2Dict import MMCIF2Dict
from Bio.PDB.mmcifio import MMCIFIO
from Bio.PDB.PDBIO import PDBIO
from Bio.PDB.Residue import Residue
from Bio.PDB.Structure import Structure
from Bio.PDB.StructureBuilder import StructureBuilder

from domains import files
from domains.base import DesignError
from domains.protein import geometry
from domains.protein.residues import ATOMS, MOST_BYTES, NAMES, NUMBER, UNKNOWN, O, Protein

SUFFIXES = (".pdb", ".cif")
MOST_RESIDUES = 9999
_FRAME = ATOMS[:3]
_LONGEST_ID = 4
_BONDED = 2.0
"""A residue that is not one of the 20 belongs to the chain when C and N of it and a neighbour are this close."""
_LETTERS = {name: letter for letter, name in NAMES.items()}
_REMARK = "REMARK 999 FORESHAPE "
_AUTHOR = "REMARK 999 AUTHOR "
"""Begins the lines with the author's chain and numbers, `1=10001;`, where the columns of a .pdb file hold others."""
_STAND_IN = "A"
_CATEGORY = "_foreshape.provenance"
_PDB_WIDTH = 80
_PDB_COORDINATES = (-999.999, 9999.999)
_PDB_NUMBERS = (-999, 9999)


def read(path: Path) -> Protein:
    """The only protein chain in a file; `DesignError` names the residue that lacks an atom, or the broken line."""
    kind, text = _suffix(path), files.read_text(path, MOST_BYTES, "structure")
    chains = {chain.id: found for chain in _parsed(path, kind, text) if (found := _residues(chain, path, text))}
    if len(chains) != 1:
        raise DesignError(
            f"{path} has {len(chains)} protein chains{': ' if chains else ''}{', '.join(chains):.60}; "
            f"one is read; give a file of one chain"
        )
    ((chain, found),) = chains.items()
    return _protein(chain, found, path)


def model(path: Path) -> Iterable[Chain]:
    """The chains of the first model in a PDB or mmCIF file; `DesignError` for any other file."""
    return _parsed(path, _suffix(path), files.read_text(path, MOST_BYTES, "structure"))


def _parsed(path: Path, kind: str, text: str) -> Iterable[Chain]:
    parser = MMCIFParser(QUIET=True) if kind == ".cif" else PDBParser(QUIET=True, PERMISSIVE=False)
    try:
        found: Iterable[Chain] = next(iter(parser.get_structure("file", io.StringIO(text))), ())
    except Exception as error:  # Biopython's parsers raise whatever their internals raise on a broken file
        why = textwrap.shorten(f"{type(error).__name__}: {error}", 120)
        raise DesignError(f"{path} cannot be read as {kind} ({why}); export it again") from error
    author = _remarks(text, _AUTHOR) if kind == ".pdb" else {}
    for chain in [chain for chain in found if chain.id == _STAND_IN] if author else ():
        _rename(chain, author, path)
    return found


def _rename(chain: Chain, author: Mapping[str, str], path: Path) -> None:
    """Give a chain of stand-ins and its residues the author's ids."""
    residues = list(chain)
    ids = [(residue.id[0], *_split(author.get(_number(residue), _number(residue)))) for residue in residues]
    if len(set(ids)) != len(ids):
        raise DesignError(f"{path}: the lines {_AUTHOR.strip()} give one number to two residues; remove those lines")
    for i, residue in enumerate(residues):  # out of the way, for no two may have one id
        residue.id = ("_", i, " ")
    for residue, (kind, value, insertion) in zip(residues, ids, strict=True):
        residue.id = (kind, value, insertion or " ")
    chain.id = author.get("chain", chain.id)


def provenance(path: Path) -> dict[str, str]:
    """What `write` was told about the design in a file; empty for a file that came from elsewhere."""
    kind, text = _suffix(path), files.read_text(path, MOST_BYTES, "chain")
    if kind == ".pdb":
        return _remarks(text, _REMARK)
    try:
        packed = MMCIF2Dict(io.StringIO(text)).get(_CATEGORY, [""])
    except Exception as error:  # as in `read`
        raise DesignError(f"{path} cannot be read as .cif ({error!s:.100}); export it again") from error
    return files.unpack_lines(line.strip() for line in packed[0].splitlines())


def write(design: Protein, path: Path, told: Mapping[str, str]) -> None:
    """Write one chain in the format of the suffix; `DesignError`, and no file, for what that cannot hold."""
    kind = _suffix(path)
    _check(design)
    text = _pdb(design, told) if kind == ".pdb" else _mmcif(design, told, files.name(path))
    files.write_text(path, text)


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DesignError(
            f"{path} ends in {path.suffix!r}; a file of a protein backbone ends in {' or '.join(SUFFIXES)}; "
            f"rename or convert it"
        )
    return suffix


def _remarks(text: str, prefix: str) -> dict[str, str]:
    """What the remarks of a PDB file with this prefix say."""
    lines = (line for line in text.splitlines() if line.startswith(prefix))
    return files.unpack_lines(line[len(prefix) :].rstrip() for line in lines)


def _residues(chain: Chain, path: Path, text: str) -> list[Residue]:
    """The residues of a chain that are protein, in the file's order."""
    kept = [residue for residue in chain if _is_amino_acid(residue, chain, path, text)]
    if not any(residue.id[0] == " " for residue in kept):
        return []
    bonded = _bonded(kept)
    either = np.concatenate([bonded, [False]]) | np.concatenate([[False], bonded])
    return [residue for residue, joined in zip(kept, either.tolist(), strict=True) if joined or residue.id[0] == " "]


def _bonded(some: list[Residue]) -> np.ndarray:
    """(n - 1,) whether each residue and the next are joined by a peptide bond."""
    ends = [np.array([residue[atom].coord for residue in some], dtype=np.float64) for atom in ("N", "C")]
    found: np.ndarray = np.linalg.norm(ends[0][1:] - ends[1][:-1], axis=-1) < _BONDED
    return found


def _is_amino_acid(residue: Residue, chain: Chain, path: Path, text: str) -> bool:
    missing = [atom for atom in _FRAME if atom not in residue]
    if missing and residue.id[0] == " " and ("CA" in residue or residue.get_resname() in _LETTERS):
        where = _line(next(iter(residue)).serial_number, text)
        raise DesignError(
            f"{path}{where}: residue {residue.get_resname()} {chain.id}:{_number(residue)} lacks "
            f"{', '.join(missing)}; a backbone has {', '.join(_FRAME)} in each; add them or leave it out"
        )
    return not missing


def _line(serial: int, text: str) -> str:
    """Where in a file the atom with this serial number is; empty where that cannot be told."""
    wanted = re.compile(rf"(ATOM|HETATM) *{serial}\b")
    lines = (number for number, line in enumerate(text.splitlines(), 1) if wanted.match(line))
    return next((f", line {number}" for number in lines), "")


def _number(residue: Residue) -> str:
    return f"{residue.id[1]}{residue.id[2].strip()}"


def _protein(chain: str, found: list[Residue], path: Path) -> Protein:
    names = [residue.get_resname() if residue.id[0] == " " else "" for residue in found]
    letters = "".join(_LETTERS.get(name, UNKNOWN) for name in names)
    try:
        numbers = tuple(_number(residue) for residue in found)
        return Protein(letters, _backbone(found), chain.strip() or _STAND_IN, numbers)
    except DesignError as error:
        raise DesignError(f"{path}: {error}") from error


def _backbone(found: list[Residue]) -> np.ndarray:
    """Atoms N, CA, C, O (n, 4, 3); an O that is missing lies in the peptide plane."""
    frames = np.array([[residue[atom].coord for atom in _FRAME] for residue in found], dtype=np.float64)
    breaks = np.flatnonzero(~_bonded(found)) + 1
    backbone = geometry.with_oxygens(frames, np.diff(np.concatenate([[0], breaks, [len(found)]])))
    for atoms, residue in zip(backbone, found, strict=True):
        if "O" in residue:
            atoms[O] = residue["O"].coord
    return backbone


def _check(design: Protein) -> None:
    if not re.fullmatch(rf"[A-Za-z0-9]{{1,{_LONGEST_ID}}}", design.chain):
        raise DesignError(f"chain {design.chain!r:.40}; it has 1 to {_LONGEST_ID} letters or digits; rename the chain")
    if not 1 <= len(design) <= MOST_RESIDUES:
        raise DesignError(f"{len(design)} residues; a file holds 1 to {MOST_RESIDUES}; cut the chain")
    strange = [letter for letter in design.letters if letter not in NAMES]
    if strange:
        raise DesignError(f"letter {strange[0]!r}; a residue is one of {''.join(NAMES)}; X stands for any other")
    twice = len(design.numbers) - len(set(design.numbers))
    if twice:
        raise DesignError(f"{twice} residue numbers occur twice; each residue has its own; number them again")
    design.atoms()


def _check_columns(design: Protein) -> None:
    least, most = _PDB_COORDINATES
    far = np.flatnonzero(((design.atoms() < least) | (design.atoms() > most)).any((1, 2)))
    if len(far):
        raise DesignError(
            f"residue {design.numbers[far[0]]} is outside {least} to {most} A, which a .pdb file holds; "
            f"move the chain to the origin, or write .cif"
        )


def _split(number: str) -> tuple[int, str]:
    """Number and insertion code; `DesignError` for what is none."""
    match = NUMBER.fullmatch(number)
    if not match:
        raise DesignError(f"residue number {number!r:.40}; it is a whole number and at most a letter, as 52A")
    return int(match[1]), match[2]


def _in_columns(design: Protein) -> tuple[Protein, dict[str, str]]:
    """The chain with ids that a .pdb file has columns for, and what they stand for where they are not its own."""
    least, most = _PDB_NUMBERS
    if len(design.chain) == 1 and all(least <= _split(number)[0] <= most for number in design.numbers):
        return design, {}
    stand_in = Protein(design.letters, design.atoms(), _STAND_IN)
    return stand_in, {"chain": design.chain} | dict(zip(stand_in.numbers, design.numbers, strict=True))


def _pdb(design: Protein, told: Mapping[str, str]) -> str:
    """Some programs refuse a file without HEADER and CRYST1 (a unit cube: no crystal), or UNK without SEQRES."""
    _check_columns(design)
    design, author = _in_columns(design)
    remarks = [_REMARK + line for line in files.pack_lines(told, _PDB_WIDTH - len(_REMARK))]
    remarks += [_AUTHOR + line for line in files.pack_lines(author, _PDB_WIDTH - len(_AUTHOR))]
    crystal = f"CRYST1{1:9.3f}{1:9.3f}{1:9.3f}{90:7.2f}{90:7.2f}{90:7.2f} P 1{'1':>13}"
    head = ["HEADER    PROTEIN", *remarks, *_seqres(design), crystal]
    writer, atoms = PDBIO(), io.StringIO()
    writer.set_structure(_structure(design))
    writer.save(atoms)
    return "\n".join([*(line.ljust(_PDB_WIDTH) for line in head), atoms.getvalue()])


def _seqres(design: Protein) -> Iterator[str]:
    """Names of the residues, 13 a line."""
    names = [NAMES[letter] for letter in design.letters]
    for row, start in enumerate(range(0, len(names), 13), 1):
        yield f"SEQRES{row:4d} {design.chain}{len(names):5d}  {' '.join(names[start : start + 13])}"


def _structure(design: Protein) -> Structure:
    builder = StructureBuilder()
    builder.init_structure("design")
    builder.init_model(0)
    builder.init_chain(design.chain)
    builder.init_seg(" ")
    for letter, number, places in zip(design.letters, design.numbers, design.atoms(), strict=True):
        value, insertion = _split(number)
        builder.init_residue(NAMES[letter], " ", value, insertion or " ")
        for atom, place in zip(ATOMS, places, strict=True):
            builder.init_atom(atom, place, 0.0, 1.0, " ", f" {atom:<3}", element=atom[0])
    structure: Structure = builder.get_structure()
    return structure


def _mmcif(design: Protein, told: Mapping[str, str], name: str) -> str:
    table: dict[str, str | list[str]] = {
        "data_": name,
        "_entry.id": name,
        "_entity.id": "1",
        "_entity.type": "polymer",
        "_entity_poly.entity_id": "1",
        "_entity_poly.type": "polypeptide(L)",
        "_struct_asym.id": "A",
        "_struct_asym.entity_id": "1",
    }
    if told:
        # Each line begins with a space: a semicolon at its beginning would end the text.
        table[_CATEGORY] = "\n ".join(["", *files.pack_lines(told, _PDB_WIDTH)])
    for category, rows in (("pdbx_poly_seq_scheme", _scheme(design)), ("atom_site", _atom_sites(design))):
        columns = list(rows)
        table |= {f"_{category}.{key}": [row[key] for row in columns] for key in columns[0]}
    writer, text = MMCIFIO(), io.StringIO()
    writer.set_dict(table)
    writer.save(text)
    return text.getvalue()


def _scheme(design: Protein) -> Iterator[dict[str, str]]:
    """One row a residue: label ids count from 1 and are A, auth ids are the author's."""
    for i, (letter, number) in enumerate(zip(design.letters, design.numbers, strict=True)):
        value, insertion = _split(number)
        yield {
            "asym_id": "A",
            "entity_id": "1",
            "seq_id": str(i + 1),
            "mon_id": NAMES[letter],
            "ndb_seq_num": str(i + 1),
            "pdb_seq_num": str(value),
            "auth_seq_num": str(value),
            "pdb_mon_id": NAMES[letter],
            "auth_mon_id": NAMES[letter],
            "pdb_strand_id": design.chain,
            "pdb_ins_code": insertion or ".",
            "hetero": "n",
        }


def _atom_sites(design: Protein) -> Iterator[dict[str, str]]:
    """One row an atom, with the ids of `_scheme`."""
    for i, (letter, number, places) in enumerate(zip(design.letters, design.numbers, design.atoms(), strict=True)):
        value, insertion = _split(number)
        for j, (atom, place) in enumerate(zip(ATOMS, places, strict=True)):
            yield {
                "group_PDB": "ATOM",
                "id": str(len(ATOMS) * i + j + 1),
                "type_symbol": atom[0],
                "label_atom_id": atom,
                "label_alt_id": ".",
                "label_comp_id": NAMES[letter],
                "label_asym_id": "A",
                "label_entity_id": "1",
                "label_seq_id": str(i + 1),
                "pdbx_PDB_ins_code": insertion or "?",
                **{f"Cartn_{axis}": f"{number:.3f}" for axis, number in zip("xyz", place, strict=True)},
                "occupancy": "1.00",
                "B_iso_or_equiv": "0.00",
                "auth_seq_id": str(value),
                "auth_comp_id": NAMES[letter],
                "auth_asym_id": design.chain,
                "auth_atom_id": atom,
                "pdbx_PDB_model_num": "1",
            }
