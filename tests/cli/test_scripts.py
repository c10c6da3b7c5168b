"""Scripts in the ten customary styles of distributed TensorFlow, launched as they are."""

import re
import signal
import socket
from pathlib import Path

import pytest

from tests.support.launching import launched, run

pytestmark = pytest.mark.slow  # left out by `make quick`

SCRIPTS = Path(__file__).parent / "programs"


def script(name):
    return str(SCRIPTS / f"{name}.py")


def lines_of(launch, label):
    return [m[1] for line in launch.stdout.splitlines() if (m := re.match(rf"\[{label}\]\s+(.*)", line))]


def cluster(tmp_path, name, *arguments, ps=1, workers=2):
    done = run(tmp_path, "run", "--ps", str(ps), "--workers", str(workers), script(name), "--", *arguments)
    assert done.code == 0, done.stdout + done.stderr
    return done


def test_supervisor_and_flags(tmp_path):
    done = cluster(tmp_path, "supervisor_flags", "--train_steps", "80")
    for i in range(2):
        said = "\n".join(lines_of(done, f"worker/{i}"))
        assert re.search(r"training ended \(global step: \d+\)", said)
        assert "test accuracy above 0.7: True" in said


def test_monitored_session_with_synchronous_replicas(tmp_path):
    done = cluster(tmp_path, "monitored_sync")
    assert done.stdout.count("w is near 3: True") == 2


def test_cluster_from_tf_config(tmp_path):
    done = cluster(tmp_path, "tf_config")
    assert done.stdout.count("ended at a count of at least ten: True") == 2


def test_servers_that_wait_for_done_queues(tmp_path):
    done = cluster(tmp_path, "done_queues", ps=2)
    for i in range(2):
        assert lines_of(done, f"ps/{i}")[-1] == f"ps {i}: quitting"
        assert lines_of(done, f"worker/{i}")[-1] == f"worker {i} is done"


def test_ports_written_into_the_script(tmp_path):
    done = cluster(tmp_path, "hard_coded_ports")
    assert done.stdout.count("computed (2,)") == 2


def test_machines_written_into_the_script_are_this_one(tmp_path):
    done = cluster(tmp_path, "machines_of_the_author")
    assert done.stdout.count("counted: True") == 2
    assert not any("steps" in line for line in lines_of(done, "ps/0"))  # it does not get behind its join
    assert "Traceback" not in done.stdout + done.stderr


def test_a_script_that_makes_all_servers_itself_runs_once(tmp_path):
    done = cluster(tmp_path, "five_servers")
    assert done.stdout.count("total 60\n") == 1
    assert "five_servers.py creates the tasks of its cluster itself, and runs once." in done.stderr


def test_a_list_of_hosts_is_of_one_job(tmp_path):
    done = cluster(tmp_path, "one_list_of_hosts")
    assert lines_of(done, "worker/0")[-1] == "the sum over 2 tasks is 3"
    assert "one_list_of_hosts.py has one job and no parameter servers. Starting workers only." in done.stderr
    assert "[ps/0]" not in done.stdout


def test_a_worker_that_the_written_cluster_does_not_have_is_not_needed(tmp_path):
    done = cluster(tmp_path, "fewer_workers")
    assert lines_of(done, "worker/0")[-1] == "worked: True"
    (said,) = lines_of(done, "worker/1")
    assert said.endswith("the script's cluster has 1 of job worker: this task, worker/1, is not needed.")


def test_an_evaluator_without_a_last_step_ends_with_the_training(tmp_path):
    jobs = ("--ps", "1", "--chief", "--workers", "0", "--evaluator")
    done = run(tmp_path, "run", *jobs, script("patient_evaluator"), "--", str(tmp_path / "model"))
    assert done.code == 0, done.stdout + done.stderr
    assert lines_of(done, "evaluator/0")[-1] == "evaluator 0 is done"
    assert list((tmp_path / "model" / "eval").glob("events*"))


def test_tasks_that_a_script_forks_end_by_themselves(tmp_path):
    done = run(tmp_path, script("forked_tasks"))
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.count("counted: True") == 2
    assert done.stdout.count("the server has ended") == 1


def test_client_of_servers_that_run_elsewhere(tmp_path):
    with socket.create_server(("localhost", 0)) as a, socket.create_server(("localhost", 0)) as b:
        addresses = [f"localhost:{s.getsockname()[1]}" for s in (a, b)]
    token = {"TENSORFLEET_TOKEN": "of this test"}
    arguments = (
        "run",
        "--ps",
        "0",
        "--workers",
        "2",
        script("bare_server"),
        "--",
        "{task_index}",
        *addresses,
    )
    with launched(tmp_path, *arguments, **token) as servers:
        servers.read_until("listening", 2)
        client = run(tmp_path, script("in_graph_client"), *addresses, **token)
        assert client.code == 0, client.stderr
        assert client.stdout == "w settles at the mean of the towers' targets: 0.50\n"
        servers.process.send_signal(signal.SIGINT)
        assert servers.end().code == 130


def test_a_traced_step_as_a_timeline(tmp_path):
    done = cluster(tmp_path, "timeline_trace", workers=1)
    assert lines_of(done, "worker/0")[-1] == "sum 1000000; traced ps: True, worker: True"
    assert (tmp_path / "timeline.json").stat().st_size > 100


def test_device_filters_spare_the_wait_for_absent_workers(tmp_path):
    done = cluster(tmp_path, "filtered_devices")
    assert sorted(lines_of(done, f"worker/{i}")[-1] for i in range(2)) == ["worker 0 ended", "worker 1 ended"]


def test_variables_in_parts_over_several_servers(tmp_path):
    done = cluster(tmp_path, "sharded_ps", ps=2)
    assert done.stdout.count("loss falls: True") == 2
    assert "parts on ps/task:0, ps/task:1" in done.stdout


def test_a_worker_that_is_killed_comes_back(tmp_path):
    arguments = ("run", "--ps", "1", "--workers", "2", "--restart", "1", script("dying_worker"))
    done = run(tmp_path, *arguments)
    assert done.code == 0, done.stdout + done.stderr
    assert "worker/1 died; restarting it." in done.stdout
    assert done.stdout.count("ended after step") == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [("five_servers", "total 60"), ("slim_learning", "loss below 0.5: True; model variables: 6")],
)
def test_scripts_of_one_process(tmp_path, name, said):
    done = run(tmp_path, script(name))
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == said


def test_who_wants_more_steps_than_the_chief_made_ends_without_an_error(tmp_path):
    done = cluster(tmp_path, "counted_sync_steps", "--steps=1000000")
    assert lines_of(done, "worker/0")[-1] == "made all steps"
    assert any("Synchronous training is over" in line for line in lines_of(done, "worker/1"))
    assert "Traceback" not in done.stdout + done.stderr
