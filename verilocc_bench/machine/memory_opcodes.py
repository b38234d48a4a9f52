"""Memory instructions: how many bytes each lane moves, and how they are treated."""

from __future__ import annotations

from dataclasses import dataclass

from verilocc_bench.machine.fields import ATOMIC, DATA_HIGH, RETURNS, SIGNED, STORES, TWO_PLACES

(
    PLAIN, SWAP, COMPARE_SWAP, ADD, SUBTRACT, MIN_SIGNED, MIN_UNSIGNED, MAX_SIGNED, MAX_UNSIGNED,
    AND, OR, XOR, INCREMENT, DECREMENT, ADD_F32, PACKED_ADD_F16, ADD_F64, MIN_F64, MAX_F64,
    PACKED_ADD_BF16, MIN_F32, MAX_F32, REVERSE_SUBTRACT,
) = range(23)  # fmt: skip
ATOMICS = {
    "swap": SWAP, "cmpswap": COMPARE_SWAP, "add": ADD, "sub": SUBTRACT, "smin": MIN_SIGNED,
    "umin": MIN_UNSIGNED, "smax": MAX_SIGNED, "umax": MAX_UNSIGNED, "and": AND, "or": OR,
    "xor": XOR, "inc": INCREMENT, "dec": DECREMENT,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemoryOpcode:
    """`operation` is PLAIN or an atomic; `size` the bytes of one place in memory; `registers`
    how many hold the data; `flags` bits of fields."""

    operation: int
    size: int
    registers: int
    flags: int
    result_registers: int = 0


def _vector() -> dict[str, MemoryOpcode]:
    # No loads of half a register (D16): with SRAM ECC, as here, they do not keep the other half.
    found: dict[str, MemoryOpcode] = {}
    for name, size, flags in (
        ("ubyte", 1, 0), ("sbyte", 1, SIGNED), ("ushort", 2, 0), ("sshort", 2, SIGNED),
        ("dword", 4, 0), ("dwordx2", 8, 0), ("dwordx3", 12, 0), ("dwordx4", 16, 0),
    ):  # fmt: skip
        found[f"load_{name}"] = MemoryOpcode(PLAIN, size, max(1, size // 4), flags)
    for name, size, flags in (
        ("byte", 1, 0), ("short", 2, 0), ("byte_d16_hi", 1, DATA_HIGH),
        ("short_d16_hi", 2, DATA_HIGH), ("dword", 4, 0), ("dwordx2", 8, 0), ("dwordx3", 12, 0),
        ("dwordx4", 16, 0),
    ):  # fmt: skip
        found[f"store_{name}"] = MemoryOpcode(PLAIN, size, max(1, size // 4), flags | STORES)
    for name, operation in ATOMICS.items():
        for suffix, registers in (("", 1), ("_x2", 2)):
            data = registers * (2 if operation == COMPARE_SWAP else 1)
            found[f"atomic_{name}{suffix}"] = MemoryOpcode(
                operation, 4 * registers, data, ATOMIC, registers
            )
    for name, operation, registers in (
        ("add_f32", ADD_F32, 1), ("pk_add_f16", PACKED_ADD_F16, 1), ("add_f64", ADD_F64, 2),
        ("min_f64", MIN_F64, 2), ("max_f64", MAX_F64, 2), ("pk_add_bf16", PACKED_ADD_BF16, 1),
    ):  # fmt: skip
        found[f"atomic_{name}"] = MemoryOpcode(
            operation, 4 * registers, registers, ATOMIC, registers
        )
    return found


def _lds() -> dict[str, MemoryOpcode]:
    found: dict[str, MemoryOpcode] = {}
    for name, size, flags in (
        ("b32", 4, 0), ("b64", 8, 0), ("b96", 12, 0), ("b128", 16, 0), ("u8", 1, 0),
        ("i8", 1, SIGNED), ("u16", 2, 0), ("i16", 2, SIGNED),
    ):  # fmt: skip
        found[f"ds_read_{name}"] = MemoryOpcode(PLAIN, size, max(1, size // 4), flags)
    for name, size, flags in (
        ("b8", 1, 0), ("b16", 2, 0), ("b32", 4, 0), ("b64", 8, 0), ("b96", 12, 0),
        ("b128", 16, 0), ("b8_d16_hi", 1, DATA_HIGH), ("b16_d16_hi", 2, DATA_HIGH),
    ):  # fmt: skip
        found[f"ds_write_{name}"] = MemoryOpcode(PLAIN, size, max(1, size // 4), flags | STORES)
    for stride in ("", "st64"):
        for size in (4, 8):
            name = f"2{stride}_b{8 * size}"
            found[f"ds_read{name}"] = MemoryOpcode(PLAIN, size, size // 4, TWO_PLACES)
            found[f"ds_write{name}"] = MemoryOpcode(PLAIN, size, size // 4, TWO_PLACES | STORES)
    for name, operation, size in (
        ("add_u32", ADD, 4), ("sub_u32", SUBTRACT, 4), ("rsub_u32", REVERSE_SUBTRACT, 4),
        ("inc_u32", INCREMENT, 4), ("dec_u32", DECREMENT, 4), ("min_i32", MIN_SIGNED, 4),
        ("max_i32", MAX_SIGNED, 4), ("min_u32", MIN_UNSIGNED, 4), ("max_u32", MAX_UNSIGNED, 4),
        ("and_b32", AND, 4), ("or_b32", OR, 4), ("xor_b32", XOR, 4), ("add_f32", ADD_F32, 4),
        ("min_f32", MIN_F32, 4), ("max_f32", MAX_F32, 4), ("add_u64", ADD, 8),
        ("add_f64", ADD_F64, 8),
    ):  # fmt: skip
        kind = MemoryOpcode(operation, size, size // 4, ATOMIC, size // 4)
        found[f"ds_{name}"] = kind
        base, _, kind_name = name.rpartition("_")
        found[f"ds_{base}_rtn_{kind_name}"] = MemoryOpcode(
            operation, size, size // 4, ATOMIC | RETURNS, size // 4
        )
    found["ds_wrxchg_rtn_b32"] = MemoryOpcode(SWAP, 4, 1, ATOMIC | RETURNS, 1)
    return found


VECTOR_OPCODES = _vector()
"""By the name without what is before it (`buffer_`, `global_`, `flat_`, `scratch_`)."""

LDS_OPCODES = _lds()
SCALAR_LOAD_WIDTHS = {
    "dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16,
}  # fmt: skip
"""The registers that s_load_NAME and s_buffer_load_NAME write."""
