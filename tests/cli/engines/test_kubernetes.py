"""The parts of the Kubernetes engine that decide: names, options, objects, pods, logs. No cluster is needed."""

import itertools
import json
import random
import string
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
import yaml

from tensorfleet.cli.engines import kubernetes_manifests as manifests
from tensorfleet.cli.engines.base import EngineError, RunOptions, TaskResources, Wanted
from tensorfleet.cli.engines.kubernetes import KubernetesEngine
from tensorfleet.cli.engines.kubernetes_api import Api, ApiError, Unreachable, connect, explained
from tensorfleet.cli.engines.kubernetes_arguments import pod_options
from tensorfleet.cli.engines.kubernetes_logs import LogCursor
from tensorfleet.cli.engines.kubernetes_names import address_of, attempt_name, run_label, task_name
from tensorfleet.cli.engines.kubernetes_pod import Began, Ended, Note, Placed, PodFollower
from tensorfleet.cli.engines.kubernetes_run import Preparation
from tensorfleet.cli.engines.kubernetes_watch import PodWatch
from tensorfleet.cli.plan import Task

TEXTS = [
    "digits",
    "My Run!",
    "a" * 80,
    "9lives",
    "-",
    "ümlaut",
    "a_b",
    "a-b",
    "A-B",
    "x" * 34,
    "x" * 35,
    "日本",
]


def options_of(tmp_path, *arguments, script="train.py", **others):
    path = tmp_path / script
    if not path.exists():
        path.write_text("print('hello')\n")
    return RunOptions("digits", path, image="me/project", engine_arguments=arguments, **others)


def a_task(job="worker", index=0, command=("python3", "train.py"), **environment):
    address = address_of("digits", job, index)
    return Task(job, index, address, list(command), {"TENSORFLEET_TOKEN": "secret!", **environment})


def pod_of(job):
    return job["spec"]["template"]["spec"]


# -- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("job", ["ps", "worker", "a_b", "Learner", "x" * 40, "é"])
def test_every_name_is_a_dns_label_that_begins_with_a_letter(name, job):
    run = run_label(name)
    for label in (run, attempt_name(task_name(run, job, 9999), 12, "s"), task_name(run, job, 0)):
        assert len(label) <= 63 and label[0] in string.ascii_lowercase and label[-1] != "-"
        assert set(label) <= set(string.ascii_lowercase + string.digits + "-")


def test_two_runs_or_tasks_never_share_a_name():
    names = [*TEXTS, *(f"{'y' * 50}{n}" for n in range(50)), "a-b-c", "digits-ps", "digits-ps-0"]
    assert len({run_label(name) for name in names}) == len(names)
    jobs = ["ps", "worker", "a_b", "aB", "ab", "a-b", "b", "x" * 30, "x" * 31]
    tasks = [(n, j, i) for n in names for j in jobs for i in (0, 1, 11)]
    assert len({task_name(run_label(n), j, i) for n, j, i in tasks}) == len(tasks)


def test_a_plain_name_stays_as_it_is():
    assert address_of(run_label("digits"), "ps", 0) == "digits-ps-0.digits:2222"
    assert attempt_name("digits-ps-0", 0) == "digits-ps-0"
    assert attempt_name("digits-ps-0", 2) == "digits-ps-0-r2"


# -- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("volumes=claim:a:/b", "is not an option of Kubernetes. Did you mean volume?"),
        ("volume", "does not have the form KEY=VALUE"),
        ("volume=claim:data", "is not a volume. Write claim:NAME:/path"),
        ("volume=claim::/data", "is not a volume"),
        ("volume=nfs:server:/data", "is not a volume. Write nfs:SERVER:/export:/path"),
        ("grace=soon", "is not a whole number of at least 1"),
        ("grace=0", "is not a whole number of at least 1"),
        ("ship=maybe", "is not on or off"),
        ("security=lax", "is not one of restricted, none"),
        ("label=x", "has no NAME=VALUE"),
        ("toleration=gpu:Never", "has the effect 'Never'. Use NoSchedule"),
        ("pod={spec", "cannot be read"),
        ("pod=[1]", "is not part of a pod"),
        ("pod=@/nowhere.yaml", "cannot be read"),
        ("image_pull_policy=Sometimes", "is not one of Always, IfNotPresent, Never"),
    ],
)
def test_a_wrong_option_is_refused_with_a_sentence(argument, sentence):
    with pytest.raises(ValueError, match=argument.partition("=")[0]) as caught:
        pod_options([argument])
    assert sentence in str(caught.value)


