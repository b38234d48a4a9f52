"""Fat binaries as nvcc's own tool packs them, compressed or not, alone and in a host's object."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import pytest

from tests.backends.nvidia.assembled_kernels import LOOP, SEVERAL, assembled
from verilocc_bench.backends.nvidia.fat_binary import cubins_of, is_fat_binary
from verilocc_bench.backends.nvidia.tools import find_tool
from verilocc_bench.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cuda")]


def packed(folder: Path, images: dict[str, bytes], *options: str) -> bytes:
    """The fat binary of images: `elf,sm=80` and the like with a number, and their bytes."""
    arguments = [str(find_tool("ptxas").parent / "fatbinary"), "-64", *options]
    for number, (image, data) in enumerate(images.items()):
        (folder / f"image-{number}").write_bytes(data)
        arguments.append(f"--image3=kind={image.split('#')[0]},file={folder}/image-{number}")
    output = folder / "made.fatbin"
    subprocess.run([*arguments, f"--create={output}"], check=True)
    return output.read_bytes()


def host_object(fat_binary: bytes) -> bytes:
    """An ELF object for x86-64 with a fat binary in its section `.nv_fatbin`."""
    names = b"\0.nv_fatbin\0.shstrtab\0"
    names_at = 64 + len(fat_binary)
    padding = -(names_at + len(names)) % 8
    table = names_at + len(names) + padding
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)
    sections = b"\0" * 64
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 2, 0, 64, len(fat_binary), 0, 0, 8, 0)
    sections += struct.pack("<IIQQQQIIQQ", 12, 3, 0, 0, names_at, len(names), 0, 0, 1, 0)
    return header + fat_binary + names + b"\0" * padding + sections


IMAGES = {"elf,sm=80#several": SEVERAL, "elf,sm=80#loop": LOOP}


def cubins() -> dict[str, bytes]:
    return {image: assembled(ptx) for image, ptx in IMAGES.items()}


@pytest.mark.parametrize("options", [[], ["--compress-all"]], ids=["plain", "compressed"])
@pytest.mark.parametrize("in_host", [False, True], ids=["alone", "in an object"])
def test_its_cubins_come_out_as_they_went_in(
    options: list[str], in_host: bool, tmp_path: Path
) -> None:
    data = packed(tmp_path, cubins(), *options)
    data = host_object(data) if in_host else data
    assert is_fat_binary(data)
    found = cubins_of(data, tmp_path / "x")
    expected = [*cubins().values()]
    # The container pads its members.
    assert [cubin[: len(old)] for cubin, old in zip(found, expected, strict=True)] == expected


def test_every_command_reads_one_of_its_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kernels.fatbin"
    path.write_bytes(packed(tmp_path, cubins(), "--compress-all"))
    assert main(["normalize", str(path), "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    said = {line.split()[0]: line for line in lines[2:]}
    assert said.keys() == {"plain", "calls", "sums"}
    assert said["calls"].split()[1] == "yes"

    assert main(["normalize", str(path)]) == 2
    assert "several kernels, choose one with --function" in capsys.readouterr().err
    assert main(["normalize", str(path), "--function", "other"]) == 2
    assert "there is no kernel 'other'; there are" in capsys.readouterr().err

    answer, output = tmp_path / "answer.json", tmp_path / "out.cubin"
    one = [str(path), "--function", "sums"]
    assert main(["allocate", "--model", "compiler", *one, "-o", str(answer)]) == 0
    assert json.loads(answer.read_text())
    assert main(["lower", str(path), str(answer), "--function", "sums", "-o", str(output)]) == 0
    own = assembled(LOOP)
    assert output.read_bytes()[: len(own)] == own


def test_two_kernels_of_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "twice.fatbin"
    path.write_bytes(packed(tmp_path, {f"elf,sm=80#{n}": assembled(LOOP) for n in range(2)}))
    assert main(["normalize", str(path), "--function", "sums"]) == 2
    assert "several cubins have a kernel 'sums'" in capsys.readouterr().err


def test_code_for_other_architectures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.fatbin"
    path.write_bytes(packed(tmp_path, {"elf,sm=86": assembled(LOOP, "sm_86")}))
    assert main(["normalize", str(path)]) == 2
    assert "it has sm_86" in capsys.readouterr().err
    path.write_bytes(packed(tmp_path, {"ptx,sm=80": LOOP.encode()}))
    assert main(["normalize", str(path)]) == 2
    assert "it has PTX alone" in capsys.readouterr().err


def test_a_damaged_one_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "damaged.fatbin"
    path.write_bytes(packed(tmp_path, cubins())[:400])
    assert main(["normalize", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line
