"""Each rule: where it says something, what it says, and where it does not."""

import pytest

from tensorfleet.cli.dashboard import finding_rules as rules
from tensorfleet.cli.dashboard.overview import FleetView, TaskView
from tests.cli.dashboard.views import task_view

SECONDS = 10.0


def counted(label, steps=100, uptime=1000.0, state="running", before=None, **after):
    """A task that counted from nothing (or `before`) to `after` in ten seconds."""
    parts = after.pop("parts", {})
    steps_before = {"count": 10, "seconds": 1.0, "parts": {}}
    steps_after = {"count": 10 + steps, "seconds": 1.0 + SECONDS, "parts": parts}
    if label.startswith("ps"):
        steps_before = steps_after = {}
    first = {"time": 100.0, "incarnation": 1, "steps": steps_before} | (before or {})
    middle = {"time": 104.9, "incarnation": 1, "steps": steps_before} | (before or {})
    last = {"time": 100.0 + SECONDS, "incarnation": 1, "steps": steps_after} | after
    return task_view(label, [first, middle, last], state, uptime)


def fleet(*views):
    return FleetView(110.0, {view.label: view for view in views})


def server(label, moved, variables=None, **more):
    listed = [
        {"name": name, "bytes": size, "reads": 0, "updates": 0, "read_bytes": 0, "update_bytes": 0}
        for name, (size, _) in (variables or {}).items()
    ]
    used = [v | {"read_bytes": (variables or {})[v["name"]][1]} for v in listed]
    return counted(
        label,
        before={"server": {"sent_bytes": 0}, "variables": listed},
        server={"sent_bytes": moved},
        variables=used,
        **more,
    )


def only(rule, *views):
    observations = list(rule(fleet(*views)))
    assert len(observations) == 1, observations
    assert observations[0].text.endswith(".") and observations[0].advice.endswith(".")
    return observations[0]


# -- hot server -------------------------------------------------------------------------------------------------------


def test_a_hot_server_is_named_with_the_variable_that_is_whole_there():
    found = only(
        rules.hot_server,
        server("ps/0", 9e8, {"embeddings": (4.1e8, 8e8), "b": (10, 1e6)}),
        server("ps/1", 1e8),
    )
    assert found.task == "ps/0" and found.severity == "serious"
    assert found.text == (
        "ps/0 carries 90 % of the bytes of the 2 parameter servers (1.8 times the mean), because `embeddings` (410 MB) is "
        "whole there."
    )
    assert "tf.fixed_size_partitioner(2)" in found.advice


def test_the_slots_of_an_optimizer_count_with_their_variable():
    variables = {"w": (1e6, 4e8), "w/Adam": (1e6, 4e8), "w/Adam_1": (1e6, 4e8), "other": (1e6, 5e8)}
    found = only(rules.hot_server, server("ps/0", 17e8, variables), server("ps/1", 1e8))
    assert "because `w` (1 MB) is whole there" in found.text


def test_a_hot_server_of_many_variables_is_advised_to_balance():
    variables = {f"v{i}": (1000, 1e8) for i in range(6)}
    found = only(rules.hot_server, server("ps/0", 6e8, variables), server("ps/1", 1e8))
    assert "it has 6 variables" in found.text and found.advice.startswith("Place variables by their size")


def test_a_hot_partition_is_not_advised_to_be_partitioned():
    found = only(rules.hot_server, server("ps/0", 6e8, {"w/part_0": (1e6, 5e8)}), server("ps/1", 1e8))
    assert "the partition `w/part_0`" in found.text and "Use more of them" in found.advice


def test_the_part_of_the_bytes_is_found_among_many_servers():
    others = [server(f"ps/{i}", 1e7) for i in range(1, 20)]
    found = only(rules.hot_server, server("ps/0", 9e7, {"w": (1e6, 9e7)}), *others)
    assert found.task == "ps/0" and found.severity == "serious"


@pytest.mark.parametrize(
    "views",
    [
        [server("ps/0", 6e8), server("ps/1", 5e8)],  # not much hotter
        [server("ps/0", 9e8)],  # alone
        [server("ps/0", 1000.0), server("ps/1", 0.0)],  # nobody waits for so few bytes
        [server("ps/0", 9e8), server("ps/1", 1e8, state="silent")],  # nothing is known of the other
        [server("ps/0", 0.0), server("ps/1", 0.0)],
        [],
    ],
)
def test_no_server_is_hot(views):
    assert not list(rules.hot_server(fleet(*views)))


