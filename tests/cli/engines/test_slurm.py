"""What the Slurm engine decides, and its program for nodes, without a Slurm."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import psutil
import pytest

from tensorfleet.cli.engines import probe, slurm_commands, slurm_step
from tensorfleet.cli.engines.base import EngineError, RunOptions, TaskResources, Wanted
from tensorfleet.cli.engines.shared_folders import named_folders, not_shared, warning
from tensorfleet.cli.engines.slurm import SlurmEngine
from tensorfleet.cli.engines.slurm_allocation import options_of_another_job
from tensorfleet.cli.engines.slurm_batch import batch_script, inner_command, request_options
from tensorfleet.cli.engines.slurm_commands import (
    NodeShare,
    count_ids,
    gpus_in,
    node_states,
    own_words,
    shares_of,
)
from tensorfleet.cli.engines.slurm_files import Project
from tensorfleet.cli.engines.slurm_rooms import Seating, cpus_of_step, spoken_need, spoken_room

SECONDS = 30


def _share(node, cpus=4, memory=4000, gpus=0):
    return NodeShare("7", "7", node, cpus, memory, gpus)


def _ps(index, **resources):
    return Wanted("ps", index, True, TaskResources(**resources))


def _worker(index, **resources):
    return Wanted("worker", index, False, TaskResources(**resources))


# -- where tasks go ----------------------------------------------------------------------------------


def test_servers_are_apart_from_each_other_and_workers_where_most_is_free():
    shares = [_share("n1"), _share("n2")]
    wanted = [_ps(0), _ps(1), *(_worker(i) for i in range(4))]
    chosen = Seating(shares).choose_all(wanted, shares)
    assert {chosen["ps/0"].node, chosen["ps/1"].node} == {"n1", "n2"}
    assert sorted(share.node for share in chosen.values()) == ["n1"] * 3 + ["n2"] * 3


def test_servers_share_a_node_where_there_is_no_other():
    shares = [_share("n1")]
    assert Seating(shares).choose_all([_ps(0), _ps(1)], shares) is not None


def test_a_server_leaves_the_gpus_to_workers():
    shares = [_share("n1", cpus=1), _share("n2", cpus=8, gpus=2)]
    chosen = Seating(shares).choose_all([_ps(0), _worker(0, gpus=1)], shares)
    assert (chosen["ps/0"].node, chosen["worker/0"].node) == ("n1", "n2")


def test_a_big_task_keeps_its_only_room():
    shares = [_share("n1", cpus=4), _share("n2", cpus=2)]
    chosen = Seating(shares).choose_all([_ps(0, cpus=1), _worker(0, cpus=4)], shares)
    assert (chosen["ps/0"].node, chosen["worker/0"].node) == ("n2", "n1")


@pytest.mark.parametrize("resources", [{"cpus": 3}, {"memory_bytes": 3000 << 20}, {"gpus": 2}])
def test_tasks_that_need_more_than_there_is_have_no_place(resources):
    shares = [_share("n1", gpus=2)]
    assert Seating(shares).choose_all([_worker(0, **resources)], shares) is not None
    assert Seating(shares).choose_all([_worker(0, **resources), _worker(1, **resources)], shares) is None


def test_tasks_without_needs_share_a_processor_but_one_more_worker_wants_its_own():
    shares = [_share("n1", cpus=1)]
    seating = Seating(shares)
    assert seating.take(_ps(0), shares)
    assert seating.take(_worker(0), shares)
    assert seating.take(_worker(1), shares, grows=True) is None


def test_a_job_is_needed_while_its_task_seeks_a_place_or_another_one_has_its_place_there():
    first, more = _share("n1"), NodeShare("8", "8", "n2", 1, 100, 0)
    seating = Seating([first, more], {"ps/0": (_ps(0), first)})
    assert seating.needs("8", "worker/1", {"worker/1"})
    assert not seating.needs("8", "worker/1", {"worker/2"})
    assert not seating.needs(None, "worker/1", ())  # it has no number yet
    assert seating.take(_worker(2), [more])
    assert seating.needs("8", "worker/1", ())


def test_steps_with_gpus_divide_the_processors_that_nobody_has_asked_for():
    share = _share("n1", cpus=8, gpus=2)
    one, two = _worker(0, gpus=1), _worker(1, gpus=1)
    assert cpus_of_step(one, share, [one, two]) == 4
    assert cpus_of_step(one, share, [one, two, _ps(0, cpus=2)]) == 3
    assert cpus_of_step(_worker(0, cpus=1.5), share, []) == 2
    assert cpus_of_step(_worker(0), share, []) is None


def test_needs_and_rooms_are_spoken():
    wanted = [_ps(0, cpus=1), _worker(0, cpus=2, gpus=1), _worker(1, cpus=2, gpus=1)]
    assert spoken_need(wanted) == "1 ps with 1 CPU each and 2 workers with 2 CPUs, 1 GPU each"
    assert spoken_room([_share("n1", gpus=2)]) == "n1 has 4 CPUs, 4000 MB, 2 GPUs"


# -- what Slurm prints -------------------------------------------------------------------------------


def test_numbers_and_gpus_are_counted():
    assert count_ids("0-3,8,10-11") == 7
    assert gpus_in("gpu:a100:2(IDX:0-1),shard:4,gpu:1(IDX:2)") == 3
    assert gpus_in("(null)") == 0


def test_the_shares_of_a_job_are_read(monkeypatch):
    job = (
        "JobId=12 JobName=x JobState=RUNNING NodeList=n[1-3] JOB_GRES=gpu:2   "
        "Nodes=n[1-2] CPU_IDs=0-2 Mem=1000 GRES=gpu:1(IDX:0) Nodes=n3 CPU_IDs=0 Mem=500 GRES= MinCPUsNode=1"
    )
    printed = {"job": job, "hostnames": "n1\nn2\n"}
    monkeypatch.setattr(slurm_commands, "answer", lambda command: printed[command[2]])
    assert shares_of("12", component=1) == [
        NodeShare("12", "12", "n1", 3, 1000, 1, 1),
        NodeShare("12", "12", "n2", 3, 1000, 1, 1),
        NodeShare("12", "12", "n3", 1, 500, 0, 1),
    ]


def test_nodes_that_are_down_or_being_drained_are_known(monkeypatch):
    lines = [
        "NodeName=n1 NodeAddr=10.0.0.1 State=IDLE ThreadsPerCore=1",
        "NodeName=n2 NodeAddr=10.0.0.2 State=MIXED+DRAIN ThreadsPerCore=1",
        "NodeName=n3 NodeAddr=10.0.0.3 State=ALLOCATED* ThreadsPerCore=1",
    ]
    monkeypatch.setattr(slurm_commands, "answer", lambda command: "\n".join(lines))
    states = node_states(["n1", "n2", "n3"])
    assert [(s.is_up, s.takes_more) for s in states.values()] == [(True, True), (True, False), (False, False)]
    assert states["n1"].address == "10.0.0.1"


def test_errors_are_told_in_the_words_of_slurm():
    lines = ["salloc: Pending job allocation 3", "salloc: error: invalid partition specified: nope"]
    assert own_words(lines) == "invalid partition specified: nope"
    lines = ["salloc: unrecognized option '--qqq=1'", 'Try "salloc --help" for more information']
    assert own_words(lines) == "unrecognized option '--qqq=1'"


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("error: invalid partition specified: nope", "`sinfo` lists the partitions"),
        ("error: Memory specification can not be satisfied", "No node has that much: ask for less per task"),
        ("error: Requested node configuration is not available", "No node has that much"),
        ("error: Invalid --time specification", "Write the time as 2:00:00"),
        ("error: Invalid node name specified", "`sinfo -N` lists the nodes"),
        (
            "error: Invalid account or account/partition combination specified",
            "`sacctmgr show associations` lists your",
        ),
        ("error: Invalid account", "`sacctmgr show associations` lists your accounts"),
        ("unrecognized option '--qqq=1'", "--engine-arg takes the options of salloc and sbatch"),
    ],
)
def test_a_refusal_of_slurm_says_what_to_do(said, remedy):
    text = slurm_commands.explained("Slurm has refused the request", [f"salloc: {said}"])
    assert text.startswith(f"Slurm has refused the request: {said.removeprefix('error: ')}. {remedy}")
    assert slurm_commands.explained("squeue failed", ["squeue: error: Odd"]) == "squeue failed: Odd."


@pytest.mark.parametrize(("job", "command"), [("1", "scontrol"), ("", "salloc")])
def test_a_machine_without_slurm_says_what_to_install(monkeypatch, tmp_path, job, command):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SLURM_JOB_ID", job)
    engine = SlurmEngine(RunOptions("test", Path("train.py")))
    with pytest.raises(
        EngineError, match=f"no command {command} on this machine. Install Slurm's client commands"
    ):
        engine.reserve([_worker(0)], None)
    engine.close()
    engine.close()


def test_commands_without_a_configuration_say_which_variable_names_it():
    lines = [
        "salloc: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host",
        "salloc: error: fetch_config: DNS SRV lookup failed",
    ]
    text = slurm_commands.explained("Slurm has refused the request", lines)
    assert text.startswith("Slurm's commands find no configuration here (resolve_ctls_from_dns_srv: ")
    assert "Set SLURM_CONF" in text


# -- the shell of a step -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_shell_of_a_step_tells_the_end_of_a_task_and_nothing_else(number):
    program = "import os, sys; print('up', flush=True); print('warning', file=sys.stderr, flush=True); os.read(0, 1)"
    command = ["sh", "-c", slurm_step._SHELL, "sh", sys.executable, "-c", program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, **pipes, text=True) as shell:
        said = [shell.stdout.readline() for _ in range(3)]
        (task,) = psutil.Process(shell.pid).children()
        task.send_signal(number)
        said += shell.stdout.readlines()
    assert said == ["@tensorfleet-step \n", "up\n", "warning\n", f"@tensorfleet-end {128 + number}\n"]


# -- requests and batch scripts ----------------------------------------------------------------------


def _options(**more):
    return RunOptions("digits", Path("train.py"), log_dir=Path("runs/digits"), time_limit="2:00:00", **more)


def test_one_kind_of_task_is_one_request():
    wanted = [_ps(0, cpus=2, memory_bytes=1 << 30), _worker(0, cpus=2, memory_bytes=1 << 30)]
    [part] = request_options(wanted, _options(engine_arguments=("partition=main", "--nodes=2")))
    assert part == [
        *("--job-name=digits", "--time=2:00:00", "--ntasks=2", "--cpus-per-task=2", "--mem-per-cpu=512M"),
        *("--partition=main", "--nodes=2"),
    ]


def test_tasks_with_other_needs_are_a_part_of_a_heterogeneous_job():
    first, second = request_options([_ps(0), _ps(1), _worker(0, gpus=1)], _options())
    assert "--spread-job" in first
    assert "--ntasks=2" in first
    assert second == ["--ntasks=1", "--cpus-per-task=1", "--gpus-per-task=1"]


def test_the_batch_script_is_readable_and_runs_the_command_again(tmp_path):
    command = [
        "/venv/bin/python",
        "-m",
        "tensorfleet",
        "run",
        "--on=slurm",
        "--submit",
        "my train.py",
        "--",
        "--submit",
    ]
    inner = inner_command(command, RunOptions("digits", Path("train.py")))
    assert inner == [*command[:4], "--name=digits", "--on=slurm", "my train.py", "--", "--submit"]
    path = tmp_path / "slurm.sh"
    wanted = [_ps(0), _worker(0, gpus=1)]
    text = batch_script(inner, wanted, _options(), Path("/home/me/my project"), path)
    path.write_text(text)
    assert subprocess.run(["bash", "-n", path], timeout=SECONDS).returncode == 0
    assert "#SBATCH --signal=B:TERM@60\n#SBATCH --requeue\n#SBATCH hetjob\n#SBATCH --ntasks=1" in text
    assert "cd '/home/me/my project' || exit" in text
    assert "run --name=digits --on=slurm 'my train.py' -- --submit &" in text


def test_what_asked_for_a_job_is_not_said_again_in_it():
    before, after = (
        ["python", "-m", "tensorfleet", "run"],
        ["train.py", "--", "--time=9", "--engine-arg", "c"],
    )
    asks = ["--time=5", "--submit", "--engine-arg", "partition=main", "--ps", "1", "--engine-arg=nodes=2"]
    options = _options(engine_arguments=("partition=main", "nodes=2"))
    inner = inner_command([*before, *asks, *after], options)
    assert inner == [*before, "--name=digits", "--ps", "1", *after]
    assert inner_command([*before, "--time", "5", "--submit", *after], _options()) == [
        *before,
        "--name=digits",
        *after,
    ]


def test_options_of_another_job_are_named_with_who_takes_them():
    asked = _options(engine_arguments=("partition=main", "nodes=2"))
    assert options_of_another_job(asked, "12") == (
        "Ignoring --time 2:00:00 and --engine-arg partition=main and --engine-arg nodes=2: this run uses Slurm job 12, which "
        "it is in. Give such options to the salloc or sbatch that asks for the job."
    )
    assert options_of_another_job(RunOptions("digits", Path("train.py")), "12") is None


def test_the_batch_script_passes_sigterm_on_and_gives_the_exit_code(tmp_path):
    program = "import signal, sys; signal.signal(15, lambda *a: sys.exit(5)); print('up', flush=True); signal.pause()"
    path = tmp_path / "slurm.sh"
    path.write_text(batch_script([sys.executable, "-c", program], [_worker(0)], _options(), tmp_path, path))
    with subprocess.Popen(["bash", path], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout.readline() == "up\n"
        shell.terminate()
        assert shell.wait(SECONDS) == 5


# -- files and folders -------------------------------------------------------------------------------


def test_folders_are_named_by_flags_that_end_in_dir():
    arguments = ["--train_dir=ckpt", "--logdir", "/logs", "--steps", "3", "--model_dir=gs://bucket", "--dir"]
    assert named_folders(arguments, "/data") == {"--train_dir": "/data/ckpt", "--logdir": "/logs"}


def test_folders_that_another_node_does_not_see_are_found():
    seen = {"n2": {"/shared"}, "n3": {"/shared", "/local"}}

    def unseen_by(node):
        return lambda marks: [folder for folder in marks if folder not in seen[node]]

    found = not_shared(
        {"--train_dir": "/local", "--logdir": "/shared"},
        lambda name, folders: {folder: f"{folder}/{name}" for folder in folders},
        {node: unseen_by(node) for node in seen},
    )
    assert found == {"--train_dir": ["n2"]}
    assert warning("--train_dir", "/local", "n1", ["n2"]).startswith(
        "--train_dir /local is not shared: n2 does not see the files that n1 writes there."
    )


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "sub" / ".git").mkdir(parents=True)
    (tmp_path / "sub" / "runs" / "one").mkdir(parents=True)
    for name in ("train.py", "data.txt", ".git/config", "runs/one/worker-0.log", "old.pyc"):
        (tmp_path / "sub" / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    return Project(Path("sub/train.py"), tmp_path, tmp_path / "sub/runs/one")


def test_a_copy_has_the_files_that_a_script_needs(project):
    with tarfile.open(fileobj=BytesIO(project.archive)) as archive:
        assert sorted(archive.getnames()) == ["sub/data.txt", "sub/train.py"]
    assert list(project.digests) == ["train.py"]
    command = ["python", "-m", "tensorfleet", "sub/train.py", "--x"]
    assert project.command_in("/copy", command) == [*command[:3], "/copy/sub/train.py", "--x"]


def test_a_project_that_is_too_large_to_copy_is_refused(project, monkeypatch):
    monkeypatch.setattr("tensorfleet.cli.engines.slurm_files._MAX_BYTES", 5)
    with pytest.raises(EngineError, match="too large to be copied .* Put the project into a shared folder"):
        project.archive  # noqa: B018


# -- the program for nodes ---------------------------------------------------------------------------


class _Asked:
    """The program, as a process of this machine."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-u", probe.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __call__(self, ask, data=b"", **arguments):
        self._process.stdin.write(json.dumps({"id": 1, "ask": ask, **arguments}).encode() + b"\n" + data)
        self._process.stdin.flush()
        while True:
            answer = json.loads(self._process.stdout.readline().decode().removeprefix(probe.MARK))
            if answer.pop("id"):
                return answer

    def end(self):
        self._process.stdin.close()
        self._process.wait(SECONDS)
        self._process.stdout.close()


