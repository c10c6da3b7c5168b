from pathlib import Path

import tensorfleet as tf


def test_resources_are_read_from_the_package():
    assert tf.resource_loader.load_resource("__init__.py").startswith(b'"""TensorFleet')


def test_data_files_lie_beside_the_caller():
    assert tf.resource_loader.get_data_files_path() == str(Path(__file__).parent)
