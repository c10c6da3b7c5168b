"""`KubernetesClusterResolver` and `GCEClusterResolver`: the cluster of what runs in a cloud, as its client library tells."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import export
from tensorfleet.cluster.membership.resolvers import OwnTaskResolver, _names
from tensorfleet.cluster.membership.spec import ClusterSpec


@export(*_names("KubernetesClusterResolver"))
class KubernetesClusterResolver(OwnTaskResolver):
    """The pods with given labels, by job. Needs the `kubernetes` package, unless `override_client` is given."""

    def __init__(
        self,
        job_to_label_mapping: dict[str, list[str]] | None = None,
        tf_server_port: int = 8470,
        rpc_layer: str = "grpc",
        override_client: Any = None,
    ) -> None:
        self._labels = job_to_label_mapping or {"worker": ["job-name=tensorflow"]}
        self._port = tf_server_port
        self._client = override_client or _kubernetes_client()
        self.rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The cluster; RuntimeError when one of its pods is not running."""
        return ClusterSpec({job: self._addresses(selectors) for job, selectors in self._labels.items()})

    def _addresses(self, selectors: list[str]) -> list[str]:
        addresses = []
        for selector in selectors:
            pods = self._client.list_pod_for_all_namespaces(label_selector=selector).items
            for pod in sorted(pods, key=lambda pod: pod.metadata.name):
                if pod.status.phase != "Running":
                    raise RuntimeError(
                        f'Pod "{pod.metadata.name}" is not running; phase: "{pod.status.phase}"'
                    )
                addresses.append(f"{pod.status.host_ip}:{self._port}")
        return addresses


def _kubernetes_client() -> Any:
    try:
        from kubernetes import client, config
    except ImportError as e:
        raise ImportError(
            "The Kubernetes Python client must be installed before using the Kubernetes Cluster Resolver. To install the "
            "Kubernetes Python client, run `pip install kubernetes` on your command line."
        ) from e
    config.load_kube_config()
    return client.CoreV1Api()


@export(*_names("GCEClusterResolver"))
class GCEClusterResolver(OwnTaskResolver):
    """The running machines of an instance group, all of one job. Needs `googleapiclient`, unless `service` is given."""

    def __init__(
        self,
        project: str,
        zone: str,
        instance_group: str,
        port: int,
        task_type: str = "worker",
        task_id: int = 0,
        rpc_layer: str = "grpc",
        credentials: Any = "default",
        service: Any = None,
    ) -> None:
        self._place = {"project": project, "zone": zone}
        self._group, self._port = instance_group, port
        self._task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer
        self._service = service or _compute_service(credentials)

    @property
    def task_type(self) -> str:
        """The job of the machines."""
        return self._task_type

    @task_type.setter
    def task_type(self, value: str) -> None:
        raise RuntimeError(
            "You cannot reset the task_type of the GCEClusterResolver after it has been created."
        )

    def cluster_spec(self) -> ClusterSpec:
        """The cluster of the machines that run now."""
        groups, addresses = self._service.instanceGroups(), []
        request = groups.listInstances(
            **self._place, instanceGroups=self._group, body={"instanceState": "RUNNING"}, orderBy="name"
        )
        while request is not None:
            response = request.execute()
            for instance in response["items"]:
                name = instance["instance"].split("/")[-1]
                details = self._service.instances().get(**self._place, instance=name).execute()
                addresses.append(f"{details['networkInterfaces'][0]['networkIP']}:{self._port}")
            request = groups.listInstances_next(previous_request=request, previous_response=response)
        return ClusterSpec({self._task_type: sorted(addresses)})


def _compute_service(credentials: Any) -> Any:
    try:
        from googleapiclient import discovery
        from oauth2client.client import GoogleCredentials
    except ImportError as e:
        raise ImportError(
            "googleapiclient must be installed before using the GCE cluster resolver: run `pip install "
            "google-api-python-client oauth2client`."
        ) from e
    if credentials == "default":
        credentials = GoogleCredentials.get_application_default()
    return discovery.build("compute", "v1", credentials=credentials)