def test_volumes_are_written_as_kind_source_and_path():
    written = [
        "claim:data:/data",
        "hostPath:/mnt/a:/b:ro",
        "nfs:server:/export:/c",
        "emptyDir:/d",
        "memory:2Gi:/dev/shm",
    ]
    volumes = pod_options([f"volume={text}" for text in written]).volumes
    assert [volume.path for volume in volumes] == ["/data", "/b", "/c", "/d", "/dev/shm"]
    assert volumes[0].source == {"persistentVolumeClaim": {"claimName": "data"}}
    assert volumes[1].source == {"hostPath": {"path": "/mnt/a"}} and volumes[1].read_only
    assert volumes[2].source == {"nfs": {"server": "server", "path": "/export"}}
    assert volumes[4].source == {"emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}}


def test_a_limit_of_time_is_given_in_seconds_or_as_slurm_writes_it(tmp_path):
    for text, seconds in {"90": 90, "30:00": 1800, "2:00:00": 7200, "1-00:00:01": 86401}.items():
        assert Preparation(options_of(tmp_path, time_limit=text)).run.time_limit == seconds
    with pytest.raises(ValueError, match="--time soon is not a time"):
        Preparation(options_of(tmp_path, time_limit="soon"))


# -- objects ---------------------------------------------------------------------------------------------------------


def test_the_token_is_only_in_the_secret(tmp_path):
    objects = Preparation(options_of(tmp_path)).objects([a_task(), a_task("ps")], {})
    kinds = [thing["kind"] for thing in objects]
    assert kinds == ["Service", "Secret", "Job", "Job"]
    assert all("secret!" not in json.dumps(thing) for thing in objects)
    for job in objects[2:]:
        token = next(v for v in pod_of(job)["containers"][0]["env"] if v["name"] == "TENSORFLEET_TOKEN")
        assert token["valueFrom"] == {"secretKeyRef": {"name": "digits", "key": "token"}}


def test_a_task_gets_its_resources_and_a_parameter_server_no_gpu():
    run = manifests.RunObjects("digits", "digits", "me/project")
    resources = TaskResources(1.5, 2 << 30, 2)
    worker = manifests.task_job(run, "w", a_task(), resources)
    server = manifests.task_job(run, "p", a_task("ps"), resources)
    assert pod_of(worker)["containers"][0]["resources"] == {
        "requests": {"cpu": "1500m", "memory": str(2 << 30)},
        "limits": {"memory": str(2 << 30), "nvidia.com/gpu": "2"},
    }
    assert "nvidia.com/gpu" not in pod_of(server)["containers"][0]["resources"]["limits"]
    assert "affinity" in pod_of(server) and "affinity" not in pod_of(worker)


def test_kubernetes_replaces_nothing_in_commands_and_variables():
    run = manifests.RunObjects("digits", "digits", "me/project")
    job = manifests.task_job(
        run, "w", a_task(command=("python3", "$(HOME)"), A="$(B) $$ $c"), TaskResources()
    )
    container = pod_of(job)["containers"][0]
    assert container["command"] == ["python3", "$$(HOME)"]
    assert {"name": "A", "value": "$$(B) $$$$ $$c"} in container["env"]


def test_device_numbers_of_one_machine_do_not_reach_pods_unless_the_user_sets_them():
    given = a_task(CUDA_VISIBLE_DEVICES="2,3")
    run = manifests.RunObjects("digits", "digits", "me/project")
    chosen = manifests.RunObjects(
        "digits", "digits", "me/project", environment={"CUDA_VISIBLE_DEVICES": "2,3"}
    )
    names = [
        v["name"]
        for v in pod_of(manifests.task_job(run, "w", given, TaskResources()))["containers"][0]["env"]
    ]
    assert "CUDA_VISIBLE_DEVICES" not in names
    env = pod_of(manifests.task_job(chosen, "w", given, TaskResources()))["containers"][0]["env"]
    assert {"name": "CUDA_VISIBLE_DEVICES", "value": "2,3"} in env


def test_a_pod_may_gain_nothing_by_default_and_everything_if_asked():
    restricted = manifests.task_job(
        manifests.RunObjects("d", "d", "i", pod_options(["run_as_user=1000", "fs_group=2000"])),
        "w",
        a_task(),
        TaskResources(),
    )
    assert pod_of(restricted)["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsUser": 1000,
        "runAsNonRoot": True,
        "fsGroup": 2000,
    }
    container = pod_of(restricted)["containers"][0]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod_of(restricted)["automountServiceAccountToken"] is False
    free = manifests.task_job(
        manifests.RunObjects("d", "d", "i", pod_options(["security=none"])), "w", a_task(), TaskResources()
    )
    assert "securityContext" not in pod_of(free) and "securityContext" not in pod_of(free)["containers"][0]


def test_the_users_part_of_a_pod_is_merged_into_ours():
    part = {
        "spec": {"dnsPolicy": "Default", "containers": [{"name": "task", "stdin": True}, {"name": "beside"}]}
    }
    run = manifests.RunObjects("d", "d", "i", pod_options([f"pod={json.dumps(part)}"]))
    pod = pod_of(manifests.task_job(run, "w", a_task(), TaskResources()))
    assert pod["dnsPolicy"] == "Default" and pod["restartPolicy"] == "Never"
    assert [c["name"] for c in pod["containers"]] == ["task", "beside"]
    assert pod["containers"][0]["stdin"] and pod["containers"][0]["image"] == "i"


def test_a_seat_asks_for_the_same_room_and_has_no_name():
    run = manifests.RunObjects(
        "d", "d", "i", pod_options(["volume=claim:data:/data", "node_selector=zone=a"])
    )
    resources = TaskResources(2, None, 1)
    task, seat = (
        manifests.task_job(run, "w", a_task(), resources),
        manifests.seat_job(run, "s", "worker", 0, resources),
    )
    for key in ("nodeSelector", "volumes", "tolerations", "securityContext"):
        assert pod_of(seat)[key] == pod_of(task)[key]
    assert pod_of(seat)["containers"][0]["resources"] == pod_of(task)["containers"][0]["resources"]
    assert "hostname" not in pod_of(seat) and "env" not in pod_of(seat)["containers"][0]
    assert seat["spec"]["ttlSecondsAfterFinished"] == 0


def test_a_small_folder_is_shipped_and_the_command_finds_the_script(tmp_path):
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "task.py").write_text("import trainer\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("x")
    prepared = Preparation(options_of(tmp_path, "ship=1", script="trainer/task.py"))
    task = prepared.in_pod(
        a_task(command=("python3", "-m", "tensorfleet", str(package / "task.py"), "--a=1"))
    )
    assert task.command == ["python3", "-m", "tensorfleet", "/tensorfleet/src/trainer/task.py", "--a=1"]
    things = {thing["kind"]: thing for thing in prepared.objects([task], {})}
    assert len(things["ConfigMap"]["binaryData"]) == 2
    items = {item["path"] for item in pod_of(things["Job"])["volumes"][0]["configMap"]["items"]}
    assert items == {"trainer/__init__.py", "trainer/task.py"}
    assert "Shipping" in prepared.notes()[0]


def test_a_large_folder_is_not_shipped(tmp_path):
    (tmp_path / "data.bin").write_bytes(bytes(1_000_000))
    with pytest.raises(
        ValueError, match="has more than 900 KB, and a ConfigMap has no room for that. Put the"
    ):
        Preparation(options_of(tmp_path, "ship=1"))


def test_certificates_go_into_a_secret_without_the_authoritys_key(tmp_path):
    folder = tmp_path / "tls"
    folder.mkdir()
    for name in ("ca.pem", "ca.key", "server.pem", "server.key"):
        (folder / name).write_text(name)
    objects = Preparation(options_of(tmp_path, f"tls={folder}")).objects([a_task()], {})
    secrets = {thing["metadata"]["name"]: thing["data"] for thing in objects if thing["kind"] == "Secret"}
    assert set(secrets["digits-tls"]) == {"ca.pem", "server.pem", "server.key"}
    assert {"name": "TENSORFLEET_TLS", "value": "/tensorfleet/tls"} in pod_of(objects[-1])["containers"][0][
        "env"
    ]
    with pytest.raises(ValueError, match="has no ca.pem. Create certificates with"):
        Preparation(options_of(tmp_path, f"tls={tmp_path}"))


def test_printed_manifests_say_how_to_apply_and_delete_them(tmp_path):
    engine = KubernetesEngine(options_of(tmp_path, namespace="ml"))
    places = engine.preview([Wanted("ps", 0, True), Wanted("worker", 0, False, TaskResources(2))])
    text = engine.manifests([a_task("ps"), a_task()])
    assert places["ps/0"].address == "digits-ps-0.digits:2222"
    assert "# Apply with: kubectl apply -n ml -f FILE\n" in text
    assert "# Note:" not in text
    lost = engine.manifests([a_task(command=("python3", "train.py", "--train_dir=/tmp/run"))])
    assert lost.startswith("# Note: --train_dir /tmp/run is on no volume that the pods share")
    jobs = [thing for thing in yaml.safe_load_all(text) if thing["kind"] == "Job"]
    assert [job["spec"]["backoffLimit"] for job in jobs] == [3, 3]
    assert pod_of(jobs[1])["containers"][0]["resources"] == {"requests": {"cpu": "2000m"}}


def test_a_run_without_an_image_is_refused(tmp_path):
    path = tmp_path / "train.py"
    path.touch()
    with pytest.raises(EngineError, match="Kubernetes needs a container image .* --image NAME"):
        KubernetesEngine(RunOptions("digits", path)).preview([])


def test_a_script_that_only_the_image_has_is_refused_until_its_flags_are_known(tmp_path):
    missing, wanted = tmp_path / "train.py", [Wanted("worker", 0, False)]

    def engine(*arguments):
        return KubernetesEngine(RunOptions("d", missing, image="i", engine_arguments=arguments))

    with pytest.raises(
        EngineError, match="nobody can see by which flags .* --engine-arg script=image .*--flag-names"
    ):
        engine().preview(wanted)
    with pytest.raises(EngineError, match="say how many tasks it has. Add --ps N --workers N."):
        engine("script=image").preview([Wanted("main", 0, False)])
    with pytest.raises(EngineError, match="Cannot ship .*: no such file"):
        engine("ship=1").preview(wanted)
    assert engine("script=image").preview(wanted)


def test_the_command_line_does_not_import_the_client():
    code = "import sys, tensorfleet.cli.command, tensorfleet.cli.engines.kubernetes; print('kubernetes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False", done.stderr


def test_a_missing_client_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(
        EngineError, match=r"not installed. Install it with: pip install 'tensorfleet\[kubernetes\]'"
    ):
        connect(None, None, threading.Event())


# -- pods ------------------------------------------------------------------------------------------------------------


def pod(phase="Pending", state=None, uid="1", node="", deleted=None, conditions=(), **status):
    containers = [{"name": "sidecar", "state": {"running": {}}}]
    containers += [{"name": "task", "state": state}] if state else []
    metadata = {"name": f"digits-worker-0-{uid}", "uid": uid}
    if deleted is not None:
        metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": deleted}
    return {
        "metadata": metadata,
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "containerStatuses": containers, "conditions": list(conditions), **status},
    }


