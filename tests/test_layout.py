"""The tree is the pipeline: a module imports only from its own stage and the stages above it."""

import ast
from pathlib import Path

import tensorfleet

ROOT = Path(tensorfleet.__file__).parent
STAGES = [
    {"protos"},
    {"errors", "dtypes", "shapes", "devices", "api", "arguments", "properties", "nest"},
    {"platform"},
    {"io"},
    {"graph"},
    {"ops"},
    {"variables", "summary", "image", "signal", "linear_operators", "ragged_tensors", "autograph"},
    {"passes"},
    {"runtime"},
    {"cluster", "data"},
    {"session"},
    {"train", "nn", "distribute", "functions"},
    {"losses", "metrics"},
    {"layers"},
    {
        "saved_model",
        "fleet",
        "contrib",
        "feature_column",
        "estimator",
        "distributions",
        "keras",
        "seq2seq",
        "profiler",
        "tutorials",
        "internals",
    },
    {"testing"},
    {"modules"},
    {"launch"},
    {"__main__"},
]
LEVEL = {name: i for i, names in enumerate(STAGES) for name in names}


def stage_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "tensorfleet":
                names = [f"tensorfleet.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("tensorfleet.")}
    return found


def modules() -> list[Path]:
    return [p for p in ROOT.rglob("*.py") if p.name != "__init__.py" or p.parent != ROOT]


def test_every_module_belongs_to_a_stage():
    assert {stage_of(p) for p in modules()} <= set(LEVEL)


def test_imports_go_up_the_pipeline_only():
    wrong = [
        f"{p.relative_to(ROOT)} imports {name}"
        for p in modules()
        for name in imports_of(p)
        if LEVEL[name] > LEVEL[stage_of(p)]
    ]
    assert not wrong


def test_starting_up_does_not_load_jax():
    import subprocess
    import sys

    code = "import sys, tensorfleet; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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
