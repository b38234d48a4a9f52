"""Targets against LLVM: its register tables, and what llc hands out."""

from __future__ import annotations

import ctypes
import itertools
import json
import re
import struct
from collections.abc import Callable
from importlib.resources import files

import pytest

from tests.sampling import in_turns
from verilocc_bench.targets import get_target
from verilocc_bench.targets.amdgpu_budget import budget_from_attributes
from verilocc_bench.targets.amdgpu_classes import (
    class_bases,
    fixed_units,
    is_outside_allocation,
    operand_bases,
)
from verilocc_bench.targets.amdgpu_instructions import (
    early_clobbers,
    instruction_form,
    opcodes_encoded_as,
    targets_with,
)
from verilocc_bench.targets.amdgpu_sub_registers import SUB_REGISTERS, SubRegister

pytestmark = pytest.mark.slow

Llc = Callable[..., str]
ARCHITECTURES = ("gfx90a", "gfx942")
ENCODINGS = re.compile(r"pc_reg|sgpr_null\d{3}|(ttmp\d+|sgpr_null|m0)(_ttmp\d+)*_(vi|gfx\w+)\w*")


@pytest.fixture(scope="module")
def tables() -> object:
    pytest.importorskip("llvmlite")
    from dataset_builders.compilers import llvm_tables

    return llvm_tables


def test_the_shipped_instructions_are_fresh(tables) -> None:
    from dataset_builders.compilers.llvm_instructions import instruction_table_text

    shipped = files("verilocc_bench.targets").joinpath("amdgpu_instructions.json").read_text()
    assert shipped == instruction_table_text()


@pytest.mark.parametrize(
    ("encoding", "opcodes"),
    [
        ("V_ADD_U32_e64_gfx9", ["V_ADD_U32_e64"]),
        ("BUFFER_LOAD_DWORD_OFFEN_gfx90a", ["BUFFER_LOAD_DWORD_OFFEN"]),
        (
            "V_MFMA_F32_32X32X8F16_gfx940_vcd",
            ["V_MFMA_F32_32X32X8F16_mac_vgprcd_e64", "V_MFMA_F32_32X32X8F16_vgprcd_e64"],
        ),
        ("V_ADD_U32_e64_gfx10", []),
    ],
)
def test_encodings_lead_back_to_opcodes(encoding: str, opcodes: list[str]) -> None:
    assert [opcode.name for opcode in opcodes_encoded_as(encoding)] == opcodes


def test_forms_say_what_operands_are() -> None:
    (load,) = opcodes_encoded_as("BUFFER_LOAD_DWORDX4_OFFEN_gfx90a")
    form = load.form
    assert (form.definitions, form.implicit_uses, form.may_load) == (1, ("exec",), True)
    names = [operand.class_name for operand in form.operands]
    assert names == ["av_128_align2", "vgpr_32", "sreg_128_xnull", "sreg_32", None, None, None]
    (saved,) = opcodes_encoded_as("S_AND_SAVEEXEC_B64_vi")
    assert saved.form.implicit_definitions == ("exec", "scc")
    (fmac,) = opcodes_encoded_as("V_FMAC_F32_e32_vi")
    assert [operand.tied_to for operand in fmac.form.operands] == [None, None, None, 0]


def test_the_shipped_classes_are_fresh(tables) -> None:
    shipped = files("verilocc_bench.targets").joinpath("amdgpu_classes.json").read_text()
    assert shipped == tables.class_table_text()


@pytest.mark.parametrize(
    ("opcode", "clobbers", "ties"),
    [
        ("V_FMAC_F32_e32", (), ((3, 0),)),
        ("V_MFMA_F32_32X32X8F16_vgprcd_e64", (0,), ()),
        ("V_MFMA_F32_32X32X8F16_mac_vgprcd_e64", (), ((3, 0),)),
        ("V_SWAP_B32", (), ((2, 1), (3, 0))),
        ("IMAGE_ATOMIC_ADD_V1_V1_gfx90a", (), ((1, 0),)),
        ("V_MOV_B32_e32", (), ()),
        ("COPY", (), ()),
    ],
)
def test_constraints(opcode: str, clobbers: object, ties: object) -> None:
    form = instruction_form(opcode)
    assert form is not None
    assert (early_clobbers(opcode), form.ties) == (clobbers, ties)
    assert early_clobbers("V_NOTHING") == ()


@pytest.mark.parametrize(
    ("opcode", "targets"),
    [
        ("V_ADD_U32_e64", ("gfx90a", "gfx942")),
        ("S_LOAD_DWORDX4_IMM_ec", ("gfx90a", "gfx942")),
        ("V_MAC_F32_e32", ("gfx90a",)),
        ("IMAGE_LOAD_V4_V2_gfx90a", ("gfx90a",)),
        ("V_LSHL_ADD_U64_e64", ("gfx942",)),
        ("V_PERMLANE32_SWAP_B32_e32", ()),
        ("BUFFER_LOAD_DWORD_VBUFFER_OFFEN", ()),
        ("V_ADD_U32_e64_gfx9", ()),
        ("WQM", ()),
    ],
)
def test_each_target_has_opcodes_of_its_own(opcode: str, targets: object) -> None:
    assert targets_with(opcode) == targets
    assert (instruction_form(opcode) is None) == (not targets)