def terminated(code, reason="Error", **more):
    return {"terminated": {"exitCode": code, "reason": reason, **more}}


def waiting(reason, message=""):
    return {"waiting": {"reason": reason, "message": message}}


RUNNING = {"running": {}}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def follow(*events, asked=None):
    """The decisions about a pod: events are pods, None for its end, a number for a later time."""
    follower, now, decisions = PodFollower("worker/0", "me/project", "2 GiB"), 100.0, []
    if asked is not None:
        follower.ask_to_end(asked)
    for event in events:
        if isinstance(event, int | float):
            now += event
            decisions += follower.on_time(now)
        elif event is None:
            decisions += follower.on_gone(now)
        else:
            decisions += follower.on_pod(event, now)
    return decisions


def end_of(*events, asked=None):
    ends = [d for d in follow(*events, asked=asked) if isinstance(d, Ended)]
    assert len(ends) <= 1
    return ends[0] if ends else None


def test_a_pod_is_placed_begins_and_ends():
    decisions = follow(
        pod(),
        pod(node="n1"),
        pod("Running", RUNNING, node="n1"),
        pod("Succeeded", terminated(0, "Completed"), node="n1"),
        None,
    )
    assert decisions == [Placed("n1"), Began("digits-worker-0-1"), Ended(0, pod="digits-worker-0-1")]


