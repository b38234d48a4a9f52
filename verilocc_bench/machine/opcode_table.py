"""What is known of each vector and scalar opcode: its group, its number, its operands."""

from __future__ import annotations

from dataclasses import dataclass, field

from verilocc_bench.machine import fields as f
from verilocc_bench.machine.float_operations import DOT2_F16, FLOAT32_OPCODES, FUSED, FUSED_TO_F16
from verilocc_bench.machine.integer_operations import INTEGER_OPCODES
from verilocc_bench.machine.scalar_operations import SCALAR_32_OPCODES, SCALAR_64_OPCODES
from verilocc_bench.machine.wide_operations import FLOAT16_OPCODES, FLOAT64_OPCODES
from verilocc_bench.machine.wide_operations import FUSED as FUSED_WIDE

(
    EQUAL, DIFFERENT, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, FALSE, TRUE, ORDERED, UNORDERED,
    LESS_GREATER, NOT_GREATER_EQUAL, NOT_LESS_GREATER, NOT_GREATER, NOT_LESS_EQUAL, NOT_LESS,
    OF_CLASS,
) = range(17)  # fmt: skip
RELATION_BITS = 5
(TYPE_I32, TYPE_U32, TYPE_I64, TYPE_U64, TYPE_F32, TYPE_F64, TYPE_F16, TYPE_I16, TYPE_U16) = range(
    9
)
(
    ADD_CARRY_OUT, SUBTRACT_CARRY_OUT, SUBTRACT_REVERSED_CARRY_OUT, ADD_WITH_CARRY,
    SUBTRACT_WITH_BORROW, SUBTRACT_REVERSED_WITH_BORROW, DIVIDE_SCALE_32, DIVIDE_SCALE_64,
    WIDE_U64, WIDE_I64,
) = range(10)  # fmt: skip
(READ_LANE, READ_FIRST_LANE, WRITE_LANE, SWAP) = range(4)

_RELATIONS = {
    "i": {"f": FALSE, "lt": LESS, "eq": EQUAL, "le": LESS_EQUAL, "gt": GREATER, "ne": DIFFERENT,
          "ge": GREATER_EQUAL, "t": TRUE},
    "f": {"f": FALSE, "lt": LESS, "eq": EQUAL, "le": LESS_EQUAL, "gt": GREATER,
          "lg": LESS_GREATER, "ge": GREATER_EQUAL, "o": ORDERED, "u": UNORDERED,
          "nge": NOT_GREATER_EQUAL, "nlg": NOT_LESS_GREATER, "ngt": NOT_GREATER,
          "nle": NOT_LESS_EQUAL, "neq": DIFFERENT, "nlt": NOT_LESS, "tru": TRUE},
}  # fmt: skip
_TYPES = {
    "i32": (TYPE_I32, 1), "u32": (TYPE_U32, 1), "i64": (TYPE_I64, 2), "u64": (TYPE_U64, 2),
    "f32": (TYPE_F32, 1), "f64": (TYPE_F64, 2), "f16": (TYPE_F16, 1), "i16": (TYPE_I16, 1),
    "u16": (TYPE_U16, 1),
}  # fmt: skip
_TRANSCENDENTAL = ("v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_")


@dataclass(frozen=True, slots=True)
class Opcode:
    """`result` and `sources` are widths in registers; `constants` says how a constant of each
    source is read (see operand_text.constant_bits)."""

    group: int
    operation: int
    result: int
    sources: tuple[int, ...]
    constants: tuple[str, ...]
    flags: int = 0
    traits: int = 0
    accumulates: bool = False  # the destination is the last source, too
    number: int = 0  # where the sign is: see fields.NUMBER_SHIFT
    floats: bool = field(default=False)  # clamp, omod, abs and neg make sense


def _kind(width: int, name: str) -> str:
    if width == 2:
        return "f64" if "f64" in name else "b64"
    return "b16" if name.endswith(("_f16", "_i16", "_u16", "_b16")) else "b32"


def _plain() -> dict[str, Opcode]:
    found: dict[str, Opcode] = {}
    for table, group, number in (
        (INTEGER_OPCODES, f.INTEGER, 0), (FLOAT32_OPCODES, f.FLOAT_32, 0),
        (FLOAT64_OPCODES, f.FLOAT_64, 2), (FLOAT16_OPCODES, f.FLOAT_16, 1),
    ):  # fmt: skip
        for name, (operation, result, sources) in table.items():
            traits = f.IS_VALU
            if name.startswith(_TRANSCENDENTAL):
                traits |= f.IS_TRANSCENDENTAL
            if name.startswith("v_div_fmas"):
                traits |= f.IS_DIV_FMAS | f.READS_VCC
            if name == "v_fma_f64":
                traits |= f.IS_FMA_64
            if name.startswith("v_dot"):
                traits |= f.IS_DOT
            if name == "v_cvt_f32_f16":
                number_here = 1
            elif name == "v_cvt_f32_f64":
                number_here = 2
            elif name == "v_cvt_f64_f32":
                number_here = 0
            else:
                number_here = number
            kinds = tuple(_kind(width, name) for width in sources)
            if name.startswith("v_dot"):
                kinds = (*kinds[:2], "b32")  # what is added to
            found[name] = Opcode(
                group, operation, result, sources, kinds,
                traits=traits, number=number_here, floats=group != f.INTEGER,
            )  # fmt: skip
    return found


