"""The names of tensorfleet_legacy come with `import tensorfleet`; its modules only when they are used."""

import subprocess
import sys
from pathlib import Path

import pytest

import tensorfleet

ROOT = Path(tensorfleet.__file__).parents[1]


def run(program: str) -> str:
    """What a program prints in a process of its own, in which nothing is imported yet."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_tensorfleet_imports_no_module_of_the_annex():
    loaded = run(
        "import sys, tensorfleet as tf; tf.constant(1.0) + 2.0; tf.Session().close(); dir(tf.contrib)\n"
        "print(*(name for name in sys.modules if name.startswith('tensorfleet_legacy')))"
    )
    assert loaded == ""


@pytest.mark.parametrize(
    "name, home",
    [
        ("contrib.layers.conv2d", "tensorfleet_legacy.contrib.layers.layers"),
        ("keras.layers.Dense", "tensorfleet_legacy.keras.layers.core"),
        ("estimator.Estimator", "tensorfleet_legacy.estimator.estimator"),
        ("distributions.Normal", "tensorfleet_legacy.distributions.normal"),
        ("linalg.LinearOperatorDiag", "tensorfleet_legacy.linear_operators.linear_operator_diag"),
        ("test.TestCase", "tensorfleet_legacy.testing.test_util"),
        ("mul", "tensorfleet_legacy.internals.names_before_1_0"),
        ("GradientTape", "tensorfleet_legacy.internals.eager.backprop"),
    ],
)
def test_the_first_use_of_a_name_imports_its_module(name, home):
    program = (
        f"import sys, tensorfleet as tf; assert {home!r} not in sys.modules\n"
        f"assert callable(tf.{name}), tf.{name}\nprint({home!r} in sys.modules)"
    )
    assert run(program) == "True"


@pytest.mark.parametrize(
    "statement, used",
    [
        ("import tensorfleet.contrib.slim as slim", "slim.conv2d"),
        ("from tensorfleet.contrib import slim", "slim.nets.vgg.vgg_16"),
        ("from tensorfleet.python.framework import ops", "ops.Graph"),
        ("from tensorfleet.python.ops import array_ops", "array_ops.gather_v2"),
        ("from tensorfleet.python.platform.tf_logging import info", "info"),
        ("from tensorfleet.contrib.framework.python.ops import arg_scope", "arg_scope"),
        ("from tensorfleet.contrib.framework.python.ops.arg_scope import arg_scope", "arg_scope"),
        ("from tensorfleet.keras import layers", "layers.Dense"),
        ("from tensorfleet.keras.layers import Dense", "Dense"),
        ("from tensorfleet.contrib.layers import *", "conv2d"),
        ("import tensorfleet.examples.tutorials.mnist.input_data as input_data", "input_data.read_data_sets"),
    ],
)
def test_public_modules_of_the_annex_can_be_imported(statement, used):
    assert run(f"{statement}\nprint(callable({used}))") == "True"


@pytest.mark.parametrize(
    "module", ["contrib.layers.layers", "keras.names", "internals.names", "estimator.names"]
)
def test_a_module_of_the_annex_can_be_imported_before_tensorfleet(module):
    program = (
        f"import tensorfleet_legacy.{module}, sys\nprint(sys.modules['tensorfleet'].constant(1.0).dtype)"
    )
    assert run(program) == "<dtype: 'float32'>"


def test_every_name_in_the_index_can_be_loaded():
    assert (
        int(run("from tensorfleet.base import naming\nimport tensorfleet\nprint(len(naming.exported()))"))
        > 6000
    )


def test_the_index_of_both_packages_is_what_the_code_registers():
    tool = [sys.executable, str(ROOT / "tools" / "make_index.py"), "--check"]
    done = subprocess.run(tool, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
