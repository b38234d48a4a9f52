"""The MIR parser on whole files: functions, attributes, and what is no MIR."""

from __future__ import annotations

import pytest

from tests.backends.amdgpu.mir_texts import mir
from verilocc_bench.backends.amdgpu.read import MirFile, parse_mir
from verilocc_bench.errors import InputError


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
