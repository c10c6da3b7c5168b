"""GPU options, with CPU devices of JAX in place of cards."""

import os
import subprocess
import sys
import textwrap

import pytest

import tensorfleet as tf
from tensorfleet.runtime import gpus

_SIMULATED = """
import os
import warnings

import jax
import tensorfleet as tf
from tensorfleet.runtime import devices, gpus

real, within = jax.devices, devices._within
jax.devices = lambda kind=None: real("cpu")
gpus.has_driver = lambda: True
gpus.card_count = lambda: 4


def watched(environment, start):
    print("starts with", {k: v for k, v in sorted(environment.items()) if "CLIENT" in k})
    return within(environment, start)


devices._within = watched


def card(session, name):
    return devices.jax_device(name).local_hardware_id


def names(session):
    return [d.name.rsplit("/", 1)[1] for d in session.list_devices()]
"""


def simulated(program, **environment):
    """What a program prints in a process that has four cards."""
    plain = {k: v for k, v in os.environ.items() if "CLIENT" not in k and not k.startswith(("CUDA", "JAX"))}
    plain |= {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu", **environment}
    done = subprocess.run(
        [sys.executable, "-c", _SIMULATED + textwrap.dedent(program)],
        env=plain,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


_MEMORY = """
    options = tf.GPUOptions(per_process_gpu_memory_fraction=0.25, allow_growth=True, visible_device_list="2,1")
    with tf.Session(config=tf.ConfigProto(gpu_options=options)) as session:
        print(names(session))
        print([card(session, f"/device:GPU:{i}") for i in range(2)])
    from jax._src import xla_bridge
    print(xla_bridge.CUDA_VISIBLE_DEVICES.value)
    print("XLA_PYTHON_CLIENT_PREALLOCATE" in os.environ)
"""


def test_jax_starts_with_the_options_of_the_first_session():
    assert simulated(_MEMORY) == [
        "starts with {'XLA_PYTHON_CLIENT_MEM_FRACTION': '0.250', 'XLA_PYTHON_CLIENT_PREALLOCATE': 'false'}",
        "['device:CPU:0', 'device:GPU:0', 'device:GPU:1']",
        "[2, 1]",
        "1,2",
        "False",
    ]


def test_what_the_user_has_set_in_the_environment_stays():
    first = simulated(_MEMORY, XLA_CLIENT_MEM_FRACTION="0.5", XLA_PYTHON_CLIENT_PREALLOCATE="true")[0]
    assert first == "starts with {}"


def test_operations_run_on_the_card_that_was_listed():
    found = simulated("""
        import numpy as np
        with tf.device("/gpu:0"):
            x = tf.placeholder(tf.float32, [4])
            y = tf.square(x)
        config = tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list="3"))
        with tf.Session(config=config) as session:
            print(session.run(y, {x: np.arange(4.0)}).tolist())
            print(session._engine.placer.device_of(y.op), card(session, "/device:GPU:0"))
    """)
    assert found[1:] == ["[0.0, 1.0, 4.0, 9.0]", "/job:localhost/replica:0/task:0/device:GPU:0 3"]


def test_another_list_of_cards_in_the_same_process_is_refused():
    found = simulated("""
        def listing(cards):
            return tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list=cards))
        with tf.Session(config=listing("1")) as session, tf.Session() as other:
            print(names(other), card(other, "/device:GPU:0"))
        try:
            tf.Session(config=listing("0"))
        except tf.errors.AlreadyExistsError as e:
            print(e.message)
    """)
    assert found[1] == "['device:CPU:0', 'device:GPU:0'] 1"
    assert found[2].startswith(
        "TensorFlow device (GPU:0) is being mapped to multiple devices (0 now, and 1 previously)"
    )


def test_memory_options_that_come_too_late_are_warned_of():
    found = simulated("""
        tf.Session().close()
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            for _ in range(2):
                options = tf.GPUOptions(per_process_gpu_memory_fraction=0.25, allow_growth=True)
                tf.Session(config=tf.ConfigProto(gpu_options=options)).close()
        print(*[str(w.message).partition(":")[0] for w in heard], sep="; ")
    """)
    late = [
        "gpu_options.per_process_gpu_memory_fraction=0.25 has no effect",
        "gpu_options.allow_growth=True has no effect",
    ]
    assert found[1] == "; ".join(late)


def test_so_are_those_that_come_after_the_programs_own_use_of_jax():
    found = simulated("""
        real("cpu")
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            options = tf.GPUOptions(per_process_gpu_memory_fraction=0.25, visible_device_list="1")
            with tf.Session(config=tf.ConfigProto(gpu_options=options)) as session:
                print(card(session, "/device:GPU:0"))
        print(*[str(w.message).partition(":")[0] for w in heard], sep="; ")
    """)
    assert found[1:] == ["1", "gpu_options.per_process_gpu_memory_fraction=0.25 has no effect"]


def test_tf_config_chooses_cards_before_jax_starts_and_not_later():
    found = simulated("""
        cards = tf.config.experimental.list_physical_devices("GPU")
        tf.config.experimental.set_visible_devices(cards[2:3], "GPU")
        tf.config.experimental.set_memory_growth(cards[2], True)
        with tf.Session() as session:
            print(names(session), card(session, "/device:GPU:0"))
        for change in (lambda: tf.config.experimental.set_memory_growth(cards[2], False),
                       lambda: tf.config.experimental.set_visible_devices(cards[:1], "GPU")):
            try:
                change()
            except RuntimeError as e:
                print(e)
    """)
    assert found == [
        "starts with {'XLA_PYTHON_CLIENT_PREALLOCATE': 'false'}",
        "['device:CPU:0', 'device:GPU:0'] 2",
        "Physical devices cannot be modified after being initialized",
        "Visible devices cannot be modified after being initialized",
    ]


def test_a_session_without_gpus_does_not_start_jax():
    found = simulated("""
        with tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
            print(names(session))
    """)
    assert found == ["['device:CPU:0']"]


def test_a_card_that_is_not_there_is_refused():
    found = simulated("""
        try:
            tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list="1,9")))
        except tf.errors.InvalidArgumentError as e:
            print(e.message)
    """)
    assert found[0].startswith(
        "'visible_device_list' listed an invalid Device id '9' but visible device count is 4"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"visible_device_list": "9,foo"}, "Could not parse entry in 'visible_device_list': 'foo'"),
        ({"visible_device_list": "-1"}, "Could not parse entry in 'visible_device_list': '-1'"),
        ({"per_process_gpu_memory_fraction": 7.0}, "must be between 0 and 1"),
        ({"per_process_gpu_memory_fraction": -0.1}, "must be between 0 and 1"),
    ],
)
def test_options_that_mean_nothing_are_refused_on_any_machine(options, said):
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(**options)))


def test_a_card_listed_twice_is_refused():
    config = tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list="1,1"))
    with pytest.raises(tf.errors.AlreadyExistsError, match="visible_device_list contained a duplicate entry"):
        tf.Session(config=config)


@pytest.mark.skipif(gpus.has_driver(), reason="this machine has GPUs")
@pytest.mark.parametrize("cards", ["1", "0"])
def test_a_list_of_cards_is_no_error_where_there_are_none(cards):
    config = tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list=cards, allow_growth=True))
    with tf.Session(config=config) as session:
        assert session.run(tf.constant(1.0)) == 1.0