def _special_cases(plain: dict[str, Opcode]) -> dict[str, Opcode]:
    """Opcodes that are others in disguise: accumulating, packed, mixed, with constants inside."""
    found: dict[str, Opcode] = {}
    valu = f.IS_VALU
    one3 = ("b32", "b32", "b32")
    for name, group, operation, width, number, trait in (
        ("v_fmac_f32", f.FLOAT_32, FUSED, 1, 0, 0),
        ("v_fmac_f64", f.FLOAT_64, FUSED_WIDE, 2, 2, f.IS_FMA_64),
        ("v_dot2c_f32_f16", f.FLOAT_32, DOT2_F16, 1, 0, f.IS_DOT),
        ("v_fmac_f16", f.FLOAT_16, FUSED_WIDE, 1, 1, 0),
    ):
        found[name] = Opcode(
            group, operation, width, (width, width),
            (_kind(width, name), _kind(width, name)), traits=valu | trait,
            accumulates=True, number=number, floats=True,
        )  # fmt: skip
    for name in ("v_dot4c_i32_i8", "v_dot2c_i32_i16"):
        of = plain[name.replace("c_", "_")]
        found[name] = Opcode(
            of.group, of.operation, 1, (1, 1), ("b32", "b32"), traits=valu | f.IS_DOT,
            accumulates=True,
        )  # fmt: skip
    for name in ("v_fmamk_f32", "v_fmaak_f32"):
        found[name] = Opcode(f.FLOAT_32, FUSED, 1, (1, 1, 1), one3, traits=valu, floats=True)
    for name, operation, flags in (
        ("mix_f32", FUSED, 0), ("mixlo_f16", FUSED_TO_F16, f.KEEP_HIGH_HALF),
        ("mixhi_f16", FUSED_TO_F16, f.TO_HIGH_HALF),
    ):  # fmt: skip
        for kind in ("fma", "mad"):
            found[f"v_{kind}_{name}"] = Opcode(
                f.FLOAT_32, operation, 1, (1, 1, 1), one3, flags=flags, traits=valu, floats=True
            )
    for name, of_name in (
        ("v_pk_fma_f32", "v_fma_f32"), ("v_pk_mul_f32", "v_mul_f32"), ("v_pk_add_f32", "v_add_f32"),
        ("v_pk_mov_b32", "v_mov_b32"),
    ):  # fmt: skip
        of = plain[of_name]
        count = 2 if name == "v_pk_mov_b32" else len(of.sources)
        found[name] = Opcode(
            of.group, of.operation, 2, (2,) * count, ("b32",) * count, flags=f.PACKED_32,
            traits=valu, floats=of.floats,
        )  # fmt: skip
    for name, of_name in (
        ("v_pk_fma_f16", "v_fma_f16"), ("v_pk_mul_f16", "v_mul_f16"), ("v_pk_add_f16", "v_add_f16"),
        ("v_pk_min_f16", "v_min_f16"), ("v_pk_max_f16", "v_max_f16"),
        ("v_pk_mad_i16", "v_mad_i16"), ("v_pk_mad_u16", "v_mad_u16"),
        ("v_pk_mul_lo_u16", "v_mul_lo_u16"), ("v_pk_add_i16", "v_add_u16"),
        ("v_pk_add_u16", "v_add_u16"), ("v_pk_sub_i16", "v_sub_u16"),
        ("v_pk_sub_u16", "v_sub_u16"), ("v_pk_lshlrev_b16", "v_lshlrev_b16"),
        ("v_pk_lshrrev_b16", "v_lshrrev_b16"), ("v_pk_ashrrev_i16", "v_ashrrev_i16"),
        ("v_pk_max_i16", "v_max_i16"), ("v_pk_min_i16", "v_min_i16"),
        ("v_pk_max_u16", "v_max_u16"), ("v_pk_min_u16", "v_min_u16"),
    ):  # fmt: skip
        of = plain[of_name]
        found[name] = Opcode(
            of.group, of.operation, 1, of.sources,
            tuple("b16" if name.endswith("_f16") else "b32" for _ in of.sources),
            flags=f.PACKED_16, traits=valu, number=1, floats=of.floats,
        )  # fmt: skip
    return found


