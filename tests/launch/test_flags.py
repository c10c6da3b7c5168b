"""A script's flags, read from its source."""

import pytest

from tensorfleet.launch.flags import Flag, flags_of, roles

ABSL = """
import tensorflow as tf
flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "where")
flags.DEFINE_string(flag_name="worker_hosts", default_value="", docstring="")
tf.app.flags.DEFINE_string('job_name', None, "")
flags.DEFINE_integer("task_index", 0, "")
flags.DEFINE_float("rate", 0.1, "")
"""
ARGPARSE = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--ps", nargs="+")
parser.add_argument("-w", "--workers", type=int)
parser.add_argument("--job")
parser.add_argument("--task", type=int, default=0)
parser.add_argument("data")
"""
CLICK = """
import click
@click.command()
@click.option("--job_name")
@click.option("--task_id", type=click.INT)
def main(job_name, task_id): pass
"""


def scan(tmp_path, source):
    path = tmp_path / "train.py"
    path.write_text(source)
    return flags_of(path)


def test_flags_of_absl(tmp_path):
    found = scan(tmp_path, ABSL)
    assert set(found) == {"ps_hosts", "worker_hosts", "job_name", "task_index", "rate"}
    assert found["task_index"].is_number and not found["job_name"].is_number
    assert set(roles(found)) == {"ps_hosts", "worker_hosts", "job_name", "task_index"}


def test_flags_of_argparse_with_other_spellings(tmp_path):
    found = roles(scan(tmp_path, ARGPARSE))
    assert found["ps_hosts"] == Flag("ps", many=True)
    assert found["job_name"].name == "job"
    assert found["task_index"].name == "task"
    assert found["worker_count"].name == "workers"  # a number: how many, not where
    assert "worker_hosts" not in found


def test_flags_of_click(tmp_path):
    found = roles(scan(tmp_path, CLICK))
    assert (found["job_name"].name, found["task_index"].name) == ("job_name", "task_id")


def test_flags_of_modules_beside_the_script_count(tmp_path):
    (tmp_path / "settings.py").write_text(ABSL)
    package = tmp_path / "lib"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "more.py").write_text("from absl import flags\nflags.DEFINE_integer('num_workers', 1, '')\n")
    found = scan(tmp_path, "import os\nfrom settings import FLAGS\nfrom lib import more\n")
    assert {"job_name", "num_workers"} <= set(found)


def test_the_customary_name_goes_before_others(tmp_path):
    source = "flags.DEFINE_integer('worker_index', 0, '')\nflags.DEFINE_integer('task_index', 0, '')\n"
    assert roles(scan(tmp_path, source))["task_index"].name == "task_index"


def test_names_can_be_given():
    assert roles({}, {"job_name": "kind"}) == {"job_name": Flag("kind")}
    with pytest.raises(ValueError, match="knows ps_hosts, .*but not 'jobs'"):
        roles({}, {"jobs": "kind"})


def test_a_script_that_does_not_parse_has_no_flags(tmp_path):
    assert scan(tmp_path, "print 'python 2'\n") == {}


def test_flags_defined_in_a_loop_over_their_names(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        'for name in ["--ps_hosts", "--worker_hosts"]:\n    parser.add_argument(name, help="--not_this")\n'
        'for name, text in {"job_name": "which", "task_index": "which"}.items():\n    flags.DEFINE_string(name, None, text)\n'
        'for word in ("--unused",):\n    print(word)\n'
    )
    assert set(roles(flags_of(script))) == {"ps_hosts", "worker_hosts", "job_name", "task_index"}
    assert "unused" not in flags_of(script)