def test_a_pod_that_ends_before_it_was_seen_running_has_a_log_too():
    assert follow(pod("Failed", terminated(3), node="n1"))[1:] == [
        Began("digits-worker-0-1"),
        Ended(3, pod="digits-worker-0-1"),
    ]


@pytest.mark.parametrize(("code", "number"), [(137, -9), (139, -11), (143, -15), (1, 1), (255, 255)])
def test_exit_codes_of_signals_are_told_as_signals(code, number):
    assert end_of(pod("Failed", terminated(code), node="n1")).code == number


def test_a_container_that_used_too_much_memory_says_so():
    end = end_of(pod("Failed", terminated(137, "OOMKilled"), node="n1"))
    assert (end.code, end.lost) == (-9, None)
    assert end.why == "It used more memory than its limit of 2 GiB. Give it more with --memory."


def test_a_pod_without_room_is_told_once_and_waits():
    decisions = follow(pod(conditions=[UNSCHEDULABLE]), 1, 3, pod(conditions=[UNSCHEDULABLE]), 100)
    assert decisions == [Note("worker/0 waits: Unschedulable: 0/3 nodes")]


def test_an_image_that_does_not_exist_ends_the_task_at_once():
    end = end_of(
        pod(state=waiting("ErrImagePull", "failed to resolve reference: me/project: not found"), node="n1")
    )
    assert end.code == 1 and end.lost is None
    assert end.why.startswith(
        "Cannot pull the image me/project: failed to resolve reference: me/project: not found."
    )


