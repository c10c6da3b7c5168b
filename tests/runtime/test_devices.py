"""The devices of a process: how XLA is started."""

import os
import platform
import subprocess
import sys

import pytest

from tensorfleet.runtime import devices

_PROGRAM = """
import os
from tensorfleet.runtime.devices import load_jax
jax, jnp = load_jax()
print(os.environ.get("XLA_FLAGS"), "NPROC" in os.environ)
from jax._src import compiler
made = compiler.get_compile_options(num_replicas=1, num_partitions=1)
print("xla_cpu_disable_loop_unrolling" in str(made.executable_build_options.debug_options))
"""


def test_flags_of_the_user_are_kept():
    assert devices._flags("") == "--xla_backend_extra_options=xla_cpu_disable_loop_unrolling=true"
    assert devices._flags("--xla_cpu_ftz=false").startswith(
        "--xla_cpu_ftz=false --xla_backend_extra_options="
    )
    chosen = "--xla_backend_extra_options=xla_cpu_optimize_for_size=true"
    assert devices._flags(chosen) == chosen


def test_xla_starts_with_our_flags_and_the_environment_stays_as_it_was():
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["None", "False", "True"], done.stderr


_FAULTS = """
import resource
import numpy as np
import tensorfleet as tf

x = tf.placeholder(tf.float32, [6144, 4096])
made = tf.exp(x) + 1.0
given = np.zeros([6144, 4096], np.float32)
with tf.Session() as session:
    for run in range(25):
        if run == 10:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        session.run(made, {x: given})
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc's malloc")
def test_memory_of_one_step_is_there_for_the_next_however_large_it_is():
    """Fifteen steps over 100 MB, 25,000 pages each, that were to be had from the system and given back.

    The first ten find out whether numpy or XLA is faster, each with memory of its own.
    """
    plain = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    told = subprocess.run(
        [sys.executable, "-c", _FAULTS], env=plain, capture_output=True, text=True, timeout=300, check=True
    )
    assert int(told.stdout) < 15 * 25_000 / 3
