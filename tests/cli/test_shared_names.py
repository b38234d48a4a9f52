"""Another project's package under the name of one of ours is named, not tripped over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = "import sys; from verilocc_bench.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("leaderboard", ["submit", "folder", "--dry-run"]),
        ("dataset_builders", ["dataset", "check", "folder"]),
    ],
)
def test_another_projects_package_is_named(
    package: str, arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    # The current folder comes first on the path of `python -c`.
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert f"the package {package!r} in {tmp_path / package} is another project's" in done.stderr
