"""What the page of a simulated run says in words."""

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
                f"{label} died: killed by SIGKILL.",
                "Look at its last words in the table.",
                now - run.died(label),
            )
    if run.ended is not None:
        return results
    if run.hot and run.state(run.hot) == "running":
        add(
            "hot_server",
            "serious",
            run.hot,
            f"{run.hot} carries {100 * run.share_of_hot():.0f} % of the bytes because `embeddings` is whole there.",
            "Divide it: `tf.get_variable(..., partitioner=tf.fixed_size_partitioner(4))`.",
            640,
        )
    if run.slow and run.state(run.slow) == "running":
        add(
            "straggler",
            "warning",
            run.slow,
            f"{run.slow} takes 2.9 times as long for a step as the median worker.",
            "It computes 72 % of the time: look at its profile, and at what else runs on its machine.",
            410,
        )
    if run.hungry and run.state(run.hungry) == "running":
        add(
            "waits_for_input",
            "warning",
            run.hungry,
            f"{run.hungry} waits for input 62 % of its time.",
            "Add `dataset.prefetch(2)`, or read with more `num_parallel_calls`.",
            380,
        )
    return results
