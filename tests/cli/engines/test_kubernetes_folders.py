"""A folder that goes with its pod is named before anybody misses what was in it."""

import pytest

from tensorfleet.cli.engines.kubernetes_arguments import pod_options
from tensorfleet.cli.engines.kubernetes_folders import warnings

LOST = (
    "is on no volume that the pods share: each pod has its own, which is gone with it. Checkpoints need one"
)


@pytest.mark.parametrize(
    "volume",
    ["claim:data:/data", "nfs:server:/export:/data", "hostPath:/mnt/nfs:/data/", "claim:data:/data/run"],
)
def test_a_folder_on_a_shared_volume_is_no_news(volume):
    assert not warnings(["train.py", "--train_dir=/data/run"], pod_options([f"volume={volume}"]), None)


@pytest.mark.parametrize(
    "volume",
    ["emptyDir:/data", "memory:1Gi:/data", "claim:data:/data:ro", "claim:x:/dat", "claim:x:/data/run2"],
)
def test_a_folder_on_a_volume_of_one_pod_is_named(volume):
    (line,) = warnings(["train.py", "--train_dir=/data/run"], pod_options([f"volume={volume}"]), None)
    assert line.startswith(f"--train_dir /data/run {LOST}")


def test_a_relative_folder_begins_where_the_task_does():
    command = ["train.py", "--logdir", "run"]
    options = pod_options(["volume=claim:data:/data"])
    assert not warnings(command, options, "/data")
    assert warnings(command, options, "/app")[0].startswith("--logdir /app/run is on no volume")
    assert warnings(command, options, None)[0].startswith("--logdir run is on no volume")


def test_urls_and_folders_that_the_image_may_have_are_no_news():
    command = ["train.py", "--train_dir=gs://bucket/run", "--data_dir=/data", "--steps=3"]
    assert not warnings(command, pod_options([]), None)


def test_a_volume_of_the_users_own_pod_counts():
    pod = 'pod={"spec": {"containers": [{"name": "task", "volumeMounts": [{"name": "v", "mountPath": "/data"}]}]}}'
    assert not warnings(["train.py", "--train_dir=/data/run"], pod_options([pod]), None)
