"""Options that an engine does not have are refused, not ignored."""

import itertools

import pytest

from tensorfleet.cli.engines.base import RunOptions, TaskResources
from tensorfleet.cli.engines.unused_options import check_options

GIVEN = {
    "--cluster": {"cluster_file": "cluster.yaml"},
    "--submit": {"submit": True},
    "--address": {"address": "there"},
    "--time": {"time_limit": "2:00:00"},
    "--engine-arg": {"engine_arguments": ("a=b",)},
    "--image": {"image": "me/project"},
    "--namespace": {"namespace": "mine"},
}
NEEDED = {"--cpus-per-task": {"cpus": 2.0}, "--memory": {"memory_bytes": 1 << 30}}
HAVE = {
    "local": set(),
    "ssh": {"--cluster"},
    "ray": {"--address", "--engine-arg", "--cpus-per-task", "--memory"},
    "slurm": {"--submit", "--time", "--engine-arg", "--cpus-per-task", "--memory"},
    "kubernetes": {*GIVEN, *NEEDED} - {"--cluster", "--submit"},
}


def check(engine, flag):
    options = RunOptions("digits", "train.py", **GIVEN.get(flag, {}))
    check_options(engine, options, TaskResources(**NEEDED.get(flag, {})))


@pytest.mark.parametrize("engine, flag", list(itertools.product(HAVE, [*GIVEN, *NEEDED])))
def test_an_option_is_heeded_or_refused(engine, flag):
    if flag in HAVE[engine]:
        check(engine, flag)
        return
    with pytest.raises(ValueError, match=f"^{flag} is for .*, and this run is on {engine}. Leave it out, or"):
        check(engine, flag)


def test_a_refusal_names_the_engines_and_another_way():
    with pytest.raises(ValueError) as refused:
        check("ray", "--time")
    assert str(refused.value) == (
        "--time is for slurm and kubernetes, and this run is on ray. Leave it out, or use --on slurm or --on kubernetes. "
        "--timeout S stops any run after S seconds."
    )
    with pytest.raises(ValueError, match="use --on slurm. `ray job submit` submits a run to Ray.$"):
        check("ray", "--submit")


def test_an_engine_of_another_package_gets_all_options():
    for flag in (*GIVEN, *NEEDED):
        check("mpi", flag)


def test_a_plain_run_is_refused_nowhere():
    for engine in HAVE:
        check_options(engine, RunOptions("digits", "train.py"), TaskResources(gpus=1))