def test_a_registry_that_is_away_is_waited_for():
    away = pod(state=waiting("ErrImagePull", "i/o timeout"), node="n1")
    back_off = pod(state=waiting("ImagePullBackOff", 'Back-off pulling image "me/project"'), node="n1")
    assert end_of(away, back_off, 60, away, pod("Running", RUNNING, node="n1")) is None
    assert "i/o timeout" in end_of(away, 60, back_off, 30, away, 40).why


def test_a_container_that_cannot_be_configured_ends_the_task_after_a_minute():
    wrong = pod(state=waiting("CreateContainerConfigError", 'secret "digits" not found'), node="n1")
    assert end_of(wrong, 30) is None
    assert "cannot be created: CreateContainerConfigError: secret" in end_of(wrong, 30, 31).why


@pytest.mark.parametrize(
    ("event", "lost"),
    [
        (pod("Failed", reason="Evicted", message="low on memory", node="n1"), "evicted: low on memory"),
        (
            pod("Failed", terminated(137), node="n1", conditions=[PREEMPTED]),
            "preempted by a pod of higher priority",
        ),
        (pod("Failed", terminated(0), node="n1", deleted=30), "its pod was deleted"),
        (pod("Failed", terminated(143), node="n1", deleted=30, conditions=[PREEMPTED]), "preempted by"),
        (
            pod("Failed", reason="OutOfcpu", message="Node didn't have enough cpu", node="n1"),
            "has no room for it",
        ),
        (pod("Failed", reason="NodeLost", node="n1"), "its node does not answer"),
        (
            pod("Failed", terminated(137, "ContainerStatusUnknown"), node="n1"),
            "node n1 has lost its container",
        ),
        (None, "its pod was deleted"),
    ],
)
def test_a_pod_that_is_taken_away_is_lost(event, lost):
    end = end_of(pod("Running", RUNNING, node="n1"), event)
    assert lost in end.lost


