"""Nothing waits for ever: a wait has a deadline, or somebody who ends it, and then it is listed here with whom."""

import ast
from pathlib import Path

from tests.support.sources import ROOT, sources

WAITS = {"wait", "join", "get", "acquire", "communicate", "result"}

# What has no deadline, by file and function, and what ends it.
ENDED_BY = {
    "tensorfleet/cli/dashboard/simulated_server.py:main": "whoever started the simulation, by Ctrl-C",
    "tensorfleet/runtime/scheduling/cooperative.py:run": "the step's items, each of which ends at its step's deadline or cancellation",
    "tensorfleet/runtime/scheduling/threads.py:run": "the step's items, each of which ends at its step's deadline or cancellation",
    "tensorfleet/runtime/scheduling/host_ops.py:run": "whoever computes the variable's new value; locks are taken in one order",
    "tensorfleet/runtime/segments/segment_item.py:_compute": "whoever computes the variable's new value; locks are taken in one order",
    "tensorfleet/runtime/variable_packs.py:acquire": "whoever computes the variable's new value; locks are taken in one order",
    "tensorfleet/runtime/variable_packs.py:begin": "nobody: no other thread knows the new lock yet",
    "tensorfleet/runtime/variable_packs.py:dissolve": "nobody: no other thread knows the new locks yet",
    "tensorfleet/cluster/server.py:__init__": "the end of the cluster (`Server.join`)",
    "tensorfleet/cluster/server.py:serve_on": "the end of the cluster (`Server.join`)",
    "tensorfleet/cluster/worker/short_requests.py:receive": "the thread that polls, at the end of the connection or of the server at the latest",
    "tensorfleet/cluster/worker/short_requests.py:_watch": "the thread that polls, when it has something to do, or the end of the server",
    "tensorfleet/kernels/parallel_for.py:_help": "the end of the process: it waits for work",
    "tensorfleet/kernels/parallel_for.py:end": "the parts of the caller's own work, which other threads are computing",
    "tensorfleet/api/data/cache_prefetch.py:fetch": "the run's end, which sets the event",
    "tensorfleet/api/data/parallel.py:_work": "the run's end, which puts None",
    "tensorfleet/api/distribute/coordinating.py:wait_for_other_workers": "the barrier's own limit",
    "tensorfleet/api/distribute/coordinator.py:_as_task": "the end of the cluster (`Server.join`)",
    "tensorfleet/api/distribute/replicas.py:advance": "the replica's thread, which ends or calls `merge_call`",
    "tensorfleet/api/distribute/replicas.py:_pause": "the thread that builds the replicas, also when it gives them up",
    "tensorfleet/api/distribute/replicas.py:_run": "the thread that builds the replicas, also when it gives them up",
    "tensorfleet_legacy/estimator/training.py:_run_server": "the end of the cluster (`Server.join`)",
    "tensorfleet_legacy/contrib/learn/experiment.py:run_std_server": "the end of the cluster (`Server.join`)",
    "tensorfleet_legacy/estimator/export_output.py:_wrap_and_check_metrics": "itself: the result of a metric is a tensor",
    "tensorfleet_legacy/estimator/estimator_metrics.py:with_loss": "itself: the result of a metric is a tensor",
    "tensorfleet_legacy/keras/estimator.py:model_fn": "itself: the result of a metric is a tensor",
    "tensorfleet_legacy/keras/metrics_base.py:__call__": "itself: the result of a metric is a tensor",
    "tensorfleet_legacy/keras/metrics.py:result": "itself: the result of a metric is a tensor",
    "tensorfleet/cli/run.py:on_line": "whoever prints; a thread of lines that nobody prints ends with the process",
    "tensorfleet/cluster/durability/stage_run.py:begin": "the commit of its holder, which the guard's decision ends",
    "tensorfleet/cluster/durability/standby.py:serve": "the launcher, or whoever stops the server",
    "tensorfleet/cli/engines/child.py:_wait": "the task's end, which the launcher brings about when it stops",
    "tensorfleet/cli/engines/slurm_step.py:_wait": "the task's end, which the launcher brings about when it stops",
    "tensorfleet/cli/engines/child.py:close": "the guardian's end, which closing its input is",
    "tensorfleet/fleet/ray_tasks.py:_wait": "the task's end, which the launcher brings about, or the end of the actor",
    "tensorfleet/fleet/library/join.py:join": "the end of the cluster (`Server.join`)",
    "tensorfleet/fleet/ray_tasks.py:serve": "the end of the actor, when the workers have ended",
    "tensorfleet/testing/fork_server.py:_serve": "a signal, or the end of the cluster (`Server.join`)",
    "tensorfleet_legacy/testing/test_util.py:join": "the end of the thread a test has started",
    "tensorfleet_legacy/testing/multi_worker_test_base.py:join_independent_workers": "the end of the processes a test has started",
    "tensorfleet_legacy/testing/multi_worker_test_base.py:run": "the other workers of the test, or the barrier's own limit",
}


def waits_in(path: Path, root: Path = ROOT) -> set[str]:
    """The functions of a file that wait without a limit."""
    result = set()

    def look(node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WAITS:
            given = [*node.args, *(k.value for k in node.keywords)]
            if all(isinstance(g, ast.Constant) and g.value is None for g in given):
                result.add(f"{path.relative_to(root)}:{function}")
        for child in ast.iter_child_nodes(node):
            look(child, function)

    look(ast.parse(path.read_text()), "")
    return result


def test_every_wait_has_a_limit_or_is_ended_by_somebody():
    result = set().union(*map(waits_in, sources()))
    assert result - set(ENDED_BY) == set()
    assert set(ENDED_BY) - result == set(), "listed, but not there any more"


def test_a_wait_without_a_limit_is_found(tmp_path):
    (tmp_path / "a.py").write_text("def f(e):\n    e.wait(1)\n    e.get('x')\n    e.wait(timeout=None)\n")
    (tmp_path / "b.py").write_text("def f(e):\n    e.wait(1)\n    e.get('x')\n")
    assert waits_in(tmp_path / "a.py", tmp_path) == {"a.py:f"}
    assert not waits_in(tmp_path / "b.py", tmp_path)
