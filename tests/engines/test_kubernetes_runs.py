"""Runs on a real Kubernetes API server with its controllers; the nodes are our agent (kubernetes_agent.py)."""

import os
import re
import signal
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from tensorfleet.cli.engines.base import EngineError, RunOptions, TaskResources, Wanted
from tensorfleet.cli.engines.kubernetes import KubernetesEngine, check
from tensorfleet.cli.engines.kubernetes_manifests import ATTEMPT_LABEL
from tensorfleet.cli.plan import Task
from tests.engines.kubernetes_cluster import BIN, STRANGER, kubernetes_cluster
from tests.support.launching import launched
from tests.support.waiting import until

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.skipif(not (BIN / "kube-apiserver").exists(), reason="tools/kubernetes.sh has not built it"),
]

EXAMPLE = Path(__file__).parents[2] / "examples" / "between_graph_async.py"
PYTHON = f"python={sys.executable}"
NOTHING = TaskResources()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as one:
        yield one


@pytest.fixture(autouse=True)
def access(cluster, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig()))


class Recorder:
    """Hears everything that an engine tells."""

    def __init__(self):
        self.lines, self.exits, self.places, self.notes = [], {}, {}, []

    def on_line(self, label, text):
        self.lines.append((label, text))

    def on_exit(self, label, code, lost=None):
        self.exits[label] = (code, lost)

    def on_place(self, label, place):
        self.places[label] = place

    def on_note(self, text):
        self.notes.append(text)

    def printed(self, label="worker/0"):
        return [text for one, text in self.lines if one == label]

    def exit_of(self, label="worker/0"):
        until(lambda: label in self.exits, f"the end of {label}")
        return self.exits[label]


class Run:
    """One run, driven by hand."""

    def __init__(self, cluster, folder, name, code, *arguments, **options):
        self.script = folder / "train.py"
        self.script.write_text(code)
        self.cluster, self.name, self.heard = cluster, name, Recorder()
        arguments = (PYTHON, "lost=1", *arguments)
        options = {"image": "tensorfleet/test", **options}
        self.engine = KubernetesEngine(RunOptions(name, self.script, engine_arguments=arguments, **options))
        self.places = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.engine.close()
        assert self.cluster.left_of(self.name) == []

    def reserve(self, *labels, resources=NOTHING):
        self.wanted = {label: _wanted(label, resources) for label in labels or ("worker/0",)}
        self.places = self.engine.reserve(list(self.wanted.values()), self.heard)
        return self

    def start(self, label="worker/0"):
        job, _, index = label.partition("/")
        command = [sys.executable, "-u", str(self.script), label]
        task = Task(job, int(index), self.places[label].address, command, {"TENSORFLEET_TOKEN": "t"})
        self.heard.exits.pop(label, None)
        return self.engine.start(task, self.heard)

    def pod(self, label="worker/0"):
        """The pod of a task, once it runs."""
        start = f"{self.name}-{label.replace('/', '-')}-"

        def running():
            pods = self.cluster.agent.called(start)
            return [p for p in pods if p.process and not _is_seat(p)]

        until(running, f"pod {start}")
        return running()[0]


def _is_seat(pod):
    return re.search(r"-s\d+$", pod.pod["metadata"]["labels"][ATTEMPT_LABEL])


def _wanted(label, resources):
    job, _, index = label.partition("/")
    return Wanted(job, int(index), job == "ps", resources)


SLEEPS = "import time\nprint('here', flush=True)\ntime.sleep(300)\n"
COUNTS = "import time\nfor n in range(300):\n    print('line', n, flush=True)\n    time.sleep(0.01)\n"


ELASTIC = """
import json, os, time
import tensorflow as tf
config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=config["cluster"], worker_device=f"/job:worker/task:{index}")):
    add = tf.get_variable("count", [], initializer=tf.zeros_initializer()).assign_add(1.0)
with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0) as session:
    session.run(add)
    print("worker", index, "trains", flush=True)
    while not os.path.exists(os.path.join(os.path.dirname(__file__), "go")):
        session.run(add)
        time.sleep(0.1)
"""


def tensorfleet(cluster, folder, *arguments, **environment):
    """`tensorfleet run --on kubernetes`, for a `with` block."""
    options = (
        "--on",
        "kubernetes",
        "--image",
        "tensorfleet/test",
        "--engine-arg",
        PYTHON,
        "--dashboard",
        "off",
    )
    return launched(folder, "run", *options, *arguments, KUBECONFIG=os.environ["KUBECONFIG"], **environment)


# -- whole runs ------------------------------------------------------------------------------------------------------


