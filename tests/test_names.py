"""How programs import TensorFleet."""

import subprocess
import sys

import pytest

import tensorfleet as tf


@pytest.mark.parametrize(
    "module", ["compat.v1", "compat.v1.train", "compat.v1.keras.layers", "compat.v2", "train"]
)
def test_a_public_module_can_be_imported_by_its_full_name(module):
    program = f"import tensorfleet.{module} as imported\nprint(imported.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"tensorfleet.{module}".replace(".compat.v1", "")


def test_version_1_is_tensorfleet_itself():
    import tensorfleet.compat.v1 as v1
    from tensorfleet.compat.v1.train import AdamOptimizer

    assert v1 is tf
    assert AdamOptimizer is tf.train.AdamOptimizer


def test_a_module_that_tensorflow_leaves_out_of_version_1_is_not_there():
    with pytest.raises(ModuleNotFoundError):
        import tensorfleet.compat.v1.contrib  # noqa: F401