# -- stragglers -------------------------------------------------------------------------------------------------------


def worker(index, steps=100, state="running", **parts):
    return counted(f"worker/{index}", steps, state=state, parts=parts)


def test_a_slow_asynchronous_worker_is_named_with_its_part():
    found = only(
        rules.straggler,
        worker(0, 100, compute=5.0, pull=5.0),
        worker(1, 20, compute=9.0, pull=1.0),
        worker(2, 90, compute=5.0, pull=5.0),
    )
    assert found.task == "worker/1" and found.severity == "serious"
    assert "4.7 times as long" in found.text and "(500 ms to 106 ms), mostly in computing" in found.text


def test_a_slow_synchronous_worker_is_named_although_all_take_the_same_steps():
    found = only(
        rules.straggler,
        worker(0, 20, compute=3.0, wait=7.0),
        worker(1, 20, compute=9.5, wait=0.5),
        worker(2, 20, compute=3.0, wait=7.0),
    )
    assert found.task == "worker/1"


@pytest.mark.parametrize(
    ("part", "where", "word"),
    [
        ("input", "in waiting for input", "prefetch"),
        ("pull", "in getting variables", "network"),
        ("push", "in sending updates", "network"),
        ("compute", "in computing", "other programs"),
    ],
)
def test_the_advice_fits_the_part(part, where, word):
    slow = {"compute": 2.0} | {part: 8.0}
    found = only(
        rules.straggler, worker(0, 100, compute=10.0), worker(1, 20, **slow), worker(2, 100, compute=10.0)
    )
    assert found.text.endswith(f"mostly {where}.") and word in found.advice


def test_a_worker_that_is_busy_between_its_steps_is_a_straggler():
    found = only(
        rules.straggler, worker(0, 100, compute=9.0), worker(1, 20, compute=1.8), worker(2, 100, compute=9.0)
    )
    assert "5 times as long" in found.text and found.text.endswith("mostly outside of sess.run.")
    assert "between two calls of sess.run" in found.advice


def test_of_two_workers_the_slower_is_the_straggler():
    assert only(rules.straggler, worker(0, 100, compute=10.0), worker(1, 30, compute=10.0)).task == "worker/1"


@pytest.mark.parametrize(
    "views",
    [
        [worker(0, 100, compute=10.0), worker(1, 80, compute=10.0)],
        [worker(0, 20, compute=10.0)],
        [worker(0, 100, compute=10.0), worker(1, 20, compute=10.0, state="silent")],
        [worker(0, 100, compute=10.0), worker(1, 1, compute=10.0)],  # one step says little
        [worker(0, 100, compute=10.0), counted("evaluator/0", 5, parts={"compute": 10.0})],
        [worker(0, 50, compute=8.0, wait=2.0), worker(1, 50, compute=9.9)],
    ],
)
def test_no_worker_is_a_straggler(views):
    assert not list(rules.straggler(fleet(*views)))


def pausing(*counts, **more):
    """A worker with so many steps at each second."""
    reports = [
        {"time": 100.0 + i, "incarnation": 1, "steps": {"count": n}} | more for i, n in enumerate(counts)
    ]
    return task_view("worker/1", reports)


def test_a_worker_that_ends_no_step_is_named_with_what_it_waits_for():
    under_way = [{"session": "s", "step": 3, "seconds": 31.0, "waits_for": "ps/1"}]
    found = only(rules.stuck_worker, pausing(1, 20, 40, 60, *[60] * 12, under_way=under_way))
    assert found.task == "worker/1" and "it waits for ps/1 for 31 s" in found.text
    assert found.text.startswith("worker/1 has ended no step for 10 s")


@pytest.mark.parametrize(
    "counts", [range(1, 20), [5] * 20, [*[1] * 10, *[2] * 10, *[3] * 9], [1, 20, 40, 60, 60, 60]]
)
def test_a_worker_with_slow_steps_or_that_has_just_begun_is_not_stuck(counts):
    assert not list(rules.stuck_worker(fleet(pausing(*counts))))


# -- waiting ----------------------------------------------------------------------------------------------------------


