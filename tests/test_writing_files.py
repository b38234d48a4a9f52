"""Files are replaced whole; devices, pipes and descriptors are written to; links are followed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from verilocc_bench.errors import InputError
from verilocc_bench.files import opened_to_write, write_atomically, write_output

NULL_DEVICE, FULL_DEVICE = os.makedev(1, 3), os.makedev(1, 7)


def device(path: Path, number: int) -> Path:
    """A character device of our own, so that a fault cannot harm the system's."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, number)
        with path.open("wb"):
            pass
    except PermissionError:
        pytest.skip("device files cannot be made here")
    return path


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_usual_mode_and_its_folder_is_made(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a" / "b" / "new", "é\n")
    finally:
        os.umask(old)
    path = tmp_path / "a" / "b" / "new"
    assert path.read_bytes() == "é\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert left_over(path.parent) == ["new"]


def test_what_was_there_keeps_its_mode_and_owner(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o606)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()
    write_atomically(path, b"new")
    after = path.stat()
    assert path.read_text() == "new"
    assert after.st_ino != before.st_ino  # replaced, not overwritten
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )


def test_what_fails_leaves_the_old_file(tmp_path: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "half"
        raise RuntimeError("stop")

    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="stop"):
        write_atomically(path, pieces())
    assert path.read_text() == "old"
    assert left_over(tmp_path) == ["file"]


def test_a_name_of_the_greatest_length(tmp_path: Path) -> None:
    path = tmp_path / ("ö" * 127)
    write_atomically(path, "text")
    assert path.read_text() == "text"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every file")
def test_a_file_that_is_protected_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(InputError, match="cannot be written: Permission denied"):
        write_atomically(path, "new")
    assert path.read_text() == "old"


def test_links_are_followed_and_stay(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "target"
    target.write_text("old")
    (tmp_path / "middle").symlink_to("there/target")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "middle")
    write_atomically(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "middle").is_symlink()
    assert target.read_text() == "new"
    assert left_over(target.parent) == ["target"]
    # What a link misses is made.
    (tmp_path / "to-come").symlink_to("made/here")
    write_atomically(tmp_path / "to-come", "new")
    assert (tmp_path / "to-come").is_symlink()
    assert (tmp_path / "made" / "here").read_text() == "new"


def test_links_in_a_circle_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(InputError, match="a: cannot be written: Too many levels"):
        write_atomically(tmp_path / "a", "new")
    with pytest.raises(InputError, match="expected a file, this is a folder"):
        write_atomically(tmp_path, "new")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written: Not a directory"):
        write_atomically(tmp_path / "file" / "below", "new")


def test_devices_are_written_to(tmp_path: Path) -> None:
    path = device(tmp_path / "null", NULL_DEVICE)
    link = tmp_path / "link"
    link.symlink_to("null")
    for name in (path, link):
        write_atomically(name, "gone")
        assert stat.S_ISCHR(path.stat().st_mode)
        assert path.stat().st_rdev == NULL_DEVICE
    assert link.is_symlink()
    assert left_over(tmp_path) == ["link", "null"]


def test_a_device_without_room_is_said(tmp_path: Path) -> None:
    path = device(tmp_path / "full", FULL_DEVICE)
    with pytest.raises(InputError, match="full: cannot be written: No space left on device"):
        write_atomically(path, "gone")
    assert stat.S_ISCHR(path.stat().st_mode)


def test_pipes_are_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write_atomically(path, ["some ", "text " * 100_000])
    reader.join()
    assert found == [b"some " + b"text " * 100_000]
    assert path.is_fifo()
    assert left_over(tmp_path) == ["pipe"]


def test_a_pipe_whose_reader_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def read_a_little() -> None:
        with path.open("rb", buffering=0) as file:
            file.read(1)

    reader = threading.Thread(target=read_a_little)
    reader.start()
    with pytest.raises(InputError, match="cannot be written: Broken pipe"):
        write_atomically(path, b"x" * (1 << 22))
    reader.join()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_an_open_descriptor_is_written_to_where_it_stands(tmp_path: Path, name: str) -> None:
    """As in `echo before > log; command -o /dev/stdout >> log`."""
    log = tmp_path / "log"
    log.write_text("before\n")
    (tmp_path / "link").symlink_to("/dev/stdout")
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from verilocc_bench.files import write_atomically\n"
        "print('first')\nwrite_atomically(Path(sys.argv[1]), 'second\\n')\nprint('third')\n"
    )
    with log.open("ab") as file:
        subprocess.run([sys.executable, "-c", script, name], cwd=tmp_path, stdout=file, check=True)
    assert log.read_text() == "before\nfirst\nsecond\nthird\n"
    assert left_over(tmp_path) == ["link", "log"]


def test_a_descriptor_that_is_not_open() -> None:
    with pytest.raises(InputError, match="/dev/fd/987: cannot be written: Bad file descriptor"):
        write_atomically(Path("/dev/fd/987"), "text")


def test_standard_output_by_its_short_name(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write_output(Path("-"), "text é\n")
    write_output(None, b"\x00\xff")
    assert capsysbinary.readouterr().out == "text é\n".encode() + b"\x00\xff"
    assert not Path("-").exists()


def test_pieces_of_a_file_that_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with opened_to_write(path) as file:
        file.write(b"0123")
        file.seek(1)
        file.write(b"x")
        assert not path.exists()
    assert path.read_bytes() == b"0x23"
