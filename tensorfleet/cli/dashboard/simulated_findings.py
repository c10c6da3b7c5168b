"""The findings of a simulated run, in the words of finding_rules.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorfleet.cli.dashboard.simulated import SimulatedRun


def findings(run: SimulatedRun, now: float, text: str) -> list[dict[str, Any]]:
    """The findings of `/api/now`, the most serious first."""
    results: list[dict[str, Any]] = []

    def add(kind: str, severity: str, task: str | None, sentence: str, advice: str, seconds: float) -> None:
        results.append(
            {
                "kind": kind,
                "severity": severity,
                "task": task,
                "text": sentence + text,
                "advice": advice + text,
                "since": max(now - seconds, run.started),
            }
        )

    for label in run.labels:
        if run.state(label) == "dead":
            add(
                "dead",
                "serious",
                label,
                f"{label} was killed.",
                "Read the end of its log. tensorfleet run --restart N starts failed tasks again.",
                now - run.died(label),
            )
    if run.ended is not None:
        return results
    if run.hot and run.state(run.hot) == "running":
        share, servers = run.share_of_hot(), len(run.servers)
        add(
            "hot_server",
            "serious" if share * servers >= 1.8 else "warning",
            run.hot,
            f"{run.hot} carries {100 * share:.0f} % of the bytes of the {servers} parameter servers "
            f"({share * servers:.2g} times the mean), because `embeddings` (410 MB) is whole there.",
            f"Split it over the servers: `tf.get_variable(..., partitioner=tf.fixed_size_partitioner({servers}))`.",
            640,
        )
    if run.slow and run.state(run.slow) == "running":
        add(
            "straggler",
            "warning",
            run.slow,
            f"{run.slow} takes 2.9 times as long for a step as the other workers, mostly in computing.",
            "Look for other programs on its machine, and for a larger share of the data.",
            410,
        )
    if run.hungry and run.state(run.hungry) == "running":
        add(
            "waits_for_input",
            "serious",
            run.hungry,
            f"{run.hungry} waits for input 62 % of its time.",
            "Prepare batches while a step runs: `dataset.prefetch(1)`, and `map(..., num_parallel_calls=N)`.",
            380,
        )
    return results