def test_forms_say_what_reads_the_constant_bus_and_takes_more() -> None:
    found = {}
    for opcode in ("V_ADD_U32_e64", "S_ADD_I32", "V_FMAMK_F32", "KILL"):
        form = instruction_form(opcode)
        assert form is not None
        found[opcode] = (form.reads_constant_bus, form.constants, form.takes_more)
    assert found == {
        "V_ADD_U32_e64": (True, 0, False),
        "S_ADD_I32": (False, 0, False),
        "V_FMAMK_F32": (True, 1, False),
        "KILL": (False, 0, True),
    }


def test_classes_hold_the_registers_of_llvm(tables) -> None:
    for llvm_class in tables.read_register_classes():
        found = operand_bases(llvm_class.name.lower())
        if found is None:
            continue
        assert (class_bases(llvm_class.name.lower()) is not None) == llvm_class.allocatable
        width, bases = found
        own = {(file, base, width) for file, ranges in bases.items() for r in ranges for base in r}
        assert own == {u for m in llvm_class.members if (u := tables.member_units(m))}


def test_every_register_of_llvm_is_classified(tables) -> None:
    for name in tables.read_register_names()[1:]:
        units, outside = fixed_units(name.lower()), is_outside_allocation(name.lower())
        expected = tables.member_units(re.sub("_(LO|HI)16$", "", name))
        assert (units and (units.file, units.first, units.count)) == expected
        # SGPRs that no class of these targets has: their encodings are FLAT_SCRATCH's and the like.
        above = re.fullmatch(r"(_?SGPR10[2-5])+(_(LO|HI)16)?", name) is not None
        if expected is None and (above or not re.fullmatch(r"[VAS]GPR\d+(_.*)?", name)):
            assert outside or ENCODINGS.fullmatch(name.lower()), name
        else:
            assert not outside


