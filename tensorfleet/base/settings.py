"""Every environment variable that TensorFleet reads: its type, its default, and what it is for.

A setting is read when it is used, so a program can set it as long as that has not happened. `docs/settings.md` is made
from this file by `tools/make_settings.py`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from tensorfleet.base import errors

T = TypeVar("T")
_PREFIX = "TENSORFLEET_"
# Read by the tests of this repository alone.
_OF_TESTS = ("TENSORFLEET_CHAOS_", "TENSORFLEET_TEST_")
_DAY = 24 * 3600.0


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One environment variable."""

    name: str
    default: T
    #: makes a value of the variable's text; raises ValueError when it cannot
    parse: Callable[[str], T]
    #: what the value must be, for the error about another one
    kind: str
    #: what it is for, in one or two sentences
    purpose: str
    #: set by the launcher for the tasks that it starts, not by people
    internal: bool = False
    #: never shown
    secret: bool = False

    def __call__(self) -> T:
        """The value now."""
        return self.value_in(os.environ)

    def value_in(self, environment: Mapping[str, str]) -> T:
        """The value that an environment gives it."""
        text = environment.get(self.name)
        if text is None or not text.strip():
            return self.default
        try:
            return self.parse(text.strip())
        except ValueError:
            raise errors.invalid(
                f"{self.name} is {text!r}; it must be {self.kind}. Correct it, or unset it."
            ) from None


_ALL: list[Setting[Any]] = []


def _declare(setting: Setting[T]) -> Setting[T]:
    _ALL.append(setting)
    return setting


def _text(name: str, purpose: str, internal: bool = False, secret: bool = False) -> Setting[str]:
    return _declare(Setting(_PREFIX + name, "", str, "a text", purpose, internal, secret))


def _seconds(name: str, default: float, purpose: str, at_least: float = 0.0) -> Setting[float]:
    def parse(text: str) -> float:
        value = float(text)
        if not value >= 0:
            raise ValueError
        return max(value, at_least)

    return _declare(Setting(_PREFIX + name, default, parse, "a number of seconds", purpose))


