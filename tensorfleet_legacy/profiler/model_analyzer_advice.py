"""`tf.profiler.advise`: what a profile of a run tells about where time goes."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import find

ALL_ADVICE: dict[str, dict] = {
    "ExpensiveOperationChecker": {},
    "AcceleratorUtilizationChecker": {},
    "JobChecker": {},
    "OperationChecker": {},
}
_MAX_OP_TYPES = 3  # in one piece of advice
_MIN_BUSY_SHARE = 0.5  # the share of a step in which an accelerator should be busy


def advice_of(graph: Any, runs: list[Any], options: Any) -> Any:
    """The advice of each check about some runs."""
    from tensorfleet.base.protos import AdviceProto

    result: Any = AdviceProto()
    checks = {
        "ExpensiveOperationChecker": _expensive,
        "AcceleratorUtilizationChecker": _idle,
        "JobChecker": lambda graph, runs: [],
        "OperationChecker": _formats,
    }
    for name in options or ALL_ADVICE:
        if name in checks:
            result.checkers[name].reports.extend(checks[name](graph, runs))
    return result


def _nodes(runs: list[Any]) -> Any:
    for run in runs:
        for device in run.step_stats.dev_stats:
            for node in device.node_stats:
                yield device.device, node


def _expensive(graph: Any, runs: list[Any]) -> list[str]:
    types = {op.name: op.type for op in graph.get_operations()}
    spent: dict[str, list[int]] = {}
    for device, node in _nodes(runs):
        kind = types.get(node.node_name)
        if kind is not None:
            spent.setdefault(kind, [0, 0])[int("GPU" in device.upper())] += node.all_end_rel_micros
    total = sum(map(sum, spent.values()))
    worst = sorted(spent.items(), key=lambda item: -sum(item[1]))[:_MAX_OP_TYPES]
    return [
        f"top {i} operation type: {kind}, cpu: {cpu}us, accelerator: {gpu}us, total: {cpu + gpu}us "
        f"({100 * (cpu + gpu) / total:.2f}%)"
        for i, (kind, (cpu, gpu)) in enumerate(worst, 1)
        if total
    ]


def _idle(graph: Any, runs: list[Any]) -> list[str]:
    spans: dict[str, list[int]] = {}
    busy: dict[str, int] = {}
    for device, node in _nodes(runs):
        if "GPU" in device.upper():
            end = node.all_start_micros + node.all_end_rel_micros
            spans.setdefault(device, []).extend([node.all_start_micros, end])
            busy[device] = busy.get(device, 0) + node.all_end_rel_micros
    reports = []
    for device, times in spans.items():
        share = busy[device] / max(1, max(times) - min(times))
        if share < _MIN_BUSY_SHARE:
            reports.append(f"device: {device} utilization: {share:.2f}")
    return reports


def _formats(graph: Any, runs: list[Any]) -> list[str]:
    for op in graph.get_operations():
        layout = op._attrs.get("data_format")
        if "GPU" in op.device.upper() and layout in (b"NHWC", "NHWC"):
            return ["Found operation using NHWC data_format on GPU. Maybe NCHW is faster."]
    return []


def advise(graph: Any = None, run_meta: Any = None, options: Any = 0) -> Any:
    """The advice of the checks that `options` names about a run of a graph; of all checks if it names none."""
    graph = graph or find("get_default_graph")()
    result = advice_of(graph, [] if run_meta is None else [run_meta], options)
    for name, checker in result.checkers.items():
        print("\n".join([f"{name}:", *checker.reports]))
    return result