def test_a_script_is_shipped_trains_and_leaves_nothing(cluster, tmp_path):
    arguments = ("--name", "whole", "--ps", "2", "--workers", "2", "--engine-arg", "ship=1", str(EXAMPLE))
    with tensorfleet(cluster, tmp_path, *arguments) as run:
        assert run.end().code == 0, run.stdout + run.stderr
    reached = re.findall(r"Final test accuracy ([\d.]+)", run.stdout)
    assert len(reached) == 2 and min(map(float, reached)) > 0.88, run.stdout
    assert "Shipping" in run.stderr
    assert cluster.left_of("whole") == []


def test_a_failure_is_reported_as_everywhere(cluster, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import tensorflow as tf\nraise ValueError('no such luck')\n")
    with tensorfleet(cluster, tmp_path, "--name", "fails", "--ps", "0", "--workers", "1", str(script)) as run:
        assert run.end().code == 1
    assert "FAILED: worker/0 on pod fails-worker-0 exited with code 1" in run.stderr
    assert "ValueError: no such luck" in run.stderr
    assert cluster.left_of("fails") == []


def test_an_interrupted_run_leaves_nothing(cluster, tmp_path):
    (tmp_path / "train.py").write_text(SLEEPS)
    with tensorfleet(
        cluster, tmp_path, "--name", "stops", "--ps", "0", "--workers", "2", str(tmp_path / "train.py")
    ) as run:
        run.read_until("here", 2)
        run.process.send_signal(signal.SIGINT)
        assert run.end(30).code == 130
    assert cluster.left_of("stops") == []
    assert cluster.agent.called("stops") == []


def test_a_run_goes_on_without_its_launcher_and_is_then_collected(cluster, tmp_path):
    (tmp_path / "train.py").write_text(
        f"import time\nprint('here', flush=True)\ntime.sleep(3)\nopen('{tmp_path}/done', 'a').write('x')\n"
    )
    arguments = (
        "--name",
        "alone",
        "--ps",
        "0",
        "--workers",
        "2",
        "--engine-arg",
        "ttl=2",
        str(tmp_path / "train.py"),
    )
    volume = ("--engine-arg", f"volume=hostPath:{tmp_path}:{tmp_path}")
    with tensorfleet(cluster, tmp_path, *volume, *arguments) as run:
        run.read_until("here", 2)
        run.process.kill()
        run.process.communicate()
        until(
            lambda: (tmp_path / "done").exists() and (tmp_path / "done").read_text() == "xx",
            "the end of the training",
        )
    until(lambda: cluster.left_of("alone") == [], "garbage collection")


def test_elastic_workers_join_the_training_when_there_is_room(cluster, tmp_path):
    """One worker trains; the other one's seat waits until a run that fills the other nodes has ended."""
    (tmp_path / "train.py").write_text(ELASTIC)
    volume = ("--engine-arg", f"volume=hostPath:{tmp_path}:{tmp_path}")
    options = ("--name", "elastic", "--ps", "1", "--workers", "1:2", "--cpus-per-task", "2")
    folder = tmp_path / "before"
    folder.mkdir()
    with Run(cluster, folder, "before", SLEEPS) as before:
        before.reserve("worker/0", "worker/1", resources=TaskResources(4))
        with tensorfleet(cluster, tmp_path, *volume, *options, str(tmp_path / "train.py")) as run:
            run.read_until("worker 0 trains")
            before.engine.close()
            run.read_until("worker 1 trains")
            (tmp_path / "go").touch()
            assert run.end().code == 0, run.stdout + run.stderr
    assert "worker/1 on pod elastic-worker-1 joins." in run.stdout
    assert cluster.left_of("elastic") == []


# -- places ----------------------------------------------------------------------------------------------------------


def test_parameter_servers_are_on_different_nodes(cluster, tmp_path):
    with Run(cluster, tmp_path, "apart", SLEEPS).reserve("ps/0", "ps/1", "ps/2") as run:
        for label in run.wanted:
            run.start(label)
        assert len({run.pod(label).node for label in run.wanted}) == 3


def test_too_little_room_is_said_and_nothing_stays(cluster, tmp_path):
    run = Run(cluster, tmp_path, "large", SLEEPS, wait_seconds=2)
    with run, pytest.raises(EngineError) as caught:
        run.reserve("worker/0", "worker/1", resources=TaskResources(64))
    assert str(caught.value) == (
        "No room on Kubernetes for 2 of 2 tasks within 2 s: worker/0, worker/1 (each 64 processors). Unschedulable: 0/3 nodes "
        "are available: 3 Insufficient cpu. Ask for less, or wait longer (--wait)."
    )


def test_a_place_is_waited_for_until_there_is_room(cluster, tmp_path):
    with Run(cluster, tmp_path, "first", SLEEPS) as first:
        first.reserve("worker/0", "worker/1", "worker/2", resources=TaskResources(3))
        with Run(cluster, tmp_path, "second", SLEEPS) as second:
            waiting = threading.Thread(target=second.reserve, kwargs={"resources": TaskResources(3)})
            waiting.start()
            until(lambda: second.heard.notes[1:], "a note")
            assert (
                second.heard.notes[1]
                == "worker/0 waits: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."
            )
            assert waiting.is_alive()
            first.engine.close()
            waiting.join(60)
            assert second.places["worker/0"].address == "second-worker-0.second:2222"


def test_an_image_that_does_not_exist_is_named(cluster, tmp_path):
    with Run(cluster, tmp_path, "imageless", SLEEPS, image="missing/project:1") as run:
        with pytest.raises(
            EngineError, match="worker/0: Cannot pull the image missing/project:1: .*not found. Check --image"
        ):
            run.reserve()


# -- what becomes of tasks -------------------------------------------------------------------------------------------


def test_a_signal_reaches_the_task_which_may_save(cluster, tmp_path):
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(7)))\n" + SLEEPS
    )
    with Run(cluster, tmp_path, "saves", code).reserve() as run:
        task = run.start()
        until(lambda: run.heard.printed() == ["here"], "the task")
        assert task.where.startswith("pod saves-worker-0-")
        task.send(signal.SIGTERM)
        task.send(signal.SIGTERM)
        assert run.heard.exit_of() == (7, None)
        assert run.heard.printed() == ["here", "saved"]
        task.send(signal.SIGKILL)  # it has ended: no error