def test_waiting_for_input_is_told_with_its_part():
    found = only(
        rules.waits_for_input, worker(1, 50, input=6.2, compute=3.8), worker(0, 50, input=1.0, compute=9.0)
    )
    assert found.text == "worker/1 waits for input 62 % of its time." and found.severity == "serious"
    assert "prefetch" in found.advice


def test_a_worker_that_is_outside_of_its_steps_most_of_the_time_does_not_wait_for_input():
    busy = worker(1, 50, input=0.62, compute=0.38)  # one second of ten in steps
    assert not list(rules.waits_for_input(fleet(busy, worker(0, 50, compute=9.0))))


def test_waiting_for_others_names_for_whom_and_how_many_to_aggregate():
    views = [worker(i, 20, compute=3.0, wait=7.0) for i in (0, 2)] + [worker(1, 20, compute=9.5, wait=0.5)]
    found = only(rules.waits_for_others, *views)
    assert (
        found.task is None
        and "2 of 3 workers wait for others 70 % of their time, mostly for worker/1" in found.text
    )
    assert "replicas_to_aggregate=2, total_num_replicas=3" in found.advice


@pytest.mark.parametrize(
    "views",
    [
        [worker(0, 20, compute=3.0, wait=7.0)],
        [worker(0, 20, compute=3.0, wait=7.0), worker(1, 20, compute=10.0), worker(2, 20, compute=10.0)],
        [worker(0, 20, compute=9.0, wait=1.0), worker(1, 20, compute=9.0, wait=1.0)],
    ],
)
def test_few_waits_for_others_are_not_told(views):
    assert not list(rules.waits_for_others(fleet(*views)))


# -- staleness --------------------------------------------------------------------------------------------------------


def applied(counts):
    def listed(counts):
        return [{"worker": "worker/1", "counts": counts, "dropped": 0}]

    return counted("ps/0", before={"staleness": listed({})}, staleness=listed(counts))


def test_stale_gradients_are_told_with_what_is_usual():
    found = only(rules.stale_gradients, applied({"8": 50, "12": 50}), *(worker(i) for i in range(3)))
    assert found.task == "worker/1" and "10 versions old" in found.text
    assert "95 % are at most 12 old" in found.text and "with 3 workers about 2 is usual" in found.text


@pytest.mark.parametrize("counts", [{"0": 100}, {"1": 50, "2": 50, "9": 3}, {"30": 5}, {}])
def test_usual_staleness_is_not_told(counts):
    assert not list(rules.stale_gradients(fleet(applied(counts), *(worker(i) for i in range(3)))))


def test_percentiles():
    assert rules.percentile({0: 50, 1: 45, 7: 5}, 0.95) == 1
    assert rules.percentile({0: 50, 1: 44, 7: 6}, 0.95) == 7
    assert rules.percentile({}, 0.95) == 0


# -- variables, processors, memory --------------------------------------------------------------------------------------


def whole(read, updated, size=4e8, reads=20):
    variable = {
        "name": "embeddings",
        "bytes": size,
        "reads": 0,
        "updates": 0,
        "read_bytes": 0,
        "update_bytes": 0,
    }
    return counted(
        "ps/0",
        before={"variables": [variable]},
        variables=[variable | {"reads": reads, "read_bytes": read, "update_bytes": updated}],
    )


def test_reading_all_of_a_variable_is_told():
    found = only(rules.whole_reads, whole(read=20 * 4e8, updated=1e7))
    assert "read all of `embeddings` (400 MB) of ps/0" in found.text and "800 times" in found.text
    assert "tf.nn.embedding_lookup" in found.advice


@pytest.mark.parametrize(
    "view",
    [
        whole(read=20 * 4e8, updated=20 * 4e8),  # dense training
        whole(read=1e8, updated=1e6),  # rows
        whole(read=20 * 4e8, updated=0.0),  # nobody trains it
        whole(read=20 * 1e3, updated=10, size=1e3),  # small
    ],
)
def test_other_reads_are_not_told(view):
    assert not list(rules.whole_reads(fleet(view)))


