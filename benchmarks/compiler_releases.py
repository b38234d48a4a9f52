"""What releases of the compilers make of the same kernels: registers, spills, and a bound.

    python -m benchmarks.compiler_releases compile RESULTS.jsonl --llvm FOLDER … --ptxas FILE …
    python -m benchmarks.compiler_releases report RESULTS.jsonl

FOLDER is an unpacked wheel of llvmlite, or the `llc` or `zig` (it holds clang) of a release; FILE a
ptxas. Triton's LLVM IR and PTX of each point go to every release. The bound is the most lanes that
are live at once in the release's own order of instructions, where our readers know its output: what
is above it the allocator added, what is in it the scheduler. An interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tabulate import tabulate
from tqdm import tqdm

from benchmarks.machine_code import read
from dataset_builders.compilers import llvm_worker
from dataset_builders.compilers.triton_compiler import compile_kernel
from dataset_builders.sweeps import ARCHITECTURES, SweepPoint, sweep_named
from dataset_builders.sweeps.splits import split_of
from verilocc_bench.analysis import VECTOR
from verilocc_bench.api.problems import load_problem
from verilocc_bench.api.working import problem_of
from verilocc_bench.backends.amdgpu.mir_gate import normalized_problem
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.evaluation.metrics import geometric_mean
from verilocc_bench.targets import get_target

_AMD = {"registers": "vgpr_count", "spills": "vgpr_spill_count", "scalar": "sgpr_count"}
# What LLVM writes in another way up to a release, or does not need.
_OLDER = (
    (20, re.compile(r"captures\([^)]*\)"), "nocapture"),
    (21, re.compile(r"\bnocreateundeforpoison "), ""),
    (21, re.compile(r"(@llvm\.amdgcn\.make\.buffer\.rsrc\.[^\n]*, i16[^,\n]*, )i64"), r"\1i32"),
)
_CLANG = ("clang", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-O3", "-Xclang",
          "-disable-llvm-passes", "-S", "-x", "ir", "-", "-o", "-")  # fmt: skip
_USED = re.compile(r"Used (\d+) registers")
_STORED = re.compile(r"(\d+) bytes spill stores")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    compiling = commands.add_parser("compile")
    compiling.add_argument("--llvm", nargs="*", type=Path, default=[])
    compiling.add_argument("--ptxas", nargs="*", type=Path, default=[])
    compiling.add_argument("--every", type=int, default=8, help="the N of every N-th test point")
    for each in (compiling, commands.add_parser("report")):
        each.add_argument("results", type=Path)
    options = parser.parse_args()
    if options.command == "compile":
        _compile(options)
    else:
        print(_report(read(options.results)))


def _compile(options: argparse.Namespace) -> None:
    releases = {_llvm_version(path): path for path in options.llvm}
    assemblers = {_ptxas_version(path): path for path in options.ptxas}
    done = {(each["point"], each["release"]) for each in read(options.results)}
    points: list[SweepPoint] = []
    for arch in ARCHITECTURES:
        points_of = sweep_named("default").points([arch])
        tests = [p for p in points_of if split_of("default", p) == "test"]
        # With a budget given afterwards the code would belong to another point.
        points += [p for p in tests if not p.parameters.get("asked_maxnreg")][:: options.every]
    with options.results.open("a") as file:
        for point in tqdm(points):
            amd = point.arch.startswith("gfx")
            asked = {k: v for k, v in (releases if amd else assemblers).items()
                     if (point.key, k) not in done}  # fmt: skip
            if not asked:
                continue
            try:
                compiled = compile_kernel(point)
            except RejectedKernel:
                continue
            text = compiled.ptx or compiled.llvm_ir
            for release, path in asked.items():
                found = _of_llvm(path, point, _older(text, release)) if amd \
                    else _of_ptxas(path, point, text)  # fmt: skip
                line = {"point": point.key, "arch": point.arch, "release": release, **found}
                file.write(json.dumps(line) + "\n")
                file.flush()


def _older(text: str, release: str) -> str:
    for last, pattern, replacement in _OLDER:
        if int(release.split()[1].partition(".")[0]) <= last:
            text = pattern.sub(replacement, text)
    return text


def _of_llvm(path: Path, point: SweepPoint, text: str) -> dict[str, Any]:
    assembly = _llvm(path, point.arch, text)
    if assembly is None:
        return {"failed": True}
    found: dict[str, Any] = {
        name: int(re.findall(rf"\.{key}:\s+(\d+)", assembly)[-1]) for name, key in _AMD.items()
    }
    machine_ir = _llvm(path, point.arch, text, "-stop-before=greedy")
    if machine_ir is None:
        return {**found, "unread": "no machine IR before the allocator"}
    try:
        module = parse_mir(machine_ir)
        target = get_target(point.arch)
        _, problem = normalized_problem(machine_ir, module.functions[0], module, target)
        found["bound"] = problem.pressure.maximum[VECTOR]
    except (InputError, RejectedKernel) as error:
        found["unread"] = str(error)[:200]
    return found


def _llvm(path: Path, arch: str, text: str, *options: str) -> str | None:
    if path.is_file():
        command = [str(path), "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-O3", *options]
        if path.name == "zig":
            passed = [word for option in options for word in ("-mllvm", option)]
            command = [str(path), *_CLANG, f"-mcpu={arch}", *passed]
        run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        return run.stdout if run.returncode == 0 else None
    run = subprocess.run(
        [sys.executable, llvm_worker.__file__, *options],
        input=json.dumps({"cpu": arch, "ir": text}) + "\n",
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(path)},
    )  # fmt: skip
    answers = [json.loads(line) for line in run.stdout.splitlines()[1:]]
    return answers[0].get("mir") if answers else None


def _of_ptxas(path: Path, point: SweepPoint, text: str) -> dict[str, Any]:
    gpu = point.arch + ("a" if ".target sm_90a" in text else "")
    with tempfile.TemporaryDirectory() as name:
        ptx, cubin = Path(name, "k.ptx"), Path(name, "k.cubin")
        ptx.write_text(text)
        command = [str(path), f"--gpu-name={gpu}", "-v", str(ptx), "-o", str(cubin)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            return {"failed": run.stderr[:200]}
        used, stored = _USED.search(run.stderr), _STORED.search(run.stderr)
        assert used
        spills = int(stored[1]) // 4 if stored else 0
        found: dict[str, Any] = {"registers": int(used[1]), "spills": spills}
        try:
            problem = load_problem(cubin)
            found["bound"] = problem_of(problem).pressure.maximum[VECTOR]
        except InputError as error:
            found["unread"] = str(error)[:200]
        return found


def _llvm_version(path: Path) -> str:
    code = "import llvmlite.binding as b; print('.'.join(map(str, b.llvm_version_info)))"
    asked = ["cc"] if path.name == "zig" else []
    command = [str(path), *asked, "--version"] if path.is_file() else [sys.executable, "-c", code]
    environment = {**os.environ} if path.is_file() else {**os.environ, "PYTHONPATH": str(path)}
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return "LLVM " + str(re.findall(r"\d+\.\d+\.\d+", told.stdout)[0])


def _ptxas_version(path: Path) -> str:
    told = subprocess.run([str(path), "--version"], capture_output=True, text=True, check=True)
    return str(re.findall(r"V(\d+\.\d+\.\d+)", told.stdout)[0])


def _report(lines: list[dict[str, Any]]) -> str:
    """By architecture and release: what all releases compiled, against the oldest and the bound."""
    by_arch: dict[str, dict[str, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        by_arch[line["arch"]][line["release"]][line["point"]] = line
    return tabulate(
        list(_rows(by_arch)), floatfmt=".3f", tablefmt="github",
        headers=("arch", "release", "kernels", "registers, geometric mean", "to the oldest",
                 "fewer", "more", "that spill", "order's bound", "over the bound"),
    )  # fmt: skip


def _rows(by_arch: dict[str, dict[str, dict[str, Any]]]) -> Iterator[tuple[Any, ...]]:
    for arch, releases in sorted(by_arch.items()):
        names = sorted(releases, key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
        counted = ({p for p, f in releases[n].items() if "registers" in f} for n in names)
        common = set.intersection(*counted)
        oldest = releases[names[0]]
        for name in names:
            pairs = [(releases[name][p], oldest[p]) for p in sorted(common)]
            counts = [found["registers"] for found, _ in pairs]
            read = [found for found, _ in pairs if found.get("bound")]
            yield (
                arch, name, len(common), geometric_mean(counts),
                geometric_mean([f["registers"] / o["registers"] for f, o in pairs]),
                sum(f["registers"] < o["registers"] for f, o in pairs),
                sum(f["registers"] > o["registers"] for f, o in pairs),
                sum(f["spills"] > 0 for f, _ in pairs),
                geometric_mean([f["bound"] for f in read]) if len(read) == len(pairs) else None,
                geometric_mean([f["registers"] / f["bound"] for f in read]) if read else None,
            )  # fmt: skip


if __name__ == "__main__":
    main()