def test_a_task_that_ignores_signals_is_killed(cluster, tmp_path):
    code = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPS
    with Run(cluster, tmp_path, "stubborn", code).reserve() as run:
        task = run.start()
        until(lambda: run.heard.printed() == ["here"], "the task")
        task.send(signal.SIGINT)
        task.send(signal.SIGKILL)
        assert run.heard.exit_of() == (-9, None)


def test_a_task_is_started_again_at_its_place(cluster, tmp_path):
    with Run(cluster, tmp_path, "again", "import sys\nsys.exit(5)\n").reserve() as run:
        run.start()
        assert run.heard.exit_of() == (5, None)
        run.script.write_text(
            "import os\nprint(os.uname().nodename is not None, open('/etc/hosts').read())\n"
        )
        run.start()
        assert run.heard.exit_of() == (0, None)
        assert "again-worker-0.again" in "\n".join(run.heard.printed())
        until(lambda: cluster.objects("jobs", "again") == ["again-worker-0-r1"], "the old Job's end")


def test_a_node_that_dies_loses_its_task_which_gets_another_place(cluster, tmp_path):
    with Run(cluster, tmp_path, "moves", SLEEPS).reserve("ps/0") as run:
        run.start("ps/0")
        first = run.pod("ps/0")
        until(lambda: run.heard.printed("ps/0") == ["here"], "the task")
        try:
            cluster.agent.kill_node(first.node)
            code, lost = run.heard.exit_of("ps/0")
            assert code < 0 and ("does not answer" in lost or "deleted" in lost)
            run.engine.seek(run.wanted["ps/0"], run.heard)
            until(lambda: "ps/0" in run.heard.places, "a place")
            assert run.heard.places["ps/0"].address == run.places["ps/0"].address
            run.start("ps/0")
            until(lambda: run.heard.printed("ps/0") == ["here", "here"], "the task")
            assert run.pod("ps/0").node != first.node
        finally:
            cluster.agent.silent.clear()


def test_a_preempted_task_is_lost_and_its_last_lines_are_read(cluster, tmp_path):
    code = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), sys.exit(0)))\n"
    with Run(cluster, tmp_path, "preempted", code + SLEEPS).reserve() as run:
        run.start()
        until(lambda: run.heard.printed() == ["here"], "the task")
        cluster.agent.preempt(run.pod())
        assert run.heard.exit_of()[1] == "its pod was deleted"
        assert run.heard.printed() == ["here", "saved"]


def test_an_evicted_task_is_lost_and_one_without_memory_is_not(cluster, tmp_path):
    with Run(cluster, tmp_path, "evicted", SLEEPS).reserve(
        "worker/0", "worker/1", resources=TaskResources(None, 1 << 30)
    ) as run:
        run.start("worker/0")
        run.start("worker/1")
        cluster.agent.evict(run.pod("worker/0"), "The node was low on resource: memory.")
        cluster.agent.out_of_memory(run.pod("worker/1"))
        assert run.heard.exit_of("worker/0") == (-9, "evicted: The node was low on resource: memory.")
        assert run.heard.exit_of("worker/1") == (-9, None)
        task = Task("worker", 1, None, [], {})
        assert run.engine.advice(task, -9) == [
            "It used more memory than its limit of 1 GiB. Give it more with --memory."
        ]


