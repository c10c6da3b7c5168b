"""`tf.config`: the devices of this machine, and settings that are remembered."""

import pytest

import tensorfleet as tf
from tensorfleet.runtime import devices
from tensorfleet.session import config

device_lib = tf.python.client.device_lib


@pytest.fixture(autouse=True)
def fresh_settings(monkeypatch):
    monkeypatch.setattr(config, "_settings", config._Settings())
    monkeypatch.setattr(devices, "_cpus", [1])


def test_the_cpu_is_listed():
    (cpu,) = tf.config.experimental.list_physical_devices("CPU")
    assert cpu == ("/physical_device:CPU:0", "CPU")
    assert tf.config.list_physical_devices() == tf.config.experimental.get_visible_devices()
    assert device_lib.list_local_devices()[0].name == "/device:CPU:0"
    assert device_lib.list_local_devices()[0].device_type == "CPU"


def test_a_cpu_can_be_divided_but_has_no_memory_growth():
    (cpu,) = tf.config.experimental.list_physical_devices("CPU")
    one = tf.config.experimental.VirtualDeviceConfiguration()
    tf.config.experimental.set_virtual_device_configuration(cpu, [one, one])
    assert [d.name for d in tf.config.experimental.list_logical_devices("CPU")] == [
        "/device:CPU:0",
        "/device:CPU:1",
    ]
    with tf.device("/cpu:1"), tf.Session() as sess:
        assert sess.run(tf.constant(1.0) + 1.0) == 2.0
    with pytest.raises(ValueError, match="Cannot set memory growth on non-GPU devices"):
        tf.config.experimental.set_memory_growth(cpu, True)
    with pytest.raises(ValueError, match="Unrecognized device"):
        tf.config.experimental.set_memory_growth("gpu", True)


def test_settings_are_remembered():
    tf.config.set_soft_device_placement(True)
    tf.config.threading.set_inter_op_parallelism_threads(3)
    tf.config.optimizer.set_experimental_options({"constant_folding": False})
    tf.config.experimental.set_device_policy("warn")
    assert tf.config.get_soft_device_placement() is True
    assert tf.config.threading.get_inter_op_parallelism_threads() == 3
    assert tf.config.threading.get_intra_op_parallelism_threads() == 0
    assert tf.config.optimizer.get_experimental_options() == {"constant_folding": False}
    assert tf.config.experimental.get_device_policy() == "warn"
    with pytest.raises(ValueError, match="Not a valid device policy"):
        tf.config.experimental.set_device_policy("perhaps")
    tf.config.experimental.set_visible_devices([], "CPU")
    assert tf.config.experimental.list_logical_devices("CPU") == []


def test_one_device_may_be_given_without_a_list():
    (cpu,) = tf.config.experimental.list_physical_devices("CPU")
    tf.config.experimental.set_visible_devices(cpu)
    assert tf.config.experimental.get_visible_devices() == [cpu]
    tf.config.experimental.set_visible_devices(None, "CPU")
    assert tf.config.experimental.get_visible_devices("CPU") == []
