"""Clusters in clouds, as their clients tell them."""

import sys
from types import SimpleNamespace as Named

import pytest

import tensorfleet as tf

resolver = tf.distribute.cluster_resolver


class Pods:
    def __init__(self, **by_label):
        self.by_label = by_label

    def list_pod_for_all_namespaces(self, label_selector):
        rows = self.by_label[label_selector.replace("=", "_").replace("-", "_")]
        pods = [
            Named(metadata=Named(name=name), status=Named(phase=phase, host_ip=ip))
            for name, phase, ip in rows
        ]
        return Named(items=pods)


def test_the_pods_of_a_label_are_the_tasks_of_a_job():
    pods = Pods(job_name_tensorflow=[("b", "Running", "10.0.0.2"), ("a", "Running", "10.0.0.1")])
    made = resolver.KubernetesClusterResolver(override_client=pods)
    assert made.cluster_spec().as_dict() == {"worker": ["10.0.0.1:8470", "10.0.0.2:8470"]}
    assert made.master() == "" and made.master("worker", 1) == "grpc://10.0.0.2:8470"
    other = resolver.KubernetesClusterResolver(
        {"ps": ["app=ps"], "worker": ["app=one", "app=two"]},
        tf_server_port=1,
        override_client=Pods(
            app_ps=[("p", "Running", "1.1.1.1")],
            app_one=[("x", "Running", "2.2.2.2")],
            app_two=[("y", "Running", "3.3.3.3")],
        ),
    )
    assert other.cluster_spec().as_dict() == {"ps": ["1.1.1.1:1"], "worker": ["2.2.2.2:1", "3.3.3.3:1"]}


def test_a_pod_that_does_not_run_is_named():
    made = resolver.KubernetesClusterResolver(
        override_client=Pods(job_name_tensorflow=[("a", "Failed", "10.0.0.1")])
    )
    with pytest.raises(RuntimeError, match='Pod "a" is not running; phase: "Failed"'):
        made.cluster_spec()


def test_without_their_clients_they_say_what_to_install(monkeypatch):
    for module in ("kubernetes", "googleapiclient"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match="pip install kubernetes"):
        resolver.KubernetesClusterResolver()
    with pytest.raises(ImportError, match="googleapiclient must be installed"):
        resolver.GCEClusterResolver("p", "z", "g", 80)


class Machines:
    """The service of an instance group with two pages of machines."""

    pages = (["m1", "m2"], ["m3"])
    addresses = {"m1": "10.1.1.3", "m2": "10.1.1.2", "m3": "10.1.1.1"}

    def instanceGroups(self):
        return self

    def instances(self):
        return self

    def listInstances(self, project, zone, instanceGroups, body, orderBy):
        assert (project, zone, instanceGroups) == ("p", "z", "g") and body == {"instanceState": "RUNNING"}
        return self._page(0)

    def _page(self, number):
        items = [{"instance": f"zones/z/instances/{name}"} for name in self.pages[number]]
        return Named(execute=lambda: {"items": items}, number=number)

    def listInstances_next(self, previous_request, previous_response):
        return self._page(1) if previous_request.number == 0 else None

    def get(self, project, zone, instance):
        return Named(execute=lambda: {"networkInterfaces": [{"networkIP": self.addresses[instance]}]})


def test_the_machines_of_a_group_are_the_tasks_of_a_job():
    made = resolver.GCEClusterResolver(
        "p", "z", "g", 8080, task_type="chief", credentials=None, service=Machines()
    )
    assert made.cluster_spec().as_dict() == {"chief": ["10.1.1.1:8080", "10.1.1.2:8080", "10.1.1.3:8080"]}
    assert made.master() == "grpc://10.1.1.1:8080" and made.task_type == "chief"
    made.task_id = 1
    assert made.master(rpc_layer="") == "grpc://10.1.1.2:8080"
    with pytest.raises(RuntimeError, match="You cannot reset the task_type"):
        made.task_type = "worker"
