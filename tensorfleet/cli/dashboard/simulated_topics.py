"""What the tasks of a simulated run answer to questions: stacks, a graph, a profile, a trace, variables, logs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tensorfleet.cli.dashboard.sources import Unavailable, shown_settings

Json = dict[str, Any]

_LAYERS = ("embeddings", "dense_1/kernel", "dense_1/bias", "dense_2/kernel", "dense_2/bias", "logits/kernel")
_SHAPES = ([2_000_000, 64], [640, 512], [512], [512, 256], [256], [256, 1])


def settings(text: str, **more: str) -> list[Json]:
    """All settings, two of which are not what they are by default, and `more` that are not."""
    own = {"TENSORFLEET_CACHE": "/scratch/xla" + text, "TENSORFLEET_WIRE": "bfloat16"}
    return shown_settings(own | more)


def task_settings(label: str, text: str) -> Json:
    """The settings of one task: servers wait longer than workers."""
    seconds = "12" if label.startswith("ps") else "3"
    return {"settings": settings(text, TENSORFLEET_TOKEN="simulated", TENSORFLEET_SILENT_SECONDS=seconds)}


def log_line(label: str, number: int, second: int, text: str) -> str:
    """A line of a task's log; some are warnings."""
    clock = f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    if (second + number) % 37 == 0:
        return f"W {clock} {label}] The step waited 1.2 s for ps/0.{text}"
    if (second + number) % 101 == 0:
        return f"E {clock} {label}] Lost a connection to ps/0; retrying in 0.5 s.{text}"
    return f"I {clock} {label}] step {second % 100_000 * 14} loss = {0.2 + second % 13 / 90:.4f}"


def variables(
    servers: Sequence[str], shares: npt.NDArray[np.float64], rate: float, now: float, text: str
) -> list[Json]:
    """The variables with the most traffic: the big one is whole on the first server."""
    rows = []
    for i, server in enumerate(servers):
        names = _LAYERS if i == 0 else [f"{name}/part_{i}" for name in _LAYERS[1:]]
        shapes = _SHAPES if i == 0 else _SHAPES[1:]
        for j, (name, shape) in enumerate(zip(names, shapes, strict=True)):
            rows.append(
                {
                    "task": server,
                    "name": name + (text if j == 1 else ""),
                    "dtype": "float32",
                    "shape": shape,
                    "bytes": 4 * int(np.prod(shape)),
                    "version": int(now % 100_000) * 14 + j,
                    "reads_per_second": 42.0 - j,
                    "updates_per_second": 38.5 - j,
                    "bytes_per_second": round(rate * float(shares[i]) * 0.55**j * 0.46),
                }
            )
    return sorted(rows, key=lambda row: -float(str(row["bytes_per_second"])))[:50]


def stacks(label: str, server: str, text: str) -> Json:
    """Threads, one of which waits for a server."""

    def frame(file: str, line: int, function: str, code: str) -> Json:
        is_users = file == "train.py"
        return {"file": file, "line": line, "function": function, "code": code, "is_users": is_users}

    main = [
        frame("train.py", 112, "<module>", "tf.app.run()"),
        frame("train.py", 84, "main", "train(sess, step)" + text),
        frame("train.py", 61, "train", "_, loss = sess.run([train_op, loss])"),
        frame("tensorfleet/session/session.py", 214, "run", "return self._runner.run(plan, feeds)"),
        frame("tensorfleet/cluster/master/step_driver.py", 163, "drive", "self._replies.get(deadline)"),
    ]
    pool = [
        frame("threading.py", 1002, "_bootstrap", "self._bootstrap_inner()"),
        frame("tensorfleet/runtime/scheduling/threads.py", 58, "_work", "task = self._waiting.get()"),
    ]
    is_server = label.startswith("ps")
    return {
        "threads": [
            {
                "name": "MainThread",
                "id": 1,
                "step": None if is_server else "session 3, step 12840",
                "waits_for": None if is_server else f"{server}: dense_1/kernel/read",
                "since_seconds": None if is_server else 0.42,
                "frames": main[:2] if is_server else main,
            },
            {
                "name": "step-0",
                "id": 2,
                "step": None,
                "waits_for": None,
                "since_seconds": None,
                "frames": pool,
            },
        ]
    }


