"""The shape of the repository: what starting up loads, how long files are, which tests may be run again.

Which room imports which is checked by import-linter: see the contracts in pyproject.toml.
"""

import ast
import subprocess
import sys
from pathlib import Path

import tensorfleet

ROOT = Path(tensorfleet.__file__).parent.parent
PACKAGES = ("tensorfleet", "tensorfleet_legacy")


def modules() -> list[Path]:
    return [p for package in PACKAGES for p in (ROOT / package).rglob("*.py")]


def loaded_by(code: str) -> set[str]:
    """The modules that a new interpreter has loaded after some code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stdout.split())


def test_starting_up_does_not_load_jax():
    assert "jax" not in loaded_by("import tensorfleet")


def test_starting_up_loads_a_small_part_of_the_library():
    files = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for p in modules()}
    assert len(files & loaded_by("import tensorfleet")) < 350


def test_files_stay_readable():
    long = [p.name for p in modules() if "_pb2" not in p.name and len(p.read_text().splitlines()) > 520]
    assert not long


def test_at_most_ten_tests_may_be_run_again_and_each_says_why():
    marks = [
        (p.name, node)
        for p in Path(__file__).parent.rglob("test_*.py")
        if "mark.flaky" in p.read_text()
        for node in ast.walk(ast.parse(p.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.flaky"
    ]
    assert len(marks) <= 10
    assert not [name for name, node in marks if "reason" not in {keyword.arg for keyword in node.keywords}]


# Annotations that tell a reader nothing, alone or in a union.
_VAGUE = {
    "Any",
    "Callable",
    "Iterable",
    "Iterator",
    "Mapping",
    "Sequence",
    "dict",
    "frozenset",
    "list",
    "set",
    "tuple",
    "type",
}


def annotations_of(tree: ast.AST) -> list[ast.expr]:
    results: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            args = node.args
            named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
            results += [node.returns, *(arg.annotation for arg in named if arg is not None)]
        elif isinstance(node, ast.AnnAssign):
            results.append(node.annotation)
    return [annotation for annotation in results if annotation is not None]


def says_nothing(annotation: ast.expr) -> bool:
    match annotation:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in _VAGUE
        case ast.BinOp(left=left, right=right):
            return says_nothing(left) or says_nothing(right)
    return False


def test_at_most_one_annotation_of_the_core_in_twenty_says_nothing():
    core = [p for p in (ROOT / "tensorfleet").rglob("*.py") if "_pb2" not in p.name]
    annotations = [a for p in core for a in annotations_of(ast.parse(p.read_text()))]
    vague = [a for a in annotations if says_nothing(a)]
    assert len(vague) / len(annotations) < 0.05


def test_no_two_classes_of_the_core_share_a_name():
    """But for public ones, whose names are TensorFlow's; a module's private classes are its own affair."""
    index = {
        name
        for line in (ROOT / "tensorfleet" / "index.txt").read_text().splitlines()
        for name in line.split()[2:]
    }
    places: dict[str, list[str]] = {}
    for path in (ROOT / "tensorfleet").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: p for name, p in places.items() if len(p) > 1 and name not in index} == {}
