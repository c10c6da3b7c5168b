"""Inside a run `import tensorflow` is TensorFleet, whole and in parts."""

import functools
import importlib
import subprocess
import sys

import pytest

import tensorfleet as tf
from tensorfleet.cli.scripts import alias


@pytest.fixture(autouse=True)
def installed():
    alias.install()
    yield
    alias.uninstall()


def test_tensorflow_is_tensorfleet():
    import tensorflow
    import tensorflow.compat.v1 as v1

    assert tensorflow is tf and v1 is tf
    assert tensorflow.__version__.startswith("1.15")
    assert tf.__spec__.name == "tensorfleet"


@pytest.mark.parametrize(
    "module",
    [
        "tensorflow.train",
        "tensorflow.contrib",
        "tensorflow.contrib.layers",
        "tensorflow.contrib.framework",
        "tensorflow.python.platform.gfile",
        "tensorflow.python.client.timeline",
        "tensorflow.python.client.session",
        "tensorflow.python.framework.ops",
        "tensorflow.python.framework.graph_util",
        "tensorflow.python.ops.math_ops",
        "tensorflow.python.training.training_util",
        "tensorflow.python.util.nest",
        "tensorflow.core.framework.summary_pb2",
        "tensorflow.core.protobuf.config_pb2",
        "tensorflow.examples.tutorials.mnist.input_data",
        "tensorflow.examples.tutorials.mnist.mnist",
        "tensorflow.compat.v1.train",
        "tensorflow.compat.v1.nn",
        "tensorflow._api.v2.compat.v1.train",
    ],
)
def test_modules_that_scripts_import_are_there(module):
    name = module.replace("_api.v2.", "").replace("compat.v1.", "").partition(".")[2]
    imported = importlib.import_module(module)
    assert imported.__name__ == f"tensorfleet.{name}"


def test_names_are_imported_from_modules():
    from tensorflow.compat.v1.train import GradientDescentOptimizer
    from tensorflow.python.ops.array_ops import reverse
    from tensorflow.python.platform import flags, gfile

    assert GradientDescentOptimizer is tf.train.GradientDescentOptimizer
    assert reverse is tf.reverse
    assert gfile.Exists is tf.gfile.Exists
    assert flags is tf.app.flags


@pytest.mark.parametrize(
    "statement",
    [
        "from tensorflow.contrib import framework, layers, rnn, slim",
        "from tensorflow.contrib.framework.python.ops import add_arg_scope, arg_scope, variables",
        "from tensorflow.contrib.layers.python.layers import batch_norm, utils",
        "from tensorflow.contrib.slim.python.slim.learning import train",
        "from tensorflow.contrib.learn.python.learn.datasets import base, mnist",
        "from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2, tensorflow_server_pb2",
        "from tensorflow.contrib.layers.python.layers.utils import collect_named_outputs",
        "from tensorflow.contrib.learn.python.learn.learn_io.numpy_io import numpy_input_fn",
        "from tensorflow.contrib.tpu.python.tpu import tpu_config, tpu_estimator, tpu_optimizer",
        "from tensorflow.examples.tutorials.mnist.input_data import read_data_sets",
        "from tensorflow.python.estimator.util import fn_args",
        "from tensorflow.python.framework import constant_op, dtypes, errors, ops, tensor_util",
        "from tensorflow.python.ops import gen_math_ops, init_ops, nn_ops, standard_ops, state_ops",
        "from tensorflow.python.training import moving_averages, optimizer, saver, server_lib",
        "from tensorflow.python.util import compat, deprecation, nest, tf_inspect",
        "import tensorflow.gfile as gfile, tensorflow.python.platform",
    ],
)
def test_customary_imports_work(statement):
    exec(statement, {})


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("tensorflow.contrib.distributions", "Bernoulli"),
        ("tensorflow.contrib.rnn", "LSTMCell"),
        ("tensorflow.keras.layers", "Dense"),
        ("tensorflow.python.ops.rnn_cell", "GRUCell"),
    ],
)
def test_all_names_of_a_module_are_imported_by_a_star(module, name):
    names = {}
    exec(f"from {module} import *", names)
    assert names[name] is getattr(importlib.import_module(module), name)
    assert name in dir(importlib.import_module(module))
    assert "print" not in names


def test_modules_of_ops_lend_every_public_name():
    from tensorflow.python.ops import math_ops, nn_ops

    assert math_ops.cumprod is tf.cumprod
    assert nn_ops.softmax is tf.nn.softmax
    with pytest.raises(AttributeError, match="docs/compatibility.md"):
        math_ops.no_such_function  # noqa: B018


@pytest.mark.parametrize(
    "statement", ["import tensorflow.contrib.nowhere", "from tensorflow.contrib import nowhere"]
)
def test_a_missing_part_is_named(statement):
    with pytest.raises(ImportError, match=r"no tensorflow\.contrib\.nowhere.*docs/compatibility\.md"):
        exec(statement)


def test_processes_that_a_script_starts_have_the_alias_too():
    code = "import tensorflow as tf, tensorflow.train; print(tf.__name__, tensorflow.train.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["tensorfleet", "tensorfleet.train"]


def test_a_module_lent_by_another_is_imported_by_its_path():
    from tensorflow.contrib.keras import models
    from tensorflow.contrib.keras.layers import Dense

    assert Dense is tf.keras.layers.Dense and models is tf.keras.models
    assert tf.contrib.keras.layers is tf.keras.layers


