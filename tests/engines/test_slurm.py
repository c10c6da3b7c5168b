"""Runs on a real Slurm of two nodes on this machine."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.engines.slurm_cluster import CPUS, FOREVER, TRAIN, is_installed, slurm_cluster, started, wait_until
from tests.support.launching import Launch, launched

pytestmark = [
    pytest.mark.engines,
    pytest.mark.skipif(not is_installed(), reason="there is no Slurm here: run tools/engines.sh"),
]


@pytest.fixture(scope="module")
def cluster():
    with slurm_cluster() as cluster:
        yield cluster


@pytest.fixture
def project(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def run(cluster, project, *arguments, **environment) -> Launch:
    """The same, to its end."""
    with started(cluster, project, *arguments, **environment) as run:
        return run.end()


def _pid_of(launch, *words):
    """The process of a task with these arguments."""
    found = []

    def look():
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                command = process.cmdline()
                is_task = command[1:3] == ["-m", "tensorfleet"] and set(words) <= set(command)
                if is_task and launch.mark.encode() in Path(f"/proc/{process.pid}/environ").read_bytes():
                    found.append(process.pid)
        return found

    wait_until(look, f"a task with {words}")
    return found[0]


def _node_of(launch, label):
    match = re.search(rf"\[{label}\]\s+on (n\d)", launch.stdout)
    assert match, launch.stdout
    return match[1]


def _text(launch):
    return launch.stdout + launch.stderr


# -- inside an allocation ----------------------------------------------------------------------------


def test_a_run_in_an_allocation_trains_to_its_end_on_both_nodes(cluster, project):
    with cluster.allocation("-N2", "--ntasks-per-node=2") as job:
        done = run(cluster, project, "--ps", "1", "--workers", "2", "train.py", **job)
    assert done.code == 0, _text(done)
    assert done.stdout.count("trained") == 2
    assert {_node_of(done, "worker/0"), _node_of(done, "worker/1")} == {"n1", "n2"}
    assert "CANCELLED" not in _text(done)


def test_parameter_servers_are_on_different_nodes(cluster, project):
    with cluster.allocation("-N2", "--ntasks-per-node=3") as job:
        done = run(cluster, project, "--ps", "2", "--workers", "1", "train.py", **job)
    assert done.code == 0, _text(done)
    assert {_node_of(done, "ps/0"), _node_of(done, "ps/1")} == {"n1", "n2"}


def test_a_heterogeneous_job_has_its_tasks_where_they_fit(cluster, project):
    with cluster.allocation("-n1", "-w", "n1", ":", "-n2", "-w", "n2", "--gres=gpu:2", parts=2) as job:
        done = run(
            cluster, project, "--ps", "1", "--workers", "2", "--gpus-per-worker", "1", "train.py", **job
        )
    assert done.code == 0, _text(done)
    nodes = {label: _node_of(done, label) for label in ("ps/0", "worker/0", "worker/1")}
    assert nodes == {"ps/0": "n1", "worker/0": "n2", "worker/1": "n2"}


def test_the_token_is_on_no_command_line_and_in_no_environment(cluster, project):
    token = "a-token-of-this-test"
    with (
        cluster.allocation("-N2", "-n4") as job,
        started(
            cluster, project, "--workers", "1", "train.py", "--", FOREVER, TENSORFLEET_TOKEN=token, **job
        ) as launch,
    ):
        launch.read_until("began at")
        holders = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                texts = (" ".join(process.cmdline()), Path(f"/proc/{process.pid}/environ").read_text())
                if process.pid != launch.process.pid and any(token in text for text in texts):
                    holders.append(process.cmdline())
        assert holders == []


def test_a_worker_that_fails_gives_its_exit_code(cluster, project):
    script = project / "train.py"
    script.write_text(TRAIN + "\nif FLAGS.task_index == 1:\n    sys.exit(7)\ntime.sleep(300)\n")
    with cluster.allocation("-N2", "-n4") as job:
        done = run(cluster, project, "--ps", "1", "--workers", "2", "train.py", **job)
    assert done.code == 7, _text(done)
    assert re.search(r"FAILED: worker/1 on n\d exited with code 7", done.stderr)


def test_a_worker_that_is_killed_has_died_by_that_signal(cluster, project):
    with (
        cluster.allocation("-N2", "-n4") as job,
        started(cluster, project, "--ps", "1", "--workers", "2", "train.py", "--", FOREVER, **job) as launch,
    ):
        launch.read_until("began at", 2)
        os.kill(_pid_of(launch, "--job_name=worker", "--task_index=1"), signal.SIGKILL)
        launch.end()
    assert launch.code == 137, _text(launch)
    assert re.search(r"FAILED: worker/1 on n\d was killed by SIGKILL", launch.stderr)


def test_a_parameter_server_that_is_killed_is_named(cluster, project):
    with (
        cluster.allocation("-N2", "-n4") as job,
        started(cluster, project, "--ps", "1", "--workers", "2", "train.py", "--", FOREVER, **job) as launch,
    ):
        launch.read_until("began at", 2)
        os.kill(_pid_of(launch, "--job_name=ps"), signal.SIGKILL)
        launch.end()
    assert launch.code != 0
    assert "ps/0" in launch.stderr.partition("FAILED")[2]


def test_an_interrupted_run_leaves_nothing(cluster, project):
    with (
        cluster.allocation("-N2", "-n4") as job,
        started(cluster, project, "--ps", "1", "--workers", "2", "train.py", "--", FOREVER, **job) as launch,
    ):
        launch.read_until("began at", 2)
        launch.process.send_signal(signal.SIGINT)
        assert launch.end().code == 130, _text(launch)


def test_a_killed_launcher_leaves_nothing(cluster, project):
    with cluster.allocation("-N2", "-n4") as job:
        with started(
            cluster, project, "--ps", "1", "--workers", "2", "train.py", "--", FOREVER, **job
        ) as launch:
            launch.read_until("began at", 2)
            launch.process.kill()
        # The allocation is the user's.
        assert job["SLURM_JOB_ID"] in cluster.busy()


def test_tasks_move_to_the_other_node_when_theirs_dies(cluster, project):
    folder = project / "checkpoints"
    options = ("--ps", "1", "--workers", "1:2", "train.py", "--", f"--train_dir={folder}", FOREVER)
    try:
        with (
            cluster.allocation("-N2", "-n8", "--no-kill") as job,
            started(cluster, project, *options, **job) as launch,
        ):
            launch.read_until("began at", 2)
            nodes = {label: _node_of(launch, label) for label in ("ps/0", "worker/0", "worker/1")}
            assert set(nodes.values()) == {"n1", "n2"}
            lost = next(label for label in ("worker/1", "worker/0") if nodes[label] == "n2")
            cluster.kill_node("n2")
            launch.read_until(f"[{lost}] on n1")
            launch.process.send_signal(signal.SIGINT)
            launch.end()
    finally:
        cluster.start_node("n2")
    assert f"{lost} is lost: node n2 has failed" in _text(launch)


def test_an_allocation_that_ends_is_the_reason(cluster, project):
    with cluster.allocation("-N2", "-n4") as job:
        with started(cluster, project, "--workers", "2", "train.py", "--", FOREVER, **job) as launch:
            launch.read_until("began at", 2)
            cluster.tell("scancel", job["SLURM_JOB_ID"])
            launch.end()
    assert launch.code not in (0, None)
    assert f"Slurm job {job['SLURM_JOB_ID']} was cancelled" in _text(launch)


def test_too_small_an_allocation_says_what_was_asked_and_what_there_is(cluster, project):
    with cluster.allocation("-N1", "-n2", "--mem=500") as job:
        done = run(cluster, project, "--ps", "1", "--workers", "2", "--cpus-per-task", "2", "train.py", **job)
    assert done.code == 127
    assert "no room for 1 ps with 2 CPUs each and 2 workers with 2 CPUs each: n" in done.stderr
    assert "has 2 CPUs, 500 MB" in done.stderr


def test_an_allocation_that_is_over_is_named(cluster, project):
    with cluster.allocation("-n1") as job:
        pass
    done = run(cluster, project, "--workers", "1", "train.py", **job)
    assert done.code == 127
    assert (
        f"Slurm job {job['SLURM_JOB_ID']} was cancelled. Leave its shell, or unset SLURM_JOB_ID"
        in done.stderr
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a node a file system of its own")
def test_a_node_without_the_project_gets_a_copy_that_goes_with_the_run(cluster):
    project = cluster.own_folder / "project"
    (project / "helpers").mkdir(parents=True, exist_ok=True)
    (project / "train.py").write_text("import helpers.more\n" + TRAIN)
    (project / "helpers" / "more.py").write_text("print('helper is', __file__, flush=True)\n")
    with cluster.allocation("-N2", "-n4") as job:
        done = run(
            *(cluster, project, "--ps", "1", "--workers", "2", "train.py"),
            *("--", f"--train_dir={project}/checkpoints"),
            **job,
        )
    assert done.code == 0, _text(done)
    copied = re.search(r"Node n2 misses .*: copied \d+ KB to (\S+) there", _text(done))
    assert copied, _text(done)
    assert f"helper is {copied[1]}/helpers/more.py" in done.stdout
    assert not Path(copied[1]).exists()
    assert f"--train_dir {project}/checkpoints is not shared: n2 does not see" in _text(done)


# -- an allocation of the run's own ------------------------------------------------------------------


def test_a_run_outside_gets_an_allocation_and_gives_it_back(cluster, project):
    done = run(
        cluster, project, "--time", "5", "--ps", "1", "--workers", "2", "--engine-arg", "nodes=2", "train.py"
    )
    assert done.code == 0, _text(done)
    assert {_node_of(done, "worker/0"), _node_of(done, "worker/1")} <= {"n1", "n2"}
    assert "TIMEOUT" not in cluster.jobs()


def test_different_needs_are_a_heterogeneous_job(cluster, project):
    done = run(
        *(cluster, project, "--ps", "1", "--workers", "2", "--cpus-per-task", "2"),
        *("--memory", "200M", "--gpus-per-worker", "1", "train.py"),
    )
    assert done.code == 0, _text(done)
    assert done.stdout.count("trained") == 2


def test_a_killed_launcher_gives_its_allocation_back(cluster, project):
    with started(cluster, project, "--ps", "1", "--workers", "2", "train.py", "--", FOREVER) as launch:
        launch.read_until("began at", 2)
        assert cluster.busy()
        launch.process.kill()


def test_a_launcher_whose_machine_dies_leaves_nothing(cluster, project):
    with started(cluster, project, "--ps", "1", "--workers", "1", "train.py", "--", FOREVER) as launch:
        launch.read_until("began at")
        # All at once, so that nobody can say goodbye: srun's own helpers too.
        own = [p.pid for p in psutil.Process(launch.process.pid).children(recursive=True)]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in (launch.process.pid, *own):
                os.kill(pid, number)
        wait_until(lambda: not cluster.busy(), "the end of the job", cluster.jobs)


def test_a_launcher_that_is_killed_in_the_queue_leaves_it(cluster, project):
    with cluster.allocation("-N2", "--exclusive"):
        with started(cluster, project, "--workers", "1", "train.py") as launch:
            wait_until(lambda: "PENDING" in cluster.busy(), "the request", cluster.jobs)
            launch.process.kill()


def test_no_room_says_what_was_asked_and_what_there_is(cluster, project):
    with cluster.allocation("-N2", "--exclusive"):
        done = run(cluster, project, "--wait", "0", "--ps", "1", "--workers", "2", "train.py")
    assert done.code == 127
    assert "Slurm has not given 1 ps and 2 workers within 5 s (job " in done.stderr
    assert "main: 2/0/0/2 nodes, 8/0/0/8 CPUs" in done.stderr


def test_a_run_waits_for_room(cluster, project):
    with started(cluster, project, "--workers", "1", "train.py") as launch:
        with cluster.allocation("-N2", "--exclusive"):
            pass
        assert launch.end().code == 0, _text(launch)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--engine-arg", "partition=nope"], "invalid partition specified: nope"),
        (["--engine-arg", "nope=1"], "unrecognized option '--nope=1'"),
        (
            ["--cpus-per-task", "99"],
            "Slurm can never give 1 ps with 99 CPUs each and 1 worker with 99 CPUs each (job ",
        ),
    ],
)
def test_what_slurm_refuses_is_told_in_its_own_words(cluster, project, arguments, words):
    done = run(cluster, project, *arguments, "--workers", "1", "train.py")
    assert done.code == 127
    assert words in done.stderr


def test_an_elastic_run_takes_workers_as_slurm_gives_them(cluster, project):
    with started(cluster, project, "--ps", "1", "--workers", "1:3", "train.py", "--", FOREVER) as launch:
        launch.read_until("began at", 3)
        assert len(cluster.busy().splitlines()) == 3  # the run's first job, and one for each further worker
        os.kill(_pid_of(launch, "--job_name=worker", "--task_index=2"), signal.SIGKILL)
        launch.read_until("began at", 4)
        launch.process.send_signal(signal.SIGINT)
        launch.end()


def test_a_preempted_worker_comes_back_when_there_is_room(cluster, project):
    # The first job takes all of one node, the second worker's is on the other.
    options = ("--cpus-per-task", str(CPUS // 2), "--engine-arg", "nodes=1", "--ps", "1", "--workers", "1:2")
    with started(cluster, project, *options, "train.py", "--", FOREVER) as launch:
        launch.read_until("began at", 2)
        node = _node_of(launch, "worker/1")
        assert node != _node_of(launch, "worker/0")
        with cluster.allocation("--partition=urgent", "--exclusive", f"--nodelist={node}"):
            wait_until(lambda: "PENDING" in cluster.busy(), "a request for another place", cluster.jobs)
        launch.read_until("began at", 3)
        launch.process.send_signal(signal.SIGINT)
        launch.end()
    assert re.search(r"worker/1 is lost: Slurm job \d+ was preempted", _text(launch))
    assert "worker/0 is lost" not in _text(launch)


# -- batch jobs --------------------------------------------------------------------------------------


def test_the_workers_of_a_preempted_run_save_though_its_ps_is_told_too(cluster, project):
    arguments = ("--ps", "1", "--workers", "1", "train.py", "--", f"--train_dir={project}/run", FOREVER)
    with started(cluster, project, *arguments) as launch:
        launch.read_until("began at")
        urgent = cluster.tell(
            *("sbatch", "--parsable", "--output=/dev/null", "--partition=urgent"),
            *("--nodes=2", "--exclusive", "--wrap", "sleep 99"),
        )
        launch.read_until("trained")
        cluster.tell("scancel", urgent)
        launch.read_until("began at", 2)
        launch.process.send_signal(signal.SIGTERM)
        assert launch.end().code == 143, _text(launch)
    assert "Traceback" not in launch.stdout
    first, second = map(int, re.findall(r"began at (\d+)", launch.stdout))
    assert second > first


def test_a_run_whose_job_is_cancelled_ends_when_the_last_worker_has_saved(cluster, project):
    # The second worker leaves at once, the first one takes its time.
    saves = "        if FLAGS.task_index == 0: time.sleep(2); sess.run(step); print('saved', flush=True)\n"
    text = TRAIN.replace('    print("trained", flush=True)\n', saves + '    print("trained", flush=True)\n')
    (project / "train.py").write_text(text)
    arguments = ("--name", "late", "--ps", "1", "--workers", "2", "train.py", "--", FOREVER)
    with started(cluster, project, *arguments) as launch:
        launch.read_until("began at", 2)
        job = cluster.tell("squeue", "--noheader", "--name=late", "--format=%A")
        cluster.tell("scancel", job)
        assert launch.end().code == 127, _text(launch)
    assert "[worker/0] saved" in launch.stdout
    assert re.search(rf"Slurm job {job} was cancelled, so there is no place for worker/\d\.\n", launch.stderr)


def _submitted(cluster, project, *arguments):
    # The job is meant to outlive the command, whose environment it has: so not by `launched`.
    done = Launch(project, "run", "--on", "slurm", *arguments, **cluster.environment).end()
    assert done.code == 0, _text(done)
    match = re.search(r"submitted job (\d+)\. Its batch script is (\S+)\.\n", done.stderr)
    assert match, done.stderr
    return match[1], Path(match[2])


def run_alone(cluster, project, *arguments) -> Launch:
    with launched(project, "run", "--on", "slurm", *arguments, **cluster.environment) as launch:
        return launch.end()


def test_a_submitted_run_trains_to_its_end(cluster, project):
    job, script = _submitted(
        *(cluster, project, "--submit", "--name", "mine", "--time", "5", "--ps", "1", "--workers", "2"),
        *("--engine-arg", "nodes=2", "train.py"),
    )
    wait_until(lambda: job not in cluster.busy(), "the end of the job", cluster.explain)
    assert f"{job} COMPLETED" in cluster.jobs(), script.with_suffix(".out").read_text()
    assert script.with_suffix(".out").read_text().count("trained") == 2
    assert "Ignoring" not in script.with_suffix(".out").read_text()  # the job was asked for with them
    assert script.parent == project / "runs" / "mine"
    assert "#SBATCH --signal=B:TERM@60" in script.read_text()


def test_a_submitted_run_is_listed_in_the_queue_and_stopped(cluster, project):
    def command(*arguments):
        with launched(project, *arguments, **cluster.environment) as launch:
            return launch.end()

    with cluster.allocation("-N2", "--exclusive"):
        options = ("--submit", "--name", "mine", "--ps", "1", "--workers", "1", "train.py")
        job, _ = _submitted(cluster, project, *options)
        assert f"mine  train.py  (on slurm, Slurm job {job}, PENDING" in command("ps").stdout
        assert "A run named mine is going on" in run_alone(cluster, project, *options).stderr
        assert "mine has no logs yet." in command("logs", "mine").stderr
        assert command("stop", "mine").stdout == f"mine: cancelled (Slurm job {job}, PENDING)\n"
        wait_until(lambda: job not in cluster.numbers(), "the end of the job", cluster.jobs)
    assert command("ps").stdout == "No runs.\n"


def test_a_run_that_slurm_does_not_take_leaves_nothing(cluster, project):
    done = run_alone(
        cluster, project, "--submit", "--engine-arg", "partition=nope", "--workers", "1", "train.py"
    )
    assert done.code == 127
    assert "tensorfleet: sbatch failed: invalid partition specified: nope;" in done.stderr
    assert not list((project / "runs").iterdir())


def test_notice_reaches_the_tasks_and_a_requeued_job_goes_on(cluster, project):
    folder = project / "checkpoints"
    job, script = _submitted(
        *(cluster, project, "--submit", "--name", "again", "--ps", "1", "--workers", "1"),
        *("train.py", "--", f"--train_dir={folder}", FOREVER),
    )
    output = script.with_suffix(".out")

    def begins():
        return re.findall(r"began at (\d+)", output.read_text() if output.exists() else "")

    try:
        wait_until(lambda: len(begins()) == 1, "the training", cluster.explain)
        cluster.tell("scancel", "--batch", "--signal=TERM", job)
        wait_until(lambda: "stopping after this step" in output.read_text(), "notice", output.read_text)
        cluster.tell("scontrol", "requeue", job)
        # Slurm would wait for two minutes.
        reason = ("squeue", "--noheader", f"--jobs={job}", "--format=%T %r")
        wait_until(
            lambda: cluster.tell(*reason) == "PENDING BeginTime", "the queue", lambda: cluster.tell(*reason)
        )
        cluster.tell("scontrol", "update", f"JobId={job}", "StartTime=now")
        wait_until(lambda: len(begins()) == 2, "the second training", cluster.explain)
    finally:
        cluster.tell("scancel", job)
    wait_until(lambda: not cluster.busy(), "the end of the job", cluster.jobs)
    first, second = map(int, begins())
    assert second > first


# -- the way there -----------------------------------------------------------------------------------


def test_doctor_finds_a_healthy_slurm(cluster, project):
    with cluster.allocation("-N2", "-n2") as job:
        done = subprocess.run(
            [sys.executable, "-m", "tensorfleet", "doctor", "--on", "slurm"],
            env={**os.environ, **cluster.environment, **job},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert f"main (up): 0 of 2 nodes idle, {2 * CPUS - 2} of {2 * CPUS} CPUs" in done.stdout
    assert f"job {job['SLURM_JOB_ID']}: n1 has 1 CPU" in done.stdout
    assert re.search(r"ok\s+n2\s+Python 3", done.stdout), done.stdout


def test_a_controller_that_is_away_is_named(cluster, project, tmp_path):
    text = Path(cluster.environment["SLURM_CONF"]).read_text()
    other = tmp_path / "slurm.conf"
    other.write_text(re.sub(r"SlurmctldPort=\d+", "SlurmctldPort=9", text) + "\nMessageTimeout=2\n")
    environment = {**cluster.environment, "SLURM_CONF": str(other), "SLURM_JOB_ID": "1"}
    with launched(project, "run", "--on", "slurm", "--workers", "1", "train.py", **environment) as launch:
        launch.end()
    assert launch.code == 127
    assert "Slurm's controller does not answer" in launch.stderr