def graph(servers: Sequence[str], workers: Sequence[str], text: str) -> Json:
    """A graph placed on all tasks."""
    nodes: list[Json] = []

    def add(name: str, kind: str, device: str, inputs: Sequence[str] = (), line: str = "train.py:31") -> None:
        nodes.append({"name": name, "op": kind, "device": device, "inputs": list(inputs), "line": line})

    for i, server in enumerate(servers):
        device = f"/job:ps/replica:0/task:{i}/device:CPU:0"
        for row in variables([server], np.ones(1), 1.0, 0.0, text):
            name = row["name"] if i == 0 else f"{row['name']}_{i}"
            add(name, "VariableV2", device, line="train.py:24")
            # As in real graphs, some operations have a device in its short form.
            add(f"{name}/read", "Identity", f"/job:ps/task:{i}/device:CPU:0", [name], line="train.py:24")
            add(
                f"train/{name}/ApplyAdam",
                "ApplyAdam",
                device,
                [name, f"gradients/{name}_grad"],
                "train.py:40",
            )
    for i in range(len(workers)):
        device = f"/job:worker/replica:0/task:{i}/device:CPU:0"
        add(f"input_{i}/IteratorGetNext", "IteratorGetNext", device, line="train.py:18")
        previous = f"input_{i}/IteratorGetNext"
        for layer in ("dense_1", "dense_2", "logits"):
            for kind in ("MatMul", "BiasAdd", "Relu"):
                name = f"tower_{i}/{layer}/{kind}"
                add(name, kind, device, [previous], "train.py:29")
                previous = name
    return {"sessions": [{"session": "master session 3", "graph": nodes}]}


def profile(seconds: float, text: str) -> Json:
    """A sampled profile as collapsed stacks."""
    step = "MainThread;main (train.py:84);train (train.py:61);run (session.py:214)"
    counts = {
        f"{step};drive (step_driver.py:163);recv": 19,
        f"{step};drive (step_driver.py:163);XLA: fusion": 46,
        f"{step};drive (step_driver.py:163);XLA: fusion;memcpy": 9,
        "MainThread;main (train.py:84);train (train.py:61);read_batch (input.py:20);decode (input.py:31)": 14,
        "MainThread;main (train.py:84);train (train.py:61);read_batch (input.py:20);parse (input.py:44)": 8,
        f"MainThread;main (train.py:84);summaries (train.py:70){text}": 4,
    }
    lines = [f"{stack} {round(count * seconds)}" for stack, count in counts.items()]
    collapsed = "\n".join(lines)
    return {"tool": "py-spy", "note": None, "samples": round(100 * seconds), "collapsed": collapsed}


def watch(label: str, options: Mapping[str, Any]) -> Json:
    """Begins a watch. Raises `Unavailable` with the nearest names for a tensor that does not exist."""
    known = ["dense_1/Relu:0", "dense_2/Relu:0", "logits/BiasAdd:0", "loss:0", "embeddings/read:0"]
    wanted = str(next(iter(options.get("tensors", [])), ""))
    if wanted not in known:
        near = difflib.get_close_matches(wanted, known, 3, 0.3)
        raise Unavailable(f"No tensor {wanted!r} in the graphs of this task. Near: {', '.join(near)}.")
    return {"id": wanted, "tensors": [{"name": wanted, "task": label}]}


def watch_take(number: str) -> Json:
    """What was seen of the watched tensor."""
    stats = {"dtype": "float32", "shape": [128, 512], "nans": 0, "infinities": 0, "zeros": 31_204, "min": 0.0}
    seen = [
        {
            "name": number,
            "step": 12_840 + i,
            "stats": {**stats, "max": 3.2 + i / 10, "mean": 0.41, "std": 0.6},
        }
        for i in range(3)
    ]
    return {"seen": seen, "done": True, "others": {}, "reasons": {}, "dropped": 0}


def trace(servers: Sequence[str], workers: Sequence[str], steps: int, slow: str | None) -> Json:
    """A Chrome trace: every worker pulls, computes and pushes; servers answer."""
    events: list[Json] = []
    labels = [*servers, *workers]
    for pid, label in enumerate(labels):
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": label}})

    def span(label: str, name: str, start: float, length: float, **args: object) -> None:
        events.append(
            {
                "ph": "X",
                "cat": "step",
                "name": name,
                "pid": labels.index(label),
                "tid": 0,
                "ts": round(start, 1),
                "dur": round(length, 1),
                "args": args,
            }
        )

    def transfer(sender: str, sent: float, receiver: str, received: float) -> None:
        number = len(events)
        for phase, label, time in (("s", sender, sent), ("f", receiver, received)):
            event = {"ph": phase, "cat": "transfer", "name": "transfer", "id": number, "tid": 0}
            events.append(event | {"pid": labels.index(label), "ts": round(time, 1)})

    for w, worker in enumerate(workers):
        scale = 2.9 if worker == slow else 1.0
        start = w * 2100.0
        for step in range(steps):
            server = servers[(w + step) % len(servers)] if servers else worker
            for name, length in (("input", 5e3), ("pull", 13e3), ("compute", 33e3 * scale), ("push", 11e3)):
                span(worker, name, start, length, step=step)
                if name in ("pull", "push"):
                    span(server, f"{name} {worker}", start + 2e3, length - 4e3, bytes=2_400_000)
                    transfer(worker, start + 1e3, server, start + 2e3)
                start += length
            start += 1500 + 400 * ((w + step) % 4)
    return {"traceEvents": events, "displayTimeUnit": "ms"}