def _comparisons() -> dict[str, Opcode]:
    found: dict[str, Opcode] = {}
    for type_name, (number, width) in _TYPES.items():
        relations = _RELATIONS["f" if type_name.startswith("f") else "i"]
        sign = {TYPE_F16: 1, TYPE_F64: 2}.get(number, 0)
        constant = {1: "b16" if type_name.endswith("16") else "b32",
                    2: "f64" if type_name == "f64" else "b64"}[width]  # fmt: skip
        for relation_name, relation in relations.items():
            for kind, flags in (("cmp", 0), ("cmpx", f.WRITES_EXEC)):
                found[f"v_{kind}_{relation_name}_{type_name}"] = Opcode(
                    f.COMPARE, number << RELATION_BITS | relation, 2, (width, width),
                    (constant, constant), flags=flags, traits=f.IS_VALU, number=sign,
                    floats=type_name.startswith("f"),
                )  # fmt: skip
    found["v_cmp_class_f32"] = Opcode(
        f.COMPARE, TYPE_F32 << RELATION_BITS | OF_CLASS, 2, (1, 1), ("b32", "b32"),
        traits=f.IS_VALU, floats=True,
    )  # fmt: skip
    return found


def _carries() -> dict[str, Opcode]:
    found: dict[str, Opcode] = {}
    for name, operation, count in (
        ("v_add_co_u32", ADD_CARRY_OUT, 2), ("v_sub_co_u32", SUBTRACT_CARRY_OUT, 2),
        ("v_subrev_co_u32", SUBTRACT_REVERSED_CARRY_OUT, 2),
        ("v_addc_co_u32", ADD_WITH_CARRY, 3), ("v_subb_co_u32", SUBTRACT_WITH_BORROW, 3),
        ("v_subbrev_co_u32", SUBTRACT_REVERSED_WITH_BORROW, 3),
    ):  # fmt: skip
        widths = (1, 1, 2)[:count]
        found[name] = Opcode(
            f.CARRY, operation, 1, widths, ("b32", "b32", "b64")[:count], traits=f.IS_VALU
        )
    found["v_div_scale_f32"] = Opcode(
        f.CARRY, DIVIDE_SCALE_32, 1, (1, 1, 1), ("b32",) * 3, traits=f.IS_VALU, floats=True
    )
    found["v_div_scale_f64"] = Opcode(
        f.CARRY, DIVIDE_SCALE_64, 2, (2, 2, 2), ("f64",) * 3, traits=f.IS_VALU, number=2,
        floats=True,
    )  # fmt: skip
    for name, operation in (("v_mad_u64_u32", WIDE_U64), ("v_mad_i64_i32", WIDE_I64)):
        found[name] = Opcode(
            f.CARRY, operation, 2, (1, 1, 2), ("b32", "b32", "b64"), traits=f.IS_VALU
        )
    return found


def _across_lanes() -> dict[str, Opcode]:
    valu = f.IS_VALU
    return {
        "v_readlane_b32": Opcode(
            f.ACROSS_LANES, READ_LANE, 1, (1, 1), ("b32", "b32"),
            traits=valu | f.IS_LANE_ACCESS | f.IS_READ_LANE,
        ),
        "v_readfirstlane_b32": Opcode(
            f.ACROSS_LANES, READ_FIRST_LANE, 1, (1,), ("b32",), traits=valu | f.IS_READ_LANE
        ),
        "v_writelane_b32": Opcode(
            f.ACROSS_LANES, WRITE_LANE, 1, (1, 1), ("b32", "b32"), traits=valu | f.IS_LANE_ACCESS
        ),
        "v_swap_b32": Opcode(f.ACROSS_LANES, SWAP, 1, (1,), ("b32",), traits=valu),
        "v_cndmask_b32": Opcode(
            f.SELECT, 0, 1, (1, 1, 2), ("b32", "b32", "b64"), traits=valu, floats=True
        ),
    }  # fmt: skip


def _scalars() -> dict[str, Opcode]:
    found: dict[str, Opcode] = {}
    for table, group in ((SCALAR_32_OPCODES, f.SCALAR_32), (SCALAR_64_OPCODES, f.SCALAR_64)):
        for name, (operation, result, sources) in table.items():
            constants = tuple("b64" if width == 2 else "b32" for width in sources)
            found[name] = Opcode(group, operation, result, sources, constants, traits=f.IS_SALU)
    return found


_PLAIN = _plain()
OPCODES = {
    **_PLAIN, **_special_cases(_PLAIN), **_comparisons(), **_carries(), **_across_lanes(),
    **_scalars(),
}  # fmt: skip
"""Every opcode except memory, control and matrices, by its name without encoding."""
