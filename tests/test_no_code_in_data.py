"""Data never becomes code: no pickle, no marshal, no eval, and exec only of the script that was asked for; and what Keras stores."""

import ast
from pathlib import Path

from tests.support.sources import name_of, sources

MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
RUNS_SCRIPTS = {"tensorfleet/cli/scripts/script.py"}
# A function inside a Keras model's file is code, which loading the model runs, as in Keras. No server loads such files.
LOADS_FUNCTIONS = {"tensorfleet_legacy/keras/layers/core_lambda.py"}
# Reads arrays and lists, and refuses anything else that a pickle may name.
READS_DATA = {"tensorfleet_legacy/keras/datasets/plain_pickles.py"}


def used_in(path: Path) -> set[str]:
    result = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            result |= {alias.name.partition(".")[0] for alias in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom):
            result |= {(node.module or "").partition(".")[0]} & MODULES
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            result |= {node.func.id} & {"eval", "exec", "__import__"}
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            result |= set() if ast.unparse(node.value) == "False" else {"allow_pickle"}
    return result


def test_nothing_turns_data_into_code():
    by_name = {name_of(path): used_in(path) for path in sources()}
    allowed = RUNS_SCRIPTS | LOADS_FUNCTIONS | READS_DATA
    assert {name: used for name, used in by_name.items() if used and name not in allowed} == {}