def _choice(name: str, choices: tuple[str, ...], purpose: str) -> Setting[str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError
        return text

    kind = f"{', '.join(choices[:-1])} or {choices[-1]}"
    return _declare(Setting(_PREFIX + name, choices[0], parse, kind, purpose))


def _count(name: str, default: int, purpose: str) -> Setting[int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < 1:
            raise ValueError
        return value

    return _declare(Setting(_PREFIX + name, default, parse, "a whole number of at least 1", purpose))


def _switch(name: str, purpose: str, internal: bool = False) -> Setting[bool]:
    return _declare(Setting(_PREFIX + name, False, lambda text: text != "0", "0 or 1", purpose, internal))


# -- Waiting --------------------------------------------------------------------------------------------------------

WAIT_SECONDS = _seconds(
    "WAIT_SECONDS", 600.0, "How long a session waits for the tasks that its graph names to come up."
)
SILENT_SECONDS = _seconds(
    "SILENT_SECONDS",
    4.0,
    "How long a task may be silent before a step that waits for it fails. A machine that swaps may need more.",
    at_least=0.1,
)
FAILOVER_SECONDS = _seconds(
    "FAILOVER_SECONDS",
    30.0,
    "How long a step looks for another server of a durable parameter server that was lost, before it fails.",
)
STEP_SECONDS = _seconds(
    "STEP_SECONDS", _DAY, "How long a hook waits for the global step to move before it fails."
)
RECOVERY_SECONDS = _seconds(
    "RECOVERY_SECONDS",
    _DAY,
    "How long a monitored session tries to recover without one successful step before it fails.",
)
REPLICA_SECONDS = _seconds(
    "REPLICA_SECONDS",
    60.0,
    "How long a replica of a synchronous training waits for others that do not come any more.",
)
COLLECTIVE_SECONDS = _seconds(
    "COLLECTIVE_SECONDS", 600.0, "How long a worker waits for the others in a collective operation."
)
CHECKPOINT_SECONDS = _seconds(
    "CHECKPOINT_SECONDS", _DAY, "How long an evaluation waits for a new checkpoint before it fails."
)
REPORT_SECONDS = _seconds(
    "REPORT_SECONDS",
    30.0,
    "After how long a step that waits for a queue, an accumulator or another task says so in the log.",
)
ORPHAN_SECONDS = _seconds(
    "ORPHAN_SECONDS",
    3600.0,
    "How long a parameter server that was started by hand stays when its workers are dead or never came.",
)

# -- Connections ----------------------------------------------------------------------------------------------------

TOKEN = _text(
    "TOKEN", "The cluster's secret: every task and client of a cluster needs the same.", secret=True
)
TOKEN_FILE = _text("TOKEN_FILE", "A file with the cluster's secret, readable by its owner only.")
TLS = _text("TLS", "A folder as `tensorfleet certs` makes it: connections between machines are encrypted.")
TLS_MUTUAL = _switch("TLS_MUTUAL", "Set to 1, a server also asks its clients for a certificate.")
BIND = _text(
    "BIND",
    "The address to listen at, `host` or `host:port`, where it is not the one that others connect to (NAT, containers).",
)
WIRE = _text(
    "WIRE",
    "`bfloat16` or `float16`: 32-bit floats travel between tasks in half the bytes. `float32` is the default.",
)
MAX_FRAME = _count("MAX_FRAME", 64 << 30, "The largest message that a task accepts, in bytes.")
MAX_NODES = _count("MAX_NODES", 1_000_000, "The largest graph that is accepted, in nodes.")

# -- Looking into running tasks -------------------------------------------------------------------------------------

INSPECTION = _choice(
    "INSPECTION",
    ("full", "stats", "off"),
    "What a running task tells those who have the token: `stats` gives no values of tensors and attaches no debugger; "
    "`off` refuses every question.",
)

# -- Files ----------------------------------------------------------------------------------------------------------

CACHE = _text(
    "CACHE",
    "The folder of compiled programs, `~/.cache/tensorfleet/xla` by default. Set to nothing: no cache.",
)
STATE = _text("STATE", "The folder in which runs on this machine are registered, for `tensorfleet ps`.")

LOG_FORMAT = _choice(
    "LOG_FORMAT",
    ("text", "json"),
    "`json`: each line that `tf.logging` writes is a JSON object with time, task, level and text.",
)

CONSISTENCY = _text(
    "CONSISTENCY",
    "How far the workers of an unedited script may drift apart: `bsp`, `ssp:4` and so on, as `tensorfleet run "
    "--consistency` sets it. It replaces the script's own choice.",
)

# -- The page -------------------------------------------------------------------------------------------------------

DASHBOARD = _text(
    "DASHBOARD",
    "Where `tensorfleet run` serves its page: `off`, `PORT` or `HOST:PORT`. `--dashboard` goes first.",
)
DASHBOARD_KEY = _text(
    "DASHBOARD_KEY",
    "The key of the page, where a new one for each run is not wanted: for Prometheus. 16 characters or more.",
    secret=True,
)

JOIN_AT = _text(
    "JOIN_AT",
    "`HOST:PORT` where `tensorfleet run` takes in workers that you start by hand (`tensorfleet join`). The default is a free "
    "port of the loopback.",
)

METRICS = _text(
    "METRICS",
    "`HOST:PORT` or `PORT`: a launched task answers `/healthz` there, and `/metrics` with the key of the page.",
)

# -- What the launcher tells its tasks ------------------------------------------------------------------------------

LAUNCHER = _text("LAUNCHER", "The process that a task must not outlive.", internal=True)
STATUS = _text("STATUS", "The file in which a task reports its newest loss.", internal=True)
ALONE = _text("ALONE", "The file that exists when all workers but one have ended.", internal=True)
STAYS = _switch("STAYS", "A parameter server serves until the launcher ends it.", internal=True)
HOST = _text("HOST", "The name of a task's machine, as its script expects it.", internal=True)
PLACED = _text("PLACED", "Where the tasks of a run on one machine are.", internal=True)
INSPECT = _text(
    "INSPECT",
    "Under which name and at which address a task without a server answers questions about itself: main/0@host:port.",
    internal=True,
)
MOVED = _text(
    "MOVED",
    "Where tasks are whose address in the ClusterSpec is not the one to connect to: a JSON object.",
    internal=True,
)
PLACES = _text(
    "PLACES",
    "The places where this durable task may be, as a JSON list of addresses. Set by the launcher.",
)
NOTICE_SECONDS = _seconds(
    "NOTICE_SECONDS",
    0.0,
    "How long a launched task may go on after SIGTERM, to save and to end by itself. 0 ends it at once.",
)
SERVES = _text("SERVES", "Which parameter server a task is.", internal=True)
MADE = _text("MADE", "The file in which a task reports the cluster that its script makes.", internal=True)
ENDS_AT_JOIN = _switch("ENDS_AT_JOIN", "A script for TensorFlow ends in `server.join()`.", internal=True)


def declared() -> Iterator[Setting[Any]]:
    """All settings, in the order of this file."""
    yield from _ALL


@dataclass(frozen=True, slots=True)
class SettingInUse:
    """A setting as a process uses it, in texts to show. Of a secret it tells only that it is set."""

    name: str
    value: str
    default: str
    source: Literal["default", "environment", "program"]
    purpose: str
    #: why the value cannot be used, in a sentence
    problem: str | None = None


def in_use(environment: Mapping[str, str]) -> list[SettingInUse]:
    """All settings that people set, with what a process of this environment uses."""
    return [_in_use(setting, environment) for setting in _ALL if not setting.internal]


def _in_use(setting: Setting[Any], environment: Mapping[str, str]) -> SettingInUse:
    text, problem = environment.get(setting.name), None
    # Nothing but blanks means the default, except that a text may be set to nothing.
    is_set = text is not None and bool(text.strip() or setting.default == "")
    try:
        value = shown(setting, setting.value_in(environment))
    except errors.InvalidArgumentError as error:
        value, problem = text or "", error.message
    return SettingInUse(
        setting.name,
        value,
        shown(setting, setting.default),
        "environment" if is_set else "default",
        setting.purpose,
        problem,
    )


def shown(setting: Setting[T], value: T) -> str:
    """A value as it would be typed; of a secret only that it is set."""
    if setting.secret:
        return "set" if value else ""
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def unknown(environment: Mapping[str, str]) -> list[str]:
    """A sentence for each variable of an environment that looks like a setting and is none."""
    names = [setting.name for setting in _ALL]
    sentences = []
    for name in sorted(name for name in environment if name.startswith(_PREFIX)):
        if name not in names and not name.startswith(_OF_TESTS):
            near = difflib.get_close_matches(name, [s.name for s in _ALL if not s.internal], 1, cutoff=0.8)
            meant = f" Did you mean {near[0]}?" if near else " docs/settings.md lists the settings."
            sentences.append(f"The environment variable {name} is not a setting of TensorFleet.{meant}")
    return sentences