def test_a_server_without_processor_left_is_told():
    busy = counted("ps/0", before={"process": {"cores": 4}}, process={"cores": 4, "cpu_seconds": 38.0})
    assert only(rules.busy_server, busy).text.startswith("ps/0 uses 3.8 of 4 cores")
    half = counted("ps/0", before={"process": {"cores": 4}}, process={"cores": 4, "cpu_seconds": 20.0})
    assert not list(rules.busy_server(fleet(half)))
    assert not list(rules.busy_server(fleet(counted("worker/0", process={"cores": 4, "cpu_seconds": 38.0}))))


@pytest.mark.parametrize(
    ("before", "after", "uptime", "is_told"),
    [
        (1e9, 1.2e9, 1000.0, True),
        (1e9, 1.2e9, 20.0, False),
        (1e9, 1.01e9, 1000.0, False),
        (1e11, 1.002e11, 1000.0, False),
    ],
)
def test_memory_that_grows_is_told(before, after, uptime, is_told):
    view = counted(
        "worker/0",
        uptime=uptime,
        before={"process": {"memory_bytes": before}},
        process={"memory_bytes": after},
    )
    assert bool(list(rules.memory_growth(fleet(view)))) is is_told


# -- queues -------------------------------------------------------------------------------------------------------------


def queue(size, enqueue_wait=0.0, dequeue_wait=0.0, name="batch"):
    empty = {"name": name, "kind": "FIFOQueue", "size": size, "capacity": 32}
    waits = {"enqueue_wait_seconds": enqueue_wait, "dequeue_wait_seconds": dequeue_wait}
    return counted("worker/0", before={"queues": [empty]}, queues=[empty | waits])


def test_an_empty_queue_that_somebody_waits_for_is_told():
    found = only(rules.queue_waits, queue(0, dequeue_wait=9.0))
    assert "`batch` of worker/0 is empty" in found.text and found.severity == "warning"


def test_a_full_queue_is_good_news():
    found = only(rules.queue_waits, queue(32, enqueue_wait=9.0))
    assert "is full (32 elements)" in found.text and found.severity == "info"


@pytest.mark.parametrize(
    "view",
    [
        queue(0),
        queue(16, 9.0, 9.0),
        queue(32, dequeue_wait=9.0),
        queue(0, dequeue_wait=9.0, name="sync_token_q"),
    ],
)
def test_other_queues_are_not_told(view):
    assert not list(rules.queue_waits(fleet(view)))


# -- tasks that are not there -----------------------------------------------------------------------------------------


def test_a_silent_task_is_told_with_its_time():
    found = only(rules.no_answer, TaskView("ps/0", "silent", silent_seconds=7.2))
    assert found.text == "ps/0 has not answered for 7 s." and found.severity == "serious" and found.is_sudden


@pytest.mark.parametrize(("state", "words"), [("dead", "was killed"), ("failed", "has failed")])
def test_a_task_that_is_gone_is_told(state, words):
    assert words in only(rules.no_answer, TaskView("worker/1", state)).text


def test_how_a_task_ended_that_was_started_by_hand_is_not_guessed():
    found = only(rules.no_answer, TaskView("worker/1", "dead", is_launched=False))
    assert found.text == "worker/1 is gone: nobody listens at its address any more."
    assert "its own output" in found.advice


@pytest.mark.parametrize("state", ["starting", "running", "ended"])
def test_a_task_that_is_well_is_not_told(state):
    assert not list(rules.no_answer(fleet(TaskView("worker/1", state))))


def test_a_task_that_was_restarted_is_told_for_a_while():
    assert "12 s ago" in only(rules.restarted, TaskView("ps/0", "running", 12.0, restarts=1)).text
    assert "3 times in all" in only(rules.restarted, TaskView("ps/0", "running", 12.0, restarts=3)).text
    assert not list(rules.restarted(fleet(TaskView("ps/0", "running", 500.0, restarts=1))))
    assert not list(rules.restarted(fleet(TaskView("ps/0", "running", 5.0))))


def test_a_fleet_of_nobody_has_no_findings():
    assert not [observation for rule in rules.RULES for observation in rule(FleetView(1.0))]


@pytest.mark.parametrize(
    ("count", "shown"), [(12, "12 B"), (4096, "4.1 KB"), (4.1e8, "410 MB"), (2.5e9, "2.5 GB")]
)
def test_bytes_as_people_read_them(count, shown):
    assert rules.shown_bytes(count) == shown
