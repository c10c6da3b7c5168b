"""Write docs/statistics.md from tensorfleet/cluster/inspection/stats_schema.py.

python tools/make_statistics.py            # writes
python tools/make_statistics.py --check    # exits with 1 when the page would change
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from tensorfleet.cluster.inspection import stats_schema

PAGE = Path(__file__).resolve().parent.parent / "docs" / "statistics.md"
_HEAD = """# Statistics

Each task counts what it does. `tf.fleet.stats` asks one task, or all tasks of a cluster at the same time, and returns
plain data.

```python
import tensorfleet as tf

v = tf.Variable([1.0, 2.0], name="v")
with tf.Session() as sess:
    sess.run(v.initializer)
    sess.run(v)
    load = tf.fleet.stats(sess, "main/0")
print(load["steps"]["count"], load["variables"][0]["reads"])
```

- On a cluster, pass a session or a target: `tf.fleet.stats("grpc://host:2222")` gives a dict of all tasks by name.
  A task that does not answer has `{"error": sentence}` there.
- `tf.fleet.stats(target, "ps/0")` gives one task, and raises if that does not answer.
- Who asks needs the token of the cluster ([security](security.md)).
- A script that runs alone under `tensorfleet run`, and an evaluator, can be asked too: the launcher gives each an
  address on loopback. Tasks without a server on other machines cannot.

**Counts and seconds are sums since the task began.** Ask twice and take the difference for a rate. A task that was
started again has another `incarnation` and begins at zero.

**What it costs.** A step adds its time to a sum. Steps of 5 ms and more are measured in parts, and of shorter ones one
after every 100 ms of steps. Sizes, versions and sums over variables are looked up when somebody asks. It takes 0.8 us of
the shortest step of a cluster; [the benchmarks](../benchmarks/README.md#counting) have the table.

**The load of a server.** Tasks on one machine read small variables from the server's shared memory, without a message.
The reader counts these reads, in `shared_reads` and `shared_bytes` of its `peers`. So the load of `ps/0` is the sum of
`sent_bytes` and `received_bytes` over the entries for `ps/0` in the `peers` of all other tasks. `server` has the messages
alone, and so have `reads` and `read_bytes` of a variable: `shared_variables` of the others' `peers` has the rest.

**Bytes** are those of frames: headers, fields and tensors, also where a tensor goes through shared memory. TLS and TCP
add their own.
"""
_TAIL = """
This page is made by `tools/make_statistics.py`.
"""


def page() -> str:
    """The text of docs/statistics.md."""
    return _HEAD + "".join(_section(part) for part in stats_schema.ALL) + _TAIL


def _section(part: type[Any]) -> str:
    about = re.sub(r"\n +", "\n", (part.__doc__ or "").strip())
    rows = "".join(
        f"| `{field.name}` | {_kind(field.kind)} | {field.meaning} |\n"
        for field in stats_schema.fields_of(part)
    )
    return f"\n## {part.__name__}\n\n{about}\n\n| field | type | meaning |\n|---|---|---|\n{rows}"


def _kind(text: str) -> str:
    """A type as the page shows it: that of another part is a link to it."""
    for part in stats_schema.ALL:
        text = re.sub(rf"\b{part.__name__}\b", f"[{part.__name__}](#{part.__name__.lower()})", text)
    return text.replace(" | None", " or null")


if __name__ == "__main__":
    if "--check" not in sys.argv:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.exit("docs/statistics.md is out of date. Run python tools/make_statistics.py.")