def test_a_node_that_does_not_answer_loses_its_pods_after_their_grace():
    dying = pod("Running", RUNNING, node="n1", deleted=30)
    assert end_of(dying, 40) is None
    assert end_of(dying, 40, 6).lost == "node n1 does not answer"


def test_the_grace_of_a_pod_on_a_silent_node_is_not_waited_for():
    silent = [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}]
    dying = pod("Running", RUNNING, node="n1", deleted=60, conditions=silent)
    assert end_of(dying, 10) is None
    assert end_of(dying, 10, 6).lost == "node n1 does not answer"


def test_a_pod_that_the_launcher_ends_is_not_lost():
    dying = pod("Running", RUNNING, node="n1", deleted=30)
    assert end_of(dying, pod("Failed", terminated(0), node="n1", deleted=30), asked=15) == Ended(
        0, pod="digits-worker-0-1"
    )
    assert end_of(dying, None, asked=15).code == -15
    assert end_of(dying, 60, asked=15) == Ended(-9, pod="digits-worker-0-1")


def test_the_replacement_of_a_deleted_pod_is_not_followed():
    decisions = follow(
        pod("Running", RUNNING, node="n1"),
        pod(uid="2", node="n2"),
        pod("Running", RUNNING, uid="2", node="n2"),
    )
    assert decisions == [Placed("n1"), Began("digits-worker-0-1")]


def test_a_job_that_may_not_create_its_pod_says_why():
    follower = PodFollower("worker/0", "me/project")
    assert follower.on_refused("exceeded quota: cpu", False, 1.0) == []
    assert follower.on_time(5.0) == [Note("worker/0 waits: exceeded quota: cpu")]
    (end,) = follower.on_refused('violates PodSecurity "restricted"', True, 6.0)
    assert "Kubernetes refused its pod: violates PodSecurity" in end.why


def test_whatever_the_order_of_events_a_task_ends_once_and_a_log_begins_once():
    events = [
        pod(),
        pod(conditions=[UNSCHEDULABLE]),
        pod(node="n1", state=waiting("ErrImagePull", "i/o timeout")),
        pod("Running", RUNNING, node="n1"),
        pod("Running", RUNNING, node="n1", deleted=5),
        pod("Failed", terminated(143), node="n1", deleted=5),
        pod("Failed", reason="Evicted", node="n1"),
        pod("Running", RUNNING, uid="2", node="n2"),
        None,
        30.0,
    ]
    orders = itertools.chain(itertools.permutations(events, 4), _shuffles(events, 3000))
    for order in orders:
        for asked in (None, 15):
            decisions = follow(*order, asked=asked)
            assert sum(isinstance(d, Ended) for d in decisions) <= 1
            assert sum(isinstance(d, Began) for d in decisions) <= 1
            assert sum(isinstance(d, Placed) for d in decisions) <= 1
            last = [i for i, d in enumerate(decisions) if isinstance(d, Ended)]
            assert not last or last[0] == len(decisions) - 1  # nothing comes after the end


def _shuffles(events, count):
    chance = random.Random(1)
    for _ in range(count):
        yield chance.sample(events, chance.randint(1, len(events)))


# -- logs ------------------------------------------------------------------------------------------------------------


def stamped(second, text, fraction=0):
    return f"2026-01-01T00:00:{second:02d}.{fraction:09d}Z {text}".encode()


def test_a_log_that_is_opened_again_loses_and_doubles_nothing():
    chance = random.Random(2)
    for _ in range(200):
        lines = [
            stamped(s, chance.choice("ab"), chance.choice((0, 5)))
            for s in range(10)
            for _ in range(chance.randint(0, 4))
        ]
        cursor, read, place = LogCursor(), [], 0
        while place < len(lines):
            cursor.reopen()
            since = (cursor.since or "")[:19].encode()
            place = chance.randint(place, len(lines))  # as far as it gets this time
            for line in lines[:place]:
                if line[:19] >= since and (text := cursor.take(line)) is not None:
                    read.append(text)
        assert read == [line.split(b" ", 1)[1].decode() for line in lines]


