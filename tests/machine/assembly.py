"""Small kernels in assembly, as code objects."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest

from verilocc_bench.machine.disassembly import find_objdump
from verilocc_bench.machine.execution import RunnableKernel, load_kernel


def program(name: str) -> str:
    """The text of programs/NAME.s."""
    return (Path(__file__).parent / "programs" / f"{name}.s").read_text()


ADD_ONE = """
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    s_load_dword s8, s[0:1], 0x10
    v_lshlrev_b32_e32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    global_load_dword v2, v1, s[4:5]
    s_waitcnt vmcnt(0)
    v_add_u32_e32 v2, s8, v2
    global_store_dword v1, v2, s[6:7]
    s_endpgm
"""
"""Adds a number to each element of an array."""


def assembled(
    body: str,
    arch: str = "gfx942",
    *,
    items: int = 64,
    scratch: int = 0,
    options: str = "",
    sized: bool = True,
    denormals: int = 3,
) -> bytes:
    """A code object with the kernel `k`.

    Its arguments are two buffers and a number, at s[0:1]; s2 and s3 are the
    numbers of the work-group. Skips where LLVM's tools are missing.
    """
    try:
        tool = find_objdump().with_name(find_objdump().name.replace("objdump", "mc"))
    except Exception as error:
        pytest.skip(str(error))
    text = program("template").format(
        arch=arch, body=textwrap.dedent(body), items=items, scratch=scratch, options=options,
        size=".size k, .-k" if sized else "", denormals=denormals,
    )  # fmt: skip
    done = subprocess.run(
        [tool, "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-filetype=obj", "-o", "-"],
        input=text.encode(), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[:2000]
    return done.stdout


def kernel_of(body: str, arch: str = "gfx942", **options: object) -> RunnableKernel:
    """The kernel `k`, decoded."""
    return load_kernel(assembled(body, arch, **options))  # type: ignore[arg-type]
