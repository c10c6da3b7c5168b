"""The devices of a process: how XLA is started."""

import os
import subprocess
import sys

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