def test_a_line_without_a_time_is_passed_on():
    assert LogCursor().take(b"failed to open the log") == "failed to open the log"
    assert LogCursor().take(stamped(1, "")) == ""
    assert LogCursor().take(b"2026-01-01T00:00:01+01:00 caf\xe9\r") == "caf�"


# -- the API ---------------------------------------------------------------------------------------------------------


class FakeServer:
    """Answers requests from a list; an exception stands for a connection that fails."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []
        self.stopped = threading.Event()
        self.stopped.set()  # no pauses
        self.api = Api("https://here", "ml", self.send, self.stopped)

    def send(self, method, url, content, headers, seconds):
        self.requests.append((method, url))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, body = answer
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        chunks = [data[i : i + 7] for i in range(0, len(data), 7)]
        return _Answer(
            status=status,
            reason="",
            read=lambda: data,
            close=lambda: None,
            stream=lambda *_, **__: iter(chunks),
        )


class _Answer(SimpleNamespace):
    __hash__ = object.__hash__


def test_a_request_is_tried_again_after_a_failure_that_passes():
    pytest.importorskip("urllib3")
    server = FakeServer((503, {"message": "busy"}), OSError("reset"), (200, {"kind": "Job"}))
    assert server.api.request("GET", "/x") == {"kind": "Job"}
    assert len(server.requests) == 3


def test_what_was_created_before_the_answer_was_lost_is_ours():
    pytest.importorskip("urllib3")
    conflict = (409, {"reason": "AlreadyExists", "message": "exists"})
    server = FakeServer(OSError("reset"), conflict, (200, {"metadata": {"uid": "7"}}))
    body = {"metadata": {"name": "digits"}}
    assert server.api.request("POST", "/x", body)["metadata"]["uid"] == "7"
    with pytest.raises(ApiError, match="exists"):
        FakeServer(conflict).api.request("POST", "/x", body)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            Unreachable("Connection refused"),
            "Cannot reach the Kubernetes API server https://here: Connection refused.",
        ),
        (ApiError(401, "Unauthorized", "no"), "refused your credentials. Log in again"),
        (ApiError(403, "Forbidden", "no"), "You may not create jobs in namespace ml: no. Ask for a Role"),
        (
            ApiError(403, "Forbidden", "exceeded quota: jobs"),
            "Kubernetes refused to create jobs: exceeded quota: jobs",
        ),
        (ApiError(404, "NotFound", 'namespaces "ml" not found'), "There is no namespace ml. Create it with"),
        (ApiError(422, "Invalid", "bad"), "Kubernetes refused to create jobs: bad"),
    ],
)
def test_a_failed_request_is_a_sentence_with_a_remedy(error, sentence):
    assert sentence in str(explained(error, FakeServer().api, "create jobs"))


def test_a_watch_goes_on_from_its_place_and_lists_again_when_that_is_forgotten():
    pytest.importorskip("urllib3")
    seen, gone = [], []

    def listed(version, *names):
        items = [{"metadata": {"name": name, "resourceVersion": version}} for name in names]
        return 200, {"metadata": {"resourceVersion": version}, "items": items}

    def events(*pairs):
        lines = [
            {
                "type": kind,
                "object": {"code": 410}
                if kind == "ERROR"
                else {"metadata": {"name": name, "resourceVersion": version}},
            }
            for kind, name, version in pairs
        ]
        return 200, b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    server = FakeServer(
        listed("1", "a", "b"),
        events(("ADDED", "c", "2"), ("BOOKMARK", "", "5")),
        events(("DELETED", "a", "6"), ("ERROR", "", "")),
        listed("9", "c"),
        (200, b""),
    )
    server.stopped.clear()

    def on_gone(name):
        gone.append(name)
        if name == "b":  # which has gone while nobody listened
            server.stopped.set()

    watch = PodWatch(server.api, "run=x", lambda p: seen.append(p["metadata"]["name"]), on_gone, print)
    watch.start()
    assert server.stopped.wait(30)
    assert gone == ["a", "b"]
    versions = [url.partition("resourceVersion=")[2].partition("&")[0] for _, url in server.requests]
    assert versions[:4] == ["", "1", "5", ""]
    assert seen[:4] == ["a", "b", "c", "a"]
