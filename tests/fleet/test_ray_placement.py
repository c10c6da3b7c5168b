"""What is said of room on a Ray cluster, from what Ray tells of its nodes."""

from __future__ import annotations

import pytest

from tensorfleet.fleet import ray_placement
from tensorfleet.fleet.ray_placement import NoRoom, Seat, bundle, refuse_the_impossible, shown


def node(cpus, labels=None, **others):
    return {"Alive": True, "NodeID": "a", "Resources": {"CPU": cpus, **others}, "Labels": labels or {}}


@pytest.fixture
def nodes(monkeypatch):
    result = []
    monkeypatch.setattr(ray_placement, "alive_nodes", lambda: result)
    return result


def seats(job, count, selector=None, **needs):
    return [Seat(f"{job}/{i}", bundle(needs), job == "ps", selector or {}) for i in range(count)]


def test_a_bundle_has_one_processor_unless_told_otherwise():
    assert bundle({}) == {"CPU": 1.0}
    assert bundle({"CPU": 0.5, "GPU": 0}) == {"CPU": 0.5}
    assert bundle({"CPU": 0, "GPU": 1}) == {"GPU": 1}
    assert bundle({"CPU": 0}) == {"CPU": 0.001}  # Ray refuses an empty one


def test_resources_are_shown_with_their_units():
    assert (
        shown({"disk": 1, "memory": 3 << 30, "GPU": 2, "CPU": 1.5}) == "1.5 CPU, 2 GPU, 3 GB memory, 1 disk"
    )
    assert shown({}) == "nothing"


def test_what_fits_is_not_refused(nodes):
    nodes += [node(2), node(2), node(0.3)]
    refuse_the_impossible(seats("ps", 2) + seats("worker", 2))
    refuse_the_impossible(seats("worker", 3, CPU=0.1))
    refuse_the_impossible([])


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (seats("worker", 1, CPU=3), "job 'worker': each needs 3 CPU, and the largest node has 2 CPU"),
        (seats("worker", 1, GPU=1), "each needs 1 CPU, 1 GPU, and the largest node has 2 CPU, 0 GPU"),
        (
            seats("worker", 3, CPU=1.5),
            "room for 2 of the 3 tasks of job 'worker' when it is empty (4 CPU on 2 nodes)",
        ),
        (seats("ps", 3) + seats("worker", 2), "together 5 CPU; it has 4 CPU (4 CPU on 2 nodes)"),
        (seats("ps", 1, {"zone": "b"}), "the largest node with these labels has 0 CPU"),
    ],
)
def test_what_can_never_fit_is_refused_with_numbers(nodes, wanted, message):
    nodes += [node(2, {"zone": "a"}), node(2, {"zone": "a"})]
    with pytest.raises(NoRoom) as error:
        refuse_the_impossible(wanted)
    assert message in str(error.value)


def test_conditions_on_labels_are_left_to_ray(nodes):
    nodes.append(node(2, {"zone": "a"}))
    refuse_the_impossible(seats("ps", 1, {"zone": "in(a,b)"}))
    refuse_the_impossible(seats("ps", 1, {"zone": "!b"}))


def test_no_nodes_have_no_room(nodes):
    with pytest.raises(NoRoom, match="the largest node has 0 CPU"):
        refuse_the_impossible(seats("worker", 1))
