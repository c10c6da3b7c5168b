"""Runs whose logs, output or checkpoints find no room."""

import contextlib
import os
import subprocess
import sys

import pytest

from tensorfleet.cli.output import Output
from tests.support.launching import run

SCRIPT = (
    "print('x' * 1000, flush=True)\nfor i in range(2000):\n    print('line', i)\nprint('done', flush=True)\n"
)


@pytest.fixture
def here(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def command(*arguments):
    return [sys.executable, "-m", "tensorfleet", "run", "--name", "r", *arguments, "train.py"]


def test_a_log_that_finds_no_room_costs_the_run_nothing_but_one_warning(here):
    logs = here / "runs" / "r"
    logs.mkdir(parents=True)
    (logs / "main-0.log").symlink_to("/dev/full")
    done = run(here, "run", "--name", "r", "train.py")
    assert done.code == 0 and done.stdout.endswith("line 1999\ndone\n"), done.stderr
    warning = "tensorfleet: cannot write the log runs/r/main-0.log: No space left on device. The run continues without it.\n"
    assert done.stdout.count("cannot write") == 1 and warning in done.stdout


def test_a_log_folder_that_cannot_be_made_costs_the_run_nothing_but_one_warning(here):
    (here / "runs").write_text("a file")
    done = run(here, "run", "--ps", "0", "--workers", "2", "--name", "r", "train.py")
    assert done.code == 0 and done.stdout.count("done") == 2, done.stderr
    assert done.stdout.count("cannot write the log runs/r: Not a directory.") == 1


def test_an_output_that_finds_no_room_leaves_the_logs(here):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command(), cwd=here, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert done.returncode == 0
    assert done.stderr == (
        "tensorfleet: cannot write the output: No space left on device. The run continues without it. "
        "The output is in runs/r.\n"
    )
    assert (here / "runs" / "r" / "main-0.log").read_text().endswith("line 1999\ndone\n")


def test_no_room_for_output_and_errors_is_no_failure_either(here):
    with open("/dev/full", "w") as full:
        done = subprocess.run(command(), cwd=here, stdout=full, stderr=full, timeout=120)
    assert done.returncode == 0


def test_a_log_is_continued_when_there_is_room_again(tmp_path, capsys):
    output = Output(["a"], sys.stdout, tmp_path)
    output.line("a", "one")
    log = output._logs["a"]
    with open("/dev/full", "wb", buffering=0) as full, contextlib.closing(log):
        output._logs["a"] = full
        output.line("a", "two")
        output.line("a", "three")
        output._logs["a"] = log
        output.line("a", "four")
        output.close()
    assert (tmp_path / "a.log").read_text() == "one\nfour\n"
    assert capsys.readouterr().out.count("cannot write the log") == 1


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 200 KB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        timeout=30,
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=30)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may mount a small file system")
def test_a_run_goes_on_while_the_disk_of_its_logs_is_full(here, small_disk):
    (small_disk / "ballast").write_bytes(bytes(196 * 1024))
    done = run(here, "run", "--name", "r", "--log-dir", str(small_disk), "train.py")
    assert done.code == 0 and done.stdout.endswith("done\n"), done.stderr
    assert done.stdout.count(f"cannot write the log {small_disk}/r/main-0.log: No space left on device.") == 1


TRAINING = """
import os
import tensorflow as tf
step = tf.train.get_or_create_global_step()
v = tf.get_variable("v", [8192], initializer=tf.zeros_initializer())
train = tf.group(v.assign_add(tf.ones([8192])), tf.assign_add(step, 1))
folder = os.environ["MODEL"]
with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, save_checkpoint_steps=2, save_summaries_steps=None) as sess:
    sess.run(train)
    with open(os.path.join(folder, "ballast"), "wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(1024))
        except OSError:
            pass
    for _ in range(4):
        sess.run(train)
    print("trained", flush=True)
print("ended well")
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root may mount a small file system")
def test_a_run_whose_last_checkpoint_finds_no_room_has_failed(tmp_path, small_disk):
    (tmp_path / "train.py").write_text(TRAINING)
    done = run(tmp_path, "run", "train.py", MODEL=str(small_disk))
    assert done.code == 1
    assert "trained" in done.stdout and "ended well" not in done.stdout
    error = "tensorfleet.errors.ResourceExhaustedError: Could not save the last checkpoint, of step 5: "
    assert f"{error}{small_disk}/model.ckpt-5" in done.stderr.replace("\n  ", "\n").replace(
        "  tensor", "tensor"
    )
    assert (
        "No space left on device" in done.stderr
        and f"The one before it is {small_disk}/model.ckpt-0" in done.stderr
    )
