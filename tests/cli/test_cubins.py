"""Cubins on the command line: normalized, allocated, verified; and those that cannot be."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import CommandLine, answered
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.tools import assemble, find_tool

pytestmark = pytest.mark.slow

HEAD = ".version 8.7\n.target sm_80\n.address_size 64\n"
KERNEL = """
.visible .entry NAME(.param .u64 data)
.reqntid 512
{
    .reg .b64 %address<3>;
    .reg .b32 %value<3>;
    ld.param.u64 %address0, [data];
    cvta.to.global.u64 %address1, %address0;
    ld.global.b32 %value0, [%address1];
    mul.lo.s32 %value1, %value0, %value0;
    st.global.b32 [%address1], %value1;
    ret;
}
"""
FUNCTION = """
.func (.reg .b32 %result) helper(.reg .b32 %a)
{
    .reg .pred %p;
    .reg .b32 %b;
    mov.b32 %b, %a;
    mad.lo.s32 %b, %b, %b, %a;
    setp.lt.s32 %p, %b, 1000;
    @%p call (%b), helper, (%b);
    mov.b32 %result, %b;
    ret;
}
"""
TEXTURE = """
.visible .entry texture(.param .u64 data, .param .u64 name)
{
    .reg .b64 %address<3>;
    .reg .f32 %value<4>;
    .reg .b32 %place;
    ld.param.u64 %address0, [data];
    ld.param.u64 %address1, [name];
    cvta.to.global.u64 %address2, %address0;
    mov.u32 %place, 3;
    tex.1d.v4.f32.s32 {%value0, %value1, %value2, %value3}, [%address1, {%place}];
    st.global.f32 [%address2], %value0;
    ret;
}
"""
CALLER = KERNEL.replace("mul.lo.s32 %value1, %value0, %value0;",
                        "call (%value1), helper, (%value0);")  # fmt: skip


Write = Callable[..., Path]


@pytest.fixture
def write(cuda: None, tmp_path: Path) -> Write:
    def make(ptx: str, name: str = "kernel.cubin") -> Path:
        path = tmp_path / name
        path.write_bytes(assemble(HEAD + ptx))
        return path

    return make


def test_from_a_cubin_to_a_verdict(write: Write, tmp_path: Path, run: CommandLine) -> None:
    path = write(KERNEL.replace("NAME", "square"))
    names, text = tmp_path / "names.json", tmp_path / "kernel.txt"
    run("normalize", path, "--map", names, "-o", text)
    assert "registers R:126 " in text.read_text()  # 512 threads, of which ptxas keeps two back
    originals = json.loads(names.read_text())
    answer = answered(tmp_path / "answer.json", originals)
    run("verify", path, answer)
    run("verify", text, answer)
    run("allocate", "--model", "linear-scan", path, "-o", answer)
    run("verify", path, answer, "--arch", "sm_80")
    first = next(iter(originals))
    answered(answer, originals | {first: "R1"})
    assert "R1 is reserved" in run("verify", path, answer, status=1).out
    assert "registers R:62 " in run("normalize", path, "--max-threads", "1024").out


def test_a_kernel_that_cannot_be_read_leaves_the_others(
    write: Write, tmp_path: Path, run: CommandLine
) -> None:
    kernels = "".join(KERNEL.replace("NAME", name) for name in ("damaged", "square"))
    path = write(TEXTURE + FUNCTION + CALLER.replace("NAME", "caller") + kernels)
    data = path.read_bytes()
    code = read_cubin(data).kernel("damaged").code_offset + 16
    path.write_bytes(data[:code] + b"\xff" * 64 + data[code + 64 :])
    text = run("normalize", path, "--function", "square").out
    assert run("normalize", str(write(KERNEL.replace("NAME", "square"), "one.cubin"))).out == text
    names, answer, lowered = (tmp_path / name for name in ("names", "answer", "lowered.cubin"))
    one = [str(path), "--function", "square"]
    run("normalize", *one, "--map", names)
    answered(answer, json.loads(names.read_text()))
    run("lower", *one, answer, "-o", lowered)
    run.refuses(["normalize", path, "--function", "damaged"], path, "nvdisasm", "0x00000010")
    run.refuses(["normalize", path], path, "several kernels", "--list", "damaged", "square")
    listed = run("normalize", path, "--list").out.splitlines()[2:]
    table = [line.split(None, 2) for line in listed]
    rows = {name: rest for name, *rest in table}
    assert rows["square"][0] == "yes"
    reasons = {"damaged": "nvdisasm", "caller": "calls itself", "texture": "opcode TLD"}
    for name, reason in reasons.items():
        assert rows[name][0] == "no"
        assert reason in rows[name][1]
    run.refuses(["normalize", path, "--list", "--function", "square"], "--list", "--function")
    run.refuses(["normalize", path, "--list", "--arch", "gfx942"], path, "gfx942")


def test_what_does_not_belong_together(write: Write, tmp_path: Path, run: CommandLine) -> None:
    path = write(KERNEL.replace("NAME", "square"))
    run.refuses(["normalize", path, "--arch", "gfx942"], path, "gfx942", "cubin")
    text = tmp_path / "kernel.mir"
    text.write_text("---\nname: f\n...\n")
    run.refuses(["normalize", text, "--arch", "sm_80"], text, "expected a cubin")
    source = tmp_path / "kernel.ptx"
    source.write_text(HEAD.replace("sm_80", "sm_90") + KERNEL.replace("NAME", "square"))
    subprocess.run([find_tool("ptxas"), "-arch=sm_90", source, "-o", path], check=True)
    run.refuses(["normalize", path, "--arch", "sm_80"], path, "expected", "sm_80", "sm_90")


def test_a_missing_tool_is_named(
    write: Write, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    path = write(KERNEL.replace("NAME", "square"))
    monkeypatch.setattr("verilocc_bench.backends.nvidia.tools._installed_file", lambda _: None)
    run.refuses(["normalize", path], "nvidia-cuda-nvdisasm", "verilocc-bench[cubin]")