@pytest.fixture
def asked():
    result = _Asked()
    yield result
    result.end()


def test_a_node_tells_its_python_address_and_free_ports(asked):
    assert asked("python")["executable"] == sys.executable
    assert asked("address", peers=["127.0.0.1"])["address"] == "127.0.0.1"
    ports = asked("ports", address="127.0.0.1", count=5)["ports"]
    assert len(set(ports)) == 5


def test_a_port_of_a_node_is_for_one_task_only(asked):
    (port,) = asked("ports", address="127.0.0.1", count=1)["ports"]
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with socket.create_server(("127.0.0.1", port)) as server, socket.create_connection(("127.0.0.1", port)):
        server.accept()[0].close()


def test_a_node_compares_files(asked, project, tmp_path):
    folder = str(tmp_path / "sub")
    same = {"folder": folder, "directory": str(tmp_path)}
    assert asked("files", digests=project.digests, **same) == {"missing": [], "differing": []}
    assert asked("files", digests={"train.py": "other", "no.py": ""}, **same) == {
        "missing": ["no.py"],
        "differing": ["train.py"],
    }


def test_what_a_node_makes_goes_with_the_run(asked, project, tmp_path):
    folder = Path(asked("unpack", project.archive, size=len(project.archive))["folder"])
    marks = asked("mark", name=".mark", folders=[str(tmp_path / "not" / "yet")])["paths"]
    assert (folder / "sub" / "train.py").read_text() == "train.py"
    assert marks == {str(tmp_path / "not" / "yet"): str(tmp_path / ".mark")}
    assert asked("sees", paths={**marks, "/other": "/other/.mark"})["unseen"] == ["/other"]
    asked.end()
    assert not folder.exists()
    assert not (tmp_path / ".mark").exists()


def test_a_question_that_fails_is_answered(asked):
    assert asked("ports", address="127.0.0.1", count="many")["error"].startswith("TypeError")