def test_lines_are_neither_lost_nor_doubled_when_connections_break(cluster, tmp_path):
    with Run(cluster, tmp_path, "cut", COUNTS).reserve() as run:
        run.start()
        for count in range(20, 200, 20):
            until(lambda count=count: len(run.heard.lines) >= count, f"{count} lines")
            cluster.agent.cut_logs()
        assert run.heard.exit_of() == (0, None)
        assert run.heard.printed() == [f"line {n}" for n in range(300)]
        assert cluster.agent.broken_logs >= 5


def test_a_run_outlives_its_api_server(cluster, tmp_path):
    code = COUNTS.replace("300", "1000")
    with Run(cluster, tmp_path, "outlives", code).reserve("worker/0", "worker/1") as run:
        run.start("worker/0")
        run.start("worker/1")
        until(lambda: len(run.heard.lines) > 50, "lines")
        cluster.restart_api_server()
        assert run.heard.exit_of("worker/0") == (0, None)
        assert run.heard.exit_of("worker/1") == (0, None)
        for label in run.wanted:
            assert run.heard.printed(label) == [f"line {n}" for n in range(1000)]


def test_probes_are_answered_at_the_pods_address(cluster, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SLEEPS)
    with tensorfleet(
        cluster, tmp_path, "--name", "probed", "--ps", "0", "--workers", "1", str(script)
    ) as run:
        run.read_until("here")
        (pod,) = cluster.agent.called("probed-worker-0")
        with urllib.request.urlopen(f"http://{pod.address}:2223/healthz", timeout=30) as answer:
            assert answer.read() == b'{"status": "ok"}'
        run.process.send_signal(signal.SIGINT)
        run.end()


# -- bad input -------------------------------------------------------------------------------------------------------


def test_a_second_run_of_one_name_is_told_whose_it_is(cluster, tmp_path):
    with Run(cluster, tmp_path, "twice", SLEEPS).reserve() as run:
        other = Run(cluster, tmp_path, "twice", SLEEPS)
        with pytest.raises(
            EngineError, match="There is a run twice in namespace default, started by .*pid"
        ) as caught:
            other.reserve()
        other.engine.close()
        assert "kubectl delete -n default -l tensorfleet-run=twice" in str(caught.value)
        run.start()  # the first one is untouched
        until(lambda: run.heard.printed() == ["here"], "the task")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"namespace": "nowhere"},
            "There is no namespace nowhere. Create it with `kubectl create namespace nowhere`",
        ),
        (
            {"address": "elsewhere"},
            "has no context named elsewhere. `kubectl config get-contexts` lists them.",
        ),
    ],
)
def test_a_wrong_place_is_named(cluster, tmp_path, change, sentence):
    run = Run(cluster, tmp_path, "misplaced", SLEEPS, **change)
    with run, pytest.raises(EngineError) as caught:
        run.reserve()
    assert sentence in str(caught.value)


def test_missing_rights_and_wrong_credentials_are_told(cluster, tmp_path, monkeypatch):
    run = Run(cluster, tmp_path, "forbidden", SLEEPS)
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig("stranger", STRANGER)))
    with pytest.raises(
        EngineError, match="You may not create services in namespace default: .*Ask for a Role"
    ):
        run.reserve()
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig("wrong", "wrong")))
    with pytest.raises(EngineError, match="refused your credentials. Log in again"):
        Run(cluster, tmp_path, "forbidden", SLEEPS).reserve()
    run.engine.close()


def test_a_server_that_does_not_answer_is_named(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig("dead", host="https://127.0.0.1:9")))
    with pytest.raises(
        EngineError, match="Cannot reach the Kubernetes API server https://127.0.0.1:9: .*refused"
    ):
        Run(cluster, tmp_path, "dead", SLEEPS).reserve()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nothing"))
    with pytest.raises(EngineError, match="No Kubernetes configuration: KUBECONFIG=.* names no file"):
        Run(cluster, tmp_path, "dead", SLEEPS).reserve()


def test_the_doctor_looks_at_the_way_and_the_rights(cluster, monkeypatch):
    good = {finding.what: finding for finding in check("tests")}
    assert {finding.verdict for finding in good.values()} == {"ok"}, str(good)
    assert good["API server"].found == "v1.20.2"
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig("stranger", STRANGER)))
    bad = {finding.what: finding for finding in check()}
    assert bad["rights"].verdict == "bad" and "create jobs" in bad["rights"].found