@pytest.fixture
def without_keras(monkeypatch):
    monkeypatch.setattr(alias, "_stands_for_keras", lambda: True)
    yield
    for name in [n for n in sys.modules if n.partition(".")[0] == "keras"]:
        del sys.modules[name]


def test_keras_is_ours_where_nobody_else_has_it(without_keras):
    import keras
    from keras.backend.tensorflow_backend import set_session
    from keras.layers.core import Dense
    from keras.utils import np_utils

    assert keras is tf.keras and np_utils.to_categorical is tf.keras.utils.to_categorical
    assert Dense is tf.keras.layers.Dense and set_session is tf.keras.backend.set_session
    with pytest.raises(ImportError, match=r"no tensorflow\.keras\.nowhere"):
        importlib.import_module("keras.nowhere")


def test_uninstalling_leaves_nothing():
    alias.uninstall()
    assert "tensorflow" not in sys.modules
    assert not any(type(f).__module__ == alias.__name__ for f in sys.meta_path)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("distribute.OtherStrategy", "docs/distribute.md"),
        ("contrib.distribute.OtherStrategy", "docs/distribute.md"),
        ("contrib.eager.Iterator", "tf.Session"),
        ("enable_eager_execution", "tf.Session"),
        ("python.debug.TensorBoardDebugWrapperSession", "tf.Print"),
    ],
)
def test_a_name_that_is_absent_says_what_to_use(name, instead):
    with pytest.raises(AttributeError, match=f"has no attribute .*{instead}"):
        functools.reduce(getattr, name.split("."), tf)


def test_a_test_of_tensorflows_tree_finds_what_other_tests_of_it_share(tmp_path):
    tests = tmp_path / "tensorflow" / "python" / "kernel_tests"
    (tests / "random").mkdir(parents=True)
    (tests / "random" / "helper.py").write_text("VALUE = 3\n")
    (tests / "bias_op_base.py").write_text("from tensorflow.python.ops import array_ops\n")
    script = tests / "random" / "some_test.py"
    script.write_text(
        "from tensorflow.python.kernel_tests import bias_op_base\n"
        "from tensorflow.python.kernel_tests.random import helper, util\n"
        "from tensorflow.python.platform import test\n"
        "print(util.chi_squared and helper.VALUE, bias_op_base.array_ops.__name__, test.test_src_dir_path('core/lib'))\n"
        "from tensorflow.python.kernel_tests import absent\n"
    )
    result = subprocess.run(
        [sys.executable, "-m", "tensorfleet", str(script)], capture_output=True, text=True, timeout=60
    )
    assert result.stdout == f"3 tensorfleet.python.ops.array_ops {tmp_path}/tensorflow/core/lib\n"
    assert "TensorFleet has no tensorflow.python.kernel_tests.absent" in result.stderr


def test_a_helper_of_tests_may_lie_beside_the_script(tmp_path):
    (tmp_path / "bias_op_base.py").write_text("VALUE = 4\n")
    (tmp_path / "some_test.py").write_text(
        "from tensorflow.python.kernel_tests import bias_op_base\nprint(bias_op_base.VALUE)\n"
    )
    command = [sys.executable, "-m", "tensorfleet", str(tmp_path / "some_test.py")]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout == "4\n"


def test_the_packages_of_tensorflows_parts_are_tensorfleet_too():
    import tensorflow_core
    import tensorflow_estimator
    from tensorflow_core.python.keras.layers import Dense
    from tensorflow_estimator.python.estimator import run_config

    assert tensorflow_core is tf
    assert tensorflow_estimator.estimator is tf.estimator
    assert Dense is tf.keras.layers.Dense
    assert run_config.RunConfig is tf.estimator.RunConfig
    with pytest.raises(ImportError, match="no tensorflow.python.nowhere"):
        importlib.import_module("tensorflow_core.python.nowhere")


def test_version_2_is_imported_by_its_path():
    import tensorflow.compat.v2 as tf2
    from tensorflow.compat.v2 import nn

    assert tf2.linalg.matmul is tf.linalg.matmul
    assert nn.dropout is tf2.nn.dropout is not tf.nn.dropout


def test_a_package_may_show_a_function_by_the_name_of_its_module():
    from tensorflow.contrib.framework.python.ops import arg_scope
    from tensorflow.contrib.framework.python.ops.arg_scope import add_arg_scope

    assert arg_scope is tf.contrib.framework.arg_scope and add_arg_scope is tf.contrib.framework.add_arg_scope
    from tensorflow.contrib.framework.python.ops import arg_scope as again

    assert again is arg_scope


@pytest.mark.parametrize("kind", ["spawn", "forkserver"])
def test_processes_of_multiprocessing_have_the_alias_too(kind, tmp_path):
    (tmp_path / "spawning.py").write_text(
        "import multiprocessing\n"
        "import tensorflow as tf\n"
        "def doubled(x):\n"
        "    with tf.Session() as sess:\n"
        "        return float(sess.run(tf.constant(x) * 2))\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context({kind!r}).Pool(1) as pool:\n"
        "        print(pool.map_async(doubled, [3.0]).get(50))\n"
    )
    command = [sys.executable, "-m", "tensorfleet", str(tmp_path / "spawning.py")]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout == "[6.0]\n"
