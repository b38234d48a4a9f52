"""Functions with calls, and functions that others call, from LLVM IR to machine code."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.backends.amdgpu.machine_ir import answer_of, kernel_of
from tests.backends.amdgpu.mir_texts import mir
from tests.backends.amdgpu.test_write_back import GREEDY, instructions, small
from tests.conftest import find_llc
from tests.sampling import in_turns
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.backends.amdgpu.label import read_label
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.backends.amdgpu.tools import run_llc
from verilocc_bench.backends.amdgpu.write_back import write_assignment
from verilocc_bench.ir import FixedUnits, print_function
from verilocc_bench.targets.amdgpu_calls import destroyed_units
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.verifier import IndependentVerifier

Llc = Callable[..., str]
SOURCE = Path(__file__).parent / "kernels" / "with_calls.ll"
NAMES = re.findall(r"^define.*?@(\w+)", SOURCE.read_text(), re.MULTILINE)
ARCHITECTURES = ("gfx90a", "gfx942")
MASKS = (
    "csr_amdgpu",
    "csr_amdgpu_gfx90ainsts",
    "csr_amdgpu_si_gfx",
    "csr_amdgpu_si_gfx_gfx90ainsts",
    "csr_amdgpu_noregs",
)


@cache
def selected(llc: Llc, arch: str) -> str:
    """The machine IR of all functions before allocation."""
    return llc(SOURCE.read_text(), arch, "-O3", "-stop-before=greedy")


def printed(name: str, llc: Llc) -> list[str]:
    function = kernel_of(selected(llc, "gfx942"), "gfx942", name).problem.function
    return print_function(function).splitlines()


@pytest.mark.parametrize("arch", ["gfx942", pytest.param("gfx90a", marks=pytest.mark.exhaustive)])
def test_llvms_own_assignment_gives_llvms_own_assembly(arch: str, llc: Llc) -> None:
    text = selected(llc, arch)
    after = llc(text, arch, *GREEDY, "-stop-after=virtregrewriter,2")
    expected = llc(text, arch, *GREEDY)
    for name in NAMES:
        kernel = kernel_of(text, arch, name)
        allocated = parse_mir(after, "after", name).functions[0]
        own = read_label(kernel.machine, allocated, kernel.normalized)
        answer = answer_from_assignment(kernel.problem, own)
        for judge in (FastVerifier(kernel.problem), IndependentVerifier(kernel.problem)):
            verdict = judge.verify(answer)
            assert verdict.valid, (name, verdict.findings[:3])
        # The next function goes into the text that has this one.
        text = write_assignment(kernel.text, kernel.machine, kernel.normalized, own).text
    assembly = run_llc(text, arch, "asm").decode()
    assert instructions(assembly) == instructions(expected)
    assert assembly == expected


@pytest.mark.parametrize(
    ("model", "arch"), in_turns(["linear-scan", "graph-coloring"], ARCHITECTURES)
)
def test_llvm_makes_machine_code_of_valid_answers(model: str, arch: str, llc: Llc) -> None:
    text = selected(llc, arch)
    for name in NAMES:
        kernel = kernel_of(text, arch, name)
        answer = answer_of(kernel, model)
        assert IndependentVerifier(kernel.problem).verify(answer).valid
        lowered = kernel.lower(answer)
        assert not lowered.llc_options
        text = lowered.text
    assert run_llc(text, arch, "obj").startswith(b"\x7fELF")


def test_a_function_names_what_its_calls_destroy(llc: Llc) -> None:
    lines = printed("calls_twice", llc)
    assert [line for line in lines if line.startswith("mask")] == [
        "mask m0 v[0:39] v[48:55] a[0:31] s[0:29] s[40:47] s[56:63] s[72:79] s[88:95] vcc"
    ]
    calls = [line for line in lines if "SI_CALL" in line]
    assert len(calls) == 2
    assert all(line.startswith("s[30:31],+v0=SI_CALL %") for line in calls)
    assert all(line.endswith(",+v31,+v0,+v1 ^m0") for line in calls)
    assert lines[-1] == "SI_RETURN +v0"
    assert "mask" not in "".join(printed("leaf", llc))


def test_a_tail_call_reads_its_arguments_and_destroys_nothing(llc: Llc) -> None:
    lines = printed("tail_call", llc)
    assert "mask" not in "".join(lines)
    assert re.fullmatch(r"SI_TCRETURN %\d+(,\+s\S+){8},\+v31,\+v0,\+v1", lines[-1]), lines[-1]


def test_what_a_function_saves_is_back_before_its_tail_call(llc: Llc) -> None:
    """LLVM restores what callers count on, the return address too, and keeps the arguments."""
    kernel = kernel_of(selected(llc, "gfx942"), "gfx942", "tail_call_after_loop")
    answer = answer_of(kernel, "linear-scan")
    kept = {1: iter(("v40", "v41", "v56", "v57")), 2: iter(("s30", "s34", "s36", "s38"))}
    for number, register in enumerate(kernel.problem.function.virtual_registers):
        if register.files == (("v",) if register.width == 1 else ("s",)):
            trial = {**answer, f"%{number}": next(kept[register.width], "v0")}
            if IndependentVerifier(kernel.problem).verify(trial).valid:
                answer = trial
    assert {"v40", "v41", "s30", "s34"} <= set(answer.values())
    assembly = run_llc(kernel.lower(answer).text, "gfx942", "asm").decode()
    code = assembly.partition("\ntail_call_after_loop:")[2].partition(".Lfunc_end")[0]
    saved = set(re.findall(r"v_writelane_b32 v\d+, (s\d+)", code))
    saved |= set(re.findall(r"scratch_store_dword off, (v\d+)", code))
    assert {"v40", "v41", "s30", "s31", "s34", "s35"} < saved
    ends = [line for line in instructions(code) if line.startswith("s_setpc_b64")]
    assert sorted(ends)[1:] == ["s_setpc_b64 s[30:31]"]
    for end in ends:
        block = code[: code.index(end)].rpartition("\n.LBB")[2]
        back = set(re.findall(r"v_readlane_b32 (s\d+)", block))
        back |= set(re.findall(r"scratch_load_dword (v\d+), off", block))
        assert back == saved


def test_values_across_a_call_are_where_the_callee_keeps_them(llc: Llc) -> None:
    kernel = kernel_of(selected(llc, "gfx942"), "gfx942", "many_across")
    for model in ("linear-scan", "graph-coloring"):
        used = FastVerifier(kernel.problem).verify(answer_of(kernel, model)).registers_used
        assert used is not None
        assert 73 <= used["vector"] <= 80  # sixteen lanes and two pointers, from v40 on


@pytest.mark.parametrize(("mask", "arch"), in_turns(MASKS, ARCHITECTURES))
def test_masks_are_those_of_llvms_machine_verifier(mask: str, arch: str, llc: Llc) -> None:
    """After a call the verifier takes what it destroys for undefined."""
    del llc  # the verifier speaks on standard error, so run_llc asks it
    units = [(f, n) for f, count in (("v", 256), ("a", 256), ("s", 100)) for n in range(count)]
    names = {f"{file}gpr{index}": (file, index) for file, index in units}
    names |= {"vcc_lo": ("vcc", 0), "vcc_hi": ("vcc", 1)}
    found = destroyed_units(mask)
    assert found is not None
    expected = {(u.file, u.first + n) for u in found for n in range(u.count)} & set(names.values())
    assert undefined_after(mask, arch, names) == expected


def undefined_after(mask: str, arch: str, names: dict[str, tuple[str, int]]) -> set[object]:
    defined = "".join(f"    ${name} = IMPLICIT_DEF\n" for name in names)
    call = f"    dead $sgpr100_sgpr101 = SI_CALL $sgpr0_sgpr1, 0, {mask}\n"
    killed = "".join(f"    KILL ${name}\n" for name in names)
    text = mir(
        f"{defined}{call}{killed}    S_ENDPGM 0",
        "tracksRegLiveness: true\n",
        '  define amdgpu_kernel void @f() "amdgpu-flat-work-group-size"="1,64" { ret void }',
    )
    path = find_llc()
    assert path is not None
    options = ["-mtriple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-x", "mir", "-run-pass=none"]
    said = subprocess.run(
        [path, *options, "-verify-machineinstrs", "-o", "/dev/null", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    bad = re.findall(
        r"Using an undefined physical register \*\*\*.*?operand 0:\s+\$(\w+)", said, re.DOTALL
    )
    return {names[name] for name in bad}


def test_masks_of_other_names_are_not_known() -> None:
    for unknown in ("csr_amdgpu_x", "", "CustomRegMask($vgpr1)"):
        assert destroyed_units(unknown) is None


INNER = """target triple = "amdgcn-amd-amdhsa"
define internal void @inner() noinline norecurse {
  call void asm sideeffect "; inner", "~{v40},~{v56}"()
  ret void
}
define amdgpu_kernel void @kernel(ptr addrspace(1) %p) {
  %v = load volatile <2 x float>, ptr addrspace(1) %p
  call void @inner()
  store volatile <2 x float> %v, ptr addrspace(1) %p
  ret void
}
"""


def test_callees_of_one_module_keep_what_their_callers_count_on(llc: Llc) -> None:
    """By default llc lets @inner destroy v40, in a run that does not tell @kernel."""
    text = llc(INNER, "gfx942", "-O3", "-stop-before=greedy")
    kernel = kernel_of(text, "gfx942", "kernel")
    lowered = kernel.lower(answer_of(kernel, "linear-scan"))

    def saves(assembly: str) -> bool:
        inner = assembly.partition("\ninner:")[2].partition("s_setpc_b64")[0]
        assert "; inner" in inner
        return "v40" in inner.partition("; inner")[0]

    assert saves(run_llc(lowered.text, "gfx942", "asm").decode())
    assert not saves(llc(lowered.text, "gfx942", *GREEDY))


def test_what_a_call_destroys_is_undefined_and_not_live() -> None:
    """The high half of a pair was never written; its register was, before the call."""
    kernel = small(
        "  bb.0:\n    %0:vgpr_32 = V_MOV_B32_e32 1, implicit $exec\n"
        "    S_NOP 0, implicit %0\n"
        "    %1:sreg_64 = S_MOV_B64 0\n"
        "    dead $sgpr30_sgpr31 = SI_CALL %1, @g, csr_amdgpu\n"
        "    undef %2.sub0:vreg_64_align2 = V_MOV_B32_e32 2, implicit $exec\n"
        "    S_NOP 0, implicit %2.sub1, implicit %2.sub0\n"
        "    S_ENDPGM 0\n"
    )
    lowered = kernel.lower({"%0": "v3", "%1": "s4", "%2": "v2"})
    assert "S_NOP 0, implicit renamable undef $vgpr3, implicit renamable $vgpr2" in lowered.text
    assert lowered.registers["v"] == 4


def test_stack_objects_that_need_a_base_pointer_reserve_it(llc: Llc) -> None:
    source = """target triple = "amdgcn-amd-amdhsa"
declare void @fill(ptr addrspace(5))
define void @f(<32 x float> %v, i32 %n) {
  %a = alloca [4 x float], align ALIGNMENT, addrspace(5)
  store i32 %n, ptr addrspace(5) %a
  call void @fill(ptr addrspace(5) %a)
  ret void
}
"""
    for alignment, pointer in (("64", True), ("16", False)):
        text = llc(source.replace("ALIGNMENT", alignment), "gfx942", "-O3", "-stop-before=greedy")
        function = kernel_of(text, "gfx942").problem.function
        assert (FixedUnits("s", 34, 1) in function.reserved) == pointer
