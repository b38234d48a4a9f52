"""The house is in order: versions, layout, public names, what installs without extras."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml

import verilocc_bench
from verilocc_bench.dataset import embedded_path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """The module and all that is in it."""
    return list(ast.walk(ast.parse(path.read_text())))


def test_versions_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    released = re.search(r"^## \[(\d[^\]]*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    manifest = json.loads((embedded_path() / "manifest.json").read_text())
    assert released is not None
    assert verilocc_bench.__version__ == PROJECT["version"] == citation["version"] == released[1]
    assert str(citation["date-released"]) == released[2]
    assert manifest["versions"]["verilocc-bench"] == PROJECT["version"]


def test_constraints_pin_every_requirement() -> None:
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    )
    assert pins["torch"] == "2.13.0"
    extras = PROJECT["optional-dependencies"].values()
    for requirement in [*PROJECT["dependencies"], *(r for extra in extras for r in extra)]:
        name = re.split(r"[\[<>=;! ]", requirement)[0].lower()
        # vLLM wants a release of torch of its own.
        assert name in {*pins, "verilocc-bench", "vllm"}, requirement


def test_a_release_can_be_published() -> None:
    workflow = yaml.load((ROOT / ".github/workflows/publish.yml").read_text(), yaml.BaseLoader)
    assert workflow["on"] == {"release": {"types": ["published"]}}
    job = workflow["jobs"]["publish"]
    assert job["permissions"] == {"id-token": "write"}
    assert job["environment"]["name"] == "pypi"
    assert job["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    said = [step.get("run") for step in workflow["jobs"][job["needs"]]["steps"]]
    assert said.index("python -m build") < said.index("python -m twine check --strict dist/*")
    # The tests of the sdist import and read these.
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    targets = hatch["build"]["targets"]
    for path in ("benchmarks", "tests", "docs", *targets["wheel"]["packages"], "*.md", "*.txt"):
        assert f"/{path}" in targets["sdist"]["include"]
    assert {"Homepage", "Issues", "Changelog"} <= set(PROJECT["urls"])


def test_public_names_exist_and_have_docstrings() -> None:
    for package in ("verilocc_bench", "dataset_builders", "leaderboard"):
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = nodes_of(path)[0]
            assert isinstance(tree, ast.Module)
            assert ast.get_docstring(tree), path
            exported = [
                ast.literal_eval(node.value)
                for node in tree.body
                if isinstance(node, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
                and path.parent != ROOT / "verilocc_bench"  # made of the names' homes
            ]
            if exported:
                defined = {name for node in nodes_of(path) for name in _names(node)}
                assert defined.issuperset(exported[0]), path


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    return []


COMMANDS = ("--help", "evaluate --help", "--version", "build --help", "publish --help")
HEAVY = ("torch", "transformers", "triton", "llvmlite", "matplotlib", "datasets", "pyarrow")


def test_help_and_verify_import_nothing_heavy() -> None:
    script = (
        "import sys\nfrom verilocc_bench.cli import main\n"
        "def look():\n"
        f"    found = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "    assert not found, found\n"
        f"for command in {COMMANDS!r}:\n"
        "    try:\n        main(command.split())\n"
        "    except SystemExit as end:\n        assert not end.code\n"
        "    look()\n"
        "import verilocc_bench.cli.verify_command\nlook()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_the_embedded_dataset_is_small() -> None:
    size = sum(path.stat().st_size for path in embedded_path().rglob("*") if path.is_file())
    assert size <= 4 << 20


WRITERS = {
    # Runs alone, on a machine without this package.
    "verilocc_bench/measuring/launcher.py": {"self.results.open", "os.truncate"},
    "verilocc_bench/measuring/launched_kernel.py": {"open", "pickle.dump", "replace"},
    # The way that all others go.
    "verilocc_bench/files.py": {"os.open", "os.fdopen", "temporary.replace"},
    # Lines are only ever added, by several processes at once.
    "verilocc_bench/evaluation/ledger.py": {"path.open", "file.truncate"},
    "verilocc_bench/model/transcripts.py": {"os.truncate"},
    "verilocc_bench/evaluation/machine_code.py": {"path.open"},
    "leaderboard/revalidate.py": {"path.open"},
    # Lock files have no content.
    "dataset_builders/journal/journal.py": {"open"},
    "verilocc_bench/compilation.py": {"self._path.open"},
    # The process's own standard output, and nowhere.
    "verilocc_bench/cli/output_stream.py": {"os.fdopen"},
    "verilocc_bench/cli/__init__.py": {"os.open"},
    "dataset_builders/compilers/llvm_worker.py": {"os.fdopen"},
    # Whole folders of unpacked headers, put into place.
    "dataset_builders/experts/archives.py": {"partial.rename"},
    # What the vendors' tools read, in temporary folders.
    "dataset_builders/experts/nvcc.py": {"write_text", "symlink_to"},
    "verilocc_bench/backends/amdgpu/tools.py": {"write_text"},
    "verilocc_bench/backends/amdgpu/recovery/assembler.py": {"write_text"},
    "verilocc_bench/backends/nvidia/tools.py": {"write_text", "write_bytes"},
    "verilocc_bench/machine/disassembly.py": {"tempfile.NamedTemporaryFile"},
    # A library writes a folder of files; the run's last file is written when it is whole.
    "verilocc_bench/training/network.py": {
        "merged.save_pretrained",
        "network.save_pretrained",
        "tokenizer.save_pretrained",
    },
    "verilocc_bench/training/export.py": {"save_pretrained", "tokenizer.save_pretrained"},
    # It runs where this package is not.
    "verilocc_bench/training/launcher.py": {
        "merged.save_pretrained",
        "save_pretrained",
        "save_file",
        "write_text",
        "partial.replace",
    },
    # Whole folders of finished files, put into place.
    "dataset_builders/building/install.py": {"rename", "replace"},
    "leaderboard/render.py": {"shutil.copytree"},
    "leaderboard/submitting.py": {"shutil.copytree", "temporary.rename"},
}
"""Who else writes files, and why `verilocc_bench.files` does not do it."""

INTO_MEMORY = {"np.savez_compressed", "np.savez", "torch.save", "parquet.write_table"}
INTO_MEMORY |= {"figure.savefig"}
"""These take a path, or an open file: here only the latter, named `file`, `sink`, …"""

_ALWAYS = {"write_text", "write_bytes", "rename", "renames", "symlink", "symlink_to", "link"}
_ALWAYS |= {"hardlink_to", "copyfile", "copytree", "copy2", "mkstemp", "NamedTemporaryFile"}
_ALWAYS |= {"tofile", "save_pretrained", "save_file", "to_parquet", "to_csv", "ParquetWriter"}
_ALWAYS |= {"savez", "savez_compressed", "savefig", "write_table", "mknod", "mkfifo", "truncate"}
_OF_MODULES = {f"{name}.save" for name in ("np", "numpy", "torch")} | {"json.dump", "shutil.copy"}
_OF_MODULES |= {"shutil.move", "os.replace", "yaml.dump", "pickle.dump"}
_LAST_WORDS = {text.rsplit(".")[-1] for text in INTO_MEMORY | _ALWAYS | _OF_MODULES}
_LAST_WORDS |= {"open", "fdopen", "replace"}


def _written(call: ast.Call) -> str | None:
    """What a call is named, if it writes a file by itself."""
    if getattr(call.func, "attr", getattr(call.func, "id", None)) not in _LAST_WORDS:
        return None  # as are nearly all
    text = ast.unparse(call.func)
    name = text.rsplit(".", 1)[-1]
    if text in INTO_MEMORY:
        target = call.args[1] if text in ("torch.save", "parquet.write_table") else call.args[0]
        files = ("file", "sink", "picture", "text")
        return None if isinstance(target, ast.Name) and target.id in files else text
    if text == "os.open":
        return None if "O_RDONLY" in ast.unparse(call) else text
    if name == "open" or text == "os.fdopen":
        modes = [
            each.value
            for each in [*call.args, *(keyword.value for keyword in call.keywords)]
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        if not any(re.fullmatch(r"[rwaxbt+]*[wax+][rwaxbt+]*", mode) for mode in modes):
            return None
    elif name == "replace":  # of a path, not of a text or a dataclass
        if text == name or len(call.args) != 1 or call.keywords:
            return None
    elif text == "rename" or (name not in _ALWAYS and text not in _OF_MODULES):
        return None  # the first is a function of the house
    return text if re.fullmatch(r"[\w.]+", text) else name


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("path.open('w')", "path.open"),
        ("path.open(mode='ab')", "path.open"),
        ("open(path, 'r+b')", "open"),
        ("(folder / 'x').write_text('')", "write_text"),
        ("Path(a).replace(b)", "replace"),
        ("os.open(path, flags)", "os.open"),
        ("np.savez(path)", "np.savez"),
        ("json.dump({}, file)", "json.dump"),
        ("path.open('rb')", None),
        ("path.open(encoding='ascii')", None),
        ("os.open(path, os.O_RDONLY)", None),
        ("text.replace('a', 'b')", None),
        ("replace(row, id='')", None),
        ("np.savez(file)", None),
        ("figure.savefig(picture, format='svg')", None),
    ],
)
def test_writing_is_recognized(code: str, found: str | None) -> None:
    (statement,) = ast.parse(code).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert _written(statement.value) == found


def test_all_files_are_written_in_one_way() -> None:
    found: dict[str, set[str]] = {}
    for package in ("verilocc_bench", "dataset_builders", "leaderboard"):
        for path in sorted((ROOT / package).rglob("*.py")):
            calls = [n for n in nodes_of(path) if isinstance(n, ast.Call)]
            names = {name for call in calls if (name := _written(call)) is not None}
            if names:
                found[path.relative_to(ROOT).as_posix()] = names
    assert found == WRITERS


def test_a_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for package in ("verilocc_bench", "dataset_builders", "leaderboard", "benchmarks"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in nodes_of(path):
                if isinstance(node, ast.ClassDef):
                    place = f"{path.relative_to(ROOT)}:{node.lineno}"
                    places.setdefault(node.name, []).append(place)
    assert not {name: found for name, found in places.items() if len(found) > 1}
