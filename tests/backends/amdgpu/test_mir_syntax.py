"""The MIR parser on small functions: syntax, and refusals with their line."""

from __future__ import annotations

import pytest

from verilocc_bench.backends.amdgpu.mir_gate import normalized_problem
from verilocc_bench.backends.amdgpu.read import MirFile, parse_mir
from verilocc_bench.errors import InputError
from verilocc_bench.targets import get_target

LIVE = (
    "    liveins: $vgpr0, $vgpr1, $vgpr2, $vgpr3, $vgpr4_vgpr5_vgpr6_vgpr7, $vgpr9, $sgpr0_sgpr1, "
    "$sgpr2_sgpr3, $vcc\n"
)


def mir(body: str, head: str = "") -> str:
    return f"---\nname: f\n{head}body: |\n  bb.0:\n{body}\n...\n"


def lines(body: str, head: str = "") -> list[str]:
    module = parse_mir(mir(body, head), "x.mir")
    _, problem = normalized_problem(
        mir(body, head), module.functions[0], module, get_target("gfx942"), source="x.mir"
    )
    text = problem.normalized.splitlines()
    return text[text.index(next(line for line in text if line.startswith("bb0"))) :]


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("undef %x-1.sub1:vreg_64_align2 = COPY $vgpr3", "%0.1!=COPY v3"),
        ("dead %0:sreg_64 = nuw nsw S_NOT_B64 killed $vcc", "%0=S_NOT_B64 vcc"),
        ('INLINEASM &"a = b, :: \\\\", 1, 10, def %0:vgpr_32', "%0=INLINEASM"),
        (
            'INLINEASM &"", 0, 10, def %0:vgpr_32, 9, implicit undef $vgpr1(tied-def 3)',
            "%0=INLINEASM +v1!~0",
        ),
        ("S_NOP 0 :: (load (s32) from %ir.a, addrspace 1)", "S_NOP"),
        ("S_NOP 0, implicit $exec, debug-location !9", "S_NOP"),
        # LLVM knows it where the text does not say so.
        (
            "%0:vreg_64_align2 = V_QSAD_PK_U16_U8_e64 %1:vreg_64_align2, 0, %1, 0",
            "%0&=V_QSAD_PK_U16_U8 %1,%1",
        ),
        ("%0:vgpr_32 = COPY $vgpr1 ; of %1, $vgpr2", "%0=COPY v1"),
        ('INLINEASM &"a ; b", 1, 10, def %0:vgpr_32 ; of "%1"', "%0=INLINEASM"),
    ],
)
def test_one_instruction(instruction: str, expected: str) -> None:
    assert lines(f"{LIVE}    {instruction}")[1] == expected


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        ("%0:vgpr_32 = KILL %1:vgpr_32(tied-def 3)", "tied to operand 3"),
        ("%0:vgpr_32 = KILL $vgpr1(tied-def 2)", "tied to operand 2"),
        ("S_NOP %0:vgpr_32(nonsense)", "unknown operand syntax"),
        ("S_NOP %0:vgpr_32(tied-use 1)", "unknown operand syntax"),
    ],
)
def test_what_an_operand_says_in_brackets_is_known(instruction: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        lines(f"    {instruction}")
    assert caught.value.line == 5


def test_reserved_registers_come_in_the_order_of_the_target() -> None:
    head = (
        "machineFunctionInfo:\n  stackPtrOffsetReg: '$sgpr32'\n  vgprForAGPRCopy: '$vgpr7'\n"
        "  sgprForEXECCopy: '$sgpr100_sgpr101'\n"
    )
    text = mir("    S_NOP 0", head)
    module = parse_mir(text)
    _, problem = normalized_problem(text, module.functions[0], module, get_target("gfx942"))
    assert "reserved v7 s32 s[100:101]" in problem.normalized


def test_a_bundle_is_one_instruction_that_writes_before_its_last_read() -> None:
    body = """    BUNDLE implicit-def %0, implicit $vgpr1 {
      %0:vgpr_32 = V_MOV_B32_e32 $vgpr1
      %1:vgpr_32 = V_ADD_U32_e32 internal %0, $vgpr2
    }"""
    assert lines(LIVE + body)[1:] == ["%0&,%1=BUNDLE v1,v2"]


def test_a_conditional_branch_falls_through() -> None:
    body = "    S_CBRANCH_EXECNZ %bb.0\n  bb.1:\n    S_BRANCH %bb.0\n    DBG_VALUE $noreg\n  bb.2:"
    assert [line for line in lines(body) if "bb" in line] == ["bb0->bb0,bb1", "bb1->bb0", "bb2"]


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("    S_NOP %0,%1(tied-def 0)", 5, "expected ', '"),
        ("    foo S_NOP", 5, "expected an instruction"),
        ("    KILL $vgpr0_agpr1", 5, "unknown physical register"),
        ("    KILL $vgpr01", 5, "unknown physical register"),
        ("    %0:vgpr_32 = KILL %0.sub1", 5, "no 'sub1'"),
        ("    %0:no_class = KILL", 5, "unknown register class"),
        ("    S_NOP csr_amdgpu", 5, "calls by S_NOP are not supported"),
        ("    S_NOP %bb." + "9" * 5000, 5, "expected a block"),
        ("  bb.0:", 5, "occurs twice"),
        ("    S_NOP {\n      S_NOP", 5, "end of the bundle"),
    ],
)
def test_refusals_name_the_line(body: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        lines(body)
    assert (caught.value.source, caught.value.line) == ("x.mir", line)


def test_one_function_of_many() -> None:
    """The others need not be known syntax; empty documents are none."""
    text = mir("    %0:vgpr_32 = KILL") + "---\n...\n---\n\n# nothing\n...\n"
    text += mir("    foo").replace("name: f", "name: 'a-b'") + mir("    S_NOP 0")[:-4] + "...\n"
    text = text[::-1].replace("f :eman", "g :eman", 1)[::-1]
    assert MirFile(text).names == ("f", "a-b", "g")
    assert [f.name for f in parse_mir(text, "x.mir", "g").functions] == ["g"]
    with pytest.raises(InputError, match="expected an instruction") as caught:
        parse_mir(text, "x.mir", "a-b")
    assert caught.value.line == 17
    with pytest.raises(InputError, match=r"several functions.* --function .*: f, a-b, g"):
        MirFile(text).function()
    with pytest.raises(InputError, match="no function 'h'; there are f, a-b, g"):
        parse_mir(text, "x.mir", "h")
    with pytest.raises(InputError, match="expected an instruction"):
        parse_mir(text, "x.mir")


@pytest.mark.parametrize("rest", ["", "---\n...\n", "---\n# none\n...\n"])
def test_llvm_ir_alone(rest: str) -> None:
    text = "--- |\n  define amdgpu_kernel void @f() {\n    ret void\n  }\n...\n" + rest
    with pytest.raises(InputError, match="no machine function found, only LLVM IR"):
        parse_mir(text)


def test_attributes_over_several_lines() -> None:
    ir = """--- |
  define amdgpu_kernel void @f(
      ptr %x
  ) #3
  { ; its body
    ret void
  }
  attributes #3 = {
    "amdgpu-flat-work-group-size"="1,256"
    "target-cpu"="gfx942" } ; of f
  attributes #4 = { "target-cpu"="gfx90a" }
...
"""
    module = parse_mir(ir + mir("    S_NOP 0"))
    assert module.attributes == {
        "f": {"amdgpu-flat-work-group-size": "1,256", "target-cpu": "gfx942"}
    }
    assert module.calling_conventions == {"f": "amdgpu_kernel"}


def test_whole_wave_registers_are_refused() -> None:
    head = "registers:\n  - { id: 0, class: vgpr_32, flags: [ WWM_REG ] }\n"
    with pytest.raises(InputError, match="whole-wave-mode") as caught:
        lines("    %0:vgpr_32 = IMPLICIT_DEF", head)
    assert caught.value.line == 4


@pytest.mark.parametrize("text", ["", "\0", "---", "---\nname: f\n...\n", mir("")[:-4]])
def test_files_that_are_no_mir(text: str) -> None:
    with pytest.raises(InputError):
        parse_mir(text)


@pytest.mark.parametrize(
    "junk",
    ["bb.0." + " (" * 30000, "*/" + "/*" * 50000, "(a)" * 30000, "def " * 30000, '" ::' * 30000],
)
def test_long_lines_are_refused(junk: str) -> None:
    """Each once took a pattern quadratic time."""
    for line in (f"  {junk}", f"    S_NOP {junk}", f"    S_NOP %0{junk}("):
        with pytest.raises(InputError):
            parse_mir(mir(line) + "x")


SIX = "_".join(f"sub{lane}_lo16_sub{lane}_hi16" for lane in range(2, 8))
SEVEN = f"sub1_lo16_sub1_hi16_{SIX}"


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        # 16 bits of a lane: the definition keeps, and so needs, the other 16.
        ("%0.lo16:vgpr_32 = KILL", "%0=KILL +%0"),
        ("%0.sub1_hi16:vreg_64_align2 = KILL", "%0.1=KILL +%0.1"),
        ("undef %0.sub1_hi16:vreg_64_align2 = KILL", "%0.1!=KILL"),
        ("$vgpr3_hi16 = KILL %0:sgpr_32", "v3=KILL +v3,%0"),
        ("KILL %0.sub1_lo16:vreg_64_align2", "KILL %0.1"),
        # Whole lanes, though LLVM spells their halves.
        (f"%0.{SEVEN}:vreg_256_align2 = COPY %1:areg_224_align2", "%0:V8.1-7=COPY %1"),
        # A register whose own name looks like a half.
        ("%x_lo16:vgpr_32 = KILL", "%0=KILL"),
    ],
)
def test_sub_registers(instruction: str, expected: str) -> None:
    assert lines(f"{LIVE}    {instruction}")[1] == expected


@pytest.mark.parametrize(
    "index",
    ["sub01", "sub0_sub2", "sub0_sub1_lo16", "sub", "lo16_hi16", "sub32", SIX, SEVEN + "_sub8"],
)
def test_unknown_sub_registers_are_refused_by_name(index: str) -> None:
    with pytest.raises(InputError, match=f"unknown sub-register index '{index}'") as caught:
        lines(f"    %0.{index}:vreg_1024_align2 = KILL")
    assert caught.value.line == 5
