"""ptxas and nvdisasm as processes: found, run apart from the world, failing in one line."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from tests.backends.nvidia.assembled_kernels import START, entry, module
from verilocc_bench.backends.nvidia import tools as cuda_tools
from verilocc_bench.backends.nvidia.tools import (
    assemble,
    disassemble,
    find_tool,
    life_ranges,
    tool_version,
)
from verilocc_bench.errors import InputError, MissingExtraError, RejectedKernel

PTX = module(
    entry(
        "twice",
        f"""{START}
    ld.global.b32 %r0, [%d1];
    add.s32 %r1, %r0, %r0;
    st.global.b32 [%d1], %r1;
""",
        directives=".reqntid 64",
    )
)
needs_tools = pytest.mark.usefixtures("cuda")


@pytest.fixture(autouse=True)
def _asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """nvdisasm runs at each call, where other tests share what it said."""
    plain = cuda_tools.run_tool.__wrapped__  # type: ignore[attr-defined]
    monkeypatch.setattr(cuda_tools, "run_tool", plain)


@pytest.fixture(scope="module")
def cubin(cuda: None) -> bytes:
    return assemble(PTX)


@needs_tools
def test_ptx_becomes_a_cubin_and_its_code_in_any_folder(
    cubin: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cubin.startswith(b"\x7fELF")
    code, ranges = disassemble(cubin), life_ranges(cubin)
    assert "LDG.E" in code
    assert "/* 0x" in code
    assert "GPR" in ranges
    assert "^" in ranges
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert assemble(PTX) == cubin
    assert disassemble(cubin) == code
    assert life_ranges(cubin) == ranges
    assert str(tmp_path).encode() not in cubin
    assert not list(tmp_path.iterdir())


@needs_tools
def test_a_register_limit_replaces_what_the_kernel_says(cubin: bytes) -> None:
    limited = assemble(PTX.replace(".reqntid 64", ".reqntid 64\n.maxnreg 200"))
    assert limited != cubin
    assert assemble(PTX, maximum_registers=40) != assemble(PTX, maximum_registers=48)


@needs_tools
def test_both_tools_are_of_one_release() -> None:
    assert tool_version("ptxas") == tool_version("nvdisasm")
    assert all(part.isdigit() for part in tool_version("ptxas").split("."))


@needs_tools
@pytest.mark.parametrize(
    ("ptx", "reason"),
    [
        ("", "ptxas: .*Missing .version"),
        (PTX.replace("add.s32", "frobnicate.s32"), "ptxas: .*line 13; error : .*frobnicate"),
    ],
    ids=["empty", "unknown"],
)
def test_what_ptxas_refuses_is_a_rejected_kernel(ptx: str, reason: str) -> None:
    with pytest.raises(RejectedKernel, match=reason) as failure:
        assemble(ptx)
    assert failure.value.kind == "ptxas-failed"
    assert "\n" not in str(failure.value)


@needs_tools
@pytest.mark.parametrize("read", [disassemble, life_ranges])
@pytest.mark.parametrize("cut", [0, 7, 64, 400])
def test_what_is_no_cubin_is_an_input_error(cubin: bytes, cut: int, read) -> None:
    with pytest.raises(InputError, match=r"^a\.cubin: nvdisasm: ") as failure:
        read(cubin[:cut], "a.cubin")
    assert "/" not in failure.value.message


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VERILOCC_BENCH_PTXAS", raising=False)
    monkeypatch.setattr(cuda_tools, "_installed_file", lambda tool: None)
    with pytest.raises(MissingExtraError, match=r"nvidia-cuda-nvcc.*verilocc-bench\[ptx\]"):
        assemble(PTX)


def test_a_package_that_is_not_there_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cuda_tools._PACKAGES, "ptxas", "no-such-package-here")
    assert cuda_tools._installed_file.__wrapped__("ptxas") is None


def script(folder: Path, text: str) -> str:
    path = folder / "tool"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)


def test_the_environment_may_name_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = script(tmp_path, "import os\nprint(sorted(os.environ), 'V1.2.3')")
    monkeypatch.setenv("VERILOCC_BENCH_NVDISASM", path)
    assert find_tool("nvdisasm") == Path(path)
    assert tool_version("nvdisasm") == "1.2.3"
    # Nothing of the user's environment reaches the tool.
    assert "PYTEST_CURRENT_TEST" not in disassemble(b"")


def test_a_tool_that_cannot_be_run_is_an_input_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        monkeypatch.setenv("VERILOCC_BENCH_PTXAS", str(path))
        with pytest.raises(InputError, match="VERILOCC_BENCH_PTXAS"):
            find_tool("ptxas")
    empty = tmp_path / "empty"
    empty.write_text("")
    empty.chmod(0o755)
    monkeypatch.setenv("VERILOCC_BENCH_PTXAS", str(empty))
    with pytest.raises(InputError, match="cannot be run"):
        tool_version("ptxas")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by signal 11"),
        ("raise SystemExit(3)", "ended with status 3"),
        ("import time; time.sleep(60)", "found no end in 1 seconds"),
        ("", "wrote no cubin"),
    ],
    ids=["crash", "status", "timeout", "nothing"],
)
def test_every_end_of_ptxas_has_a_reason(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERILOCC_BENCH_PTXAS", script(tmp_path, text))
    if "sleep" in text:
        monkeypatch.setattr(cuda_tools, "_ASSEMBLY_SECONDS", 1)
    with pytest.raises(RejectedKernel, match=reason) as failure:
        assemble(PTX)
    assert str(pickle.loads(pickle.dumps(failure.value))) == str(failure.value)