def test_sub_registers_are_those_of_llvm(tables) -> None:
    image, expected = tables.LLVMImage(), {}
    names = struct.iter_unpack("<Q", image.data(tables.Symbol.SUB_REGISTER_NAMES))
    # Ranges have an entry before the first, and repeat for each of LLVM's hardware modes.
    ranges = struct.iter_unpack("<HH", image.data(tables.Symbol.SUB_REGISTER_RANGES)[4:])
    for (pointer,), (first_bit, bits) in zip(names, ranges, strict=False):
        if name := ctypes.string_at(pointer).decode():
            first, rest = divmod(first_bit, 32)
            half = None
            if bits == 16:
                half = "hi16" if rest else "lo16"
            else:
                assert (rest, bits % 32) == (0, 0)
            expected[name] = SubRegister(first, max(bits // 32, 1), half)
    assert len(expected) == 399
    assert expected == SUB_REGISTERS


def test_no_two_classes_share_a_name() -> None:
    target = get_target("gfx942")
    table = files("verilocc_bench.targets").joinpath("amdgpu_classes.json")
    for v, a, s in itertools.product((24, 64, 256), (0, 4, 256), (40, 98, 102)):
        seen: dict[str, object] = {}
        for name in json.loads(table.read_text()):
            width, bases = class_bases(name) or (0, {})
            made = target.make_class(width, bases, {"v": v, "a": a, "s": s, "vcc": 2})
            assert seen.setdefault(made.name, made) == made


def probe(attributes: dict[str, str], register_class: str, count: int, info: str = "") -> str:
    """A function in which `count` values of a class are live at once."""
    text = " ".join(f'"{key}"="{value}"' for key, value in {**attributes, "x": ""}.items())
    names = [f"%{i}" for i in range(count)]
    body = "".join(f"    {name}:{register_class} = IMPLICIT_DEF\n" for name in names)
    uses = ", ".join(f"implicit {name}" for name in names)
    return f"""--- |
  target triple = "amdgcn-amd-amdhsa"
  define amdgpu_kernel void @k() #0 {{
    ret void
  }}
  attributes #0 = {{ {text} }}
...
---
name: k
tracksRegLiveness: true
machineFunctionInfo:
{info or "  isEntryFunction: true"}
body: |
  bb.0:
{body}    S_NOP 0, {uses}
    S_ENDPGM 0
...
"""


def used(llc: Llc, arch: str, mir: str) -> dict[str, set[int]]:
    stop = ("-x", "mir", "-O3", "-start-before=greedy", "-stop-after=virtregrewriter,2")
    out = llc(mir, arch, *stop, check=False)  # it may run out of registers
    body = out[out.index("body:") :]
    return {f: {int(n) for n in re.findall(rf"\${f}gpr(\d+)\b", body)} for f in "vas"}


BUDGETS = [
    {},
    {"amdgpu-flat-work-group-size": "1,256"},
    {"amdgpu-flat-work-group-size": "1,512", "amdgpu-agpr-alloc": "0"},
    {"amdgpu-flat-work-group-size": "1,64", "amdgpu-waves-per-eu": "8, 8"},
    {"amdgpu-flat-work-group-size": "64,64", "amdgpu-waves-per-eu": "5"},
    {"amdgpu-flat-work-group-size": "64,128", "amdgpu-waves-per-eu": "5,9"},
    {"amdgpu-flat-work-group-size": "1,256", "amdgpu-waves-per-eu": "2,0"},
    {"amdgpu-flat-work-group-size": "300,100"},
    # LDS leaves room for fewer waves than were asked for.
    {
        "amdgpu-flat-work-group-size": "256,256",
        "amdgpu-waves-per-eu": "2,2",
        "amdgpu-lds-size": "65536",
    },
    {
        "amdgpu-flat-work-group-size": "1,64",
        "amdgpu-waves-per-eu": "8,8",
        "amdgpu-lds-size": "32768",
    },
    {
        "amdgpu-flat-work-group-size": "1,64",
        "amdgpu-waves-per-eu": "6,6",
        "amdgpu-num-vgpr": "33",
        "amdgpu-no-flat-scratch-init": "",
    },
    {"amdgpu-waves-per-eu": "1,1", "amdgpu-num-sgpr": "104", "amdgpu-flat-work-group-size": "1,64"},
    {"amdgpu-flat-work-group-size": "1,256", "amdgpu-agpr-alloc": "16,64"},
]


@pytest.mark.parametrize(("attributes", "arch"), in_turns(BUDGETS, ARCHITECTURES), ids=str)
def test_budgets_are_what_llc_hands_out(attributes: dict[str, str], arch: str, llc: Llc) -> None:
    budget = budget_from_attributes(arch, attributes)
    vector = used(llc, arch, probe(attributes, "av_32", budget.vgprs + budget.agprs + 4))
    scalar = used(llc, arch, probe(attributes, "sreg_32", budget.sgprs + 4))
    assert vector["v"] == set(range(budget.vgprs))
    assert vector["a"] == set(range(budget.agprs))
    assert scalar["s"] == set(range(budget.sgprs))


@pytest.mark.parametrize(
    ("key", "name", "kept"),
    [
        ("stackPtrOffsetReg", "$sgpr32", {32}),
        ("sgprForEXECCopy", "$sgpr96_sgpr97", {96, 97}),
        ("frameOffsetReg", "$sgpr33", {33}),
    ],
)
def test_named_registers_are_reserved(key: str, name: str, kept: set[int], llc: Llc) -> None:
    info = f"  isEntryFunction: true\n  {key}: '{name}'"
    assert used(llc, "gfx942", probe({}, "sreg_32", 98, info))["s"] & kept == set()


LIMITED_WAVES = [
    {"amdgpu-waves-per-eu": "3,3"},
    {"amdgpu-waves-per-eu": "1, 2"},
    {"amdgpu-waves-per-eu": "4"},
    {"amdgpu-flat-work-group-size": "1,1024", "amdgpu-waves-per-eu": "3,3"},
    {"amdgpu-flat-work-group-size": "300,300"},
]


@pytest.mark.parametrize(
    ("attributes", "arch"), in_turns([*LIMITED_WAVES, *BUDGETS], ARCHITECTURES), ids=str
)
def test_no_more_waves_run_than_llc_says(attributes: dict[str, str], arch: str, llc: Llc) -> None:
    attributes = {"amdgpu-flat-work-group-size": "1,256", **attributes}
    text = " ".join(f'"{key}"="{value}"' for key, value in attributes.items())
    source = f"define amdgpu_kernel void @k() #0 {{ ret void }}\nattributes #0 = {{ {text} }}\n"
    found = re.search(r"; Occupancy: (\d+)", llc(source, arch))
    assert found is not None
    assert budget_from_attributes(arch, attributes).waves == int(found[1])


@pytest.mark.parametrize("attribute", ["x", "-1", "1_0", "²", "010", "9" * 5000])
def test_attributes_that_are_no_number(attribute: str) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        budget_from_attributes("gfx942", {"amdgpu-waves-per-eu": attribute})


@pytest.mark.parametrize(("v", "s"), [(1, 1), (64, 10), (65, 10), (72, 96), (97, 10), (129, 102)])
def test_occupancy_is_that_of_llc(v: int, s: int, llc: Llc) -> None:
    source = (
        "define amdgpu_kernel void @k() #0 {\n"
        f'  call void asm sideeffect "", "~{{v{v - 1}}},~{{s{s - 1}}}"()\n  ret void\n}}\n'
        'attributes #0 = { "amdgpu-flat-work-group-size"="1,64" }\n'
    )
    found = re.search(r"; Occupancy: (\d+)", llc(source, "gfx942"))
    assert found is not None
    assert get_target("gfx942").occupancy({"v": v, "s": s}) == int(found[1])
