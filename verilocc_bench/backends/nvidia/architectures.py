"""What differs from one NVIDIA architecture to the next in cubins and machine code.

The rest is the same for all: the words of 128 bits, their control fields, the encodings of
the operations that several have, and the format of nvdisasm's life ranges (measured on
sm_80 and sm_90 with ptxas and nvdisasm 13.5). An operation that an architecture lacks never
comes out of its cubins, so the tables of operations and encodings have one row for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from verilocc_bench.errors import InputError
from verilocc_bench.targets import get_target
from verilocc_bench.targets.target import Target


def operations(text: str) -> frozenset[str]:
    """The names in a text."""
    return frozenset(text.split())


VARIABLE_LATENCY = operations(
    "ATOM ATOMG ATOMS B2R BAR BMOV BREV CCTL DADD DFMA DMMA DMUL DSETP F2F F2I FCHK FLO FRND HGMMA "
    "I2F IGMMA LD LDC LDG LDGSTS LDL LDS LDSM MATCH MOVM MUFU POPC QGMMA QSPC R2UR RED REDG "
    "REDAS REDUX S2R S2UR SHFL ST STAS STG STL STS STSM SYNCS "
    "UBLKCP UBLKPF UBLKRED UTMACCTL UTMALDG UTMAPF UTMAREDG UTMASTG"
)
"""The operations of variable latency, on one architecture or another."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The row of an architecture.

    `number` is its compute capability without the dot. `flags` are the e_flags that ptxas
    13 writes into a cubin. `fixed_latency` are the operations that have a fixed latency
    here and a variable one elsewhere. `distances` is the file of its table of distances, or
    None if nothing is mined yet; there the operations `alone` have classes of their own. With
    `prints_register_count` the count stands in the code section's header, too.
    `jump_offset` are the fields of a jump's offset, in bytes from the next instruction: the
    first bit in the word, the lowest bit of the offset there, and the width.
    """

    number: int
    flags: int
    fixed_latency: frozenset[str]
    distances: str | None
    alone: frozenset[str]
    jump_offset: tuple[tuple[int, int, int], ...]
    prints_register_count: bool

    @property
    def name(self) -> str:
        """Its name for ptxas (`sm_80`)."""
        return f"sm_{self.number}"

    @property
    def target(self) -> Target:
        """Its register files."""
        return get_target(self.name)


ARCHITECTURES: Mapping[str, Architecture] = {
    row.name: row
    for row in (
        Architecture(
            80,
            0x0A005004,
            frozenset(),
            "distances_sm_80.json",
            frozenset(),
            ((32, 0, 50),),
            prints_register_count=True,
        ),
        Architecture(
            89,
            0x06005904,
            frozenset(),
            None,
            frozenset(),
            ((32, 0, 50),),
            prints_register_count=True,
        ),
        Architecture(
            90,
            0x06005A04,
            # No barrier stands at R2UR in 89 of 89 kernels, unlike on sm_80, nor at the
            # operations in double precision in 365 of 365 places.
            operations("DADD DFMA DMUL DSETP R2UR"),
            "distances_sm_90.json",
            # One cycle behind USHF or UIADD3 a ULDC may not overwrite what they read: an H200
            # leaves other bits. Behind UMOV it may.
            operations("UBMSK UIADD3 UIMNMX UISETP ULEA ULOP3 UMOV UPLOP3 UPRMT USEL USGXT USHF"),
            ((16, 2, 8), (34, 10, 48)),
            prints_register_count=False,
        ),
    )
}


_FIRST, _LAST = [*ARCHITECTURES][:-1], [*ARCHITECTURES][-1]
KNOWN = f"{', '.join(_FIRST)} or {_LAST}"
"""Their names, for messages."""


def architecture_named(name: str, source: object = None) -> Architecture:
    """The row of that name. Raises InputError about `source` that lists the known ones."""
    row = ARCHITECTURES.get(name)
    if row is None:
        raise InputError(
            f"expected a cubin for {KNOWN}, this is one for {name}",
            source=None if source is None else str(source),
        )
    return row
