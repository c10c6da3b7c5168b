"""What a script does with its flags: those whose names say nothing are known by where their values go."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tensorfleet.cli.scripts.environment import variables_of
from tensorfleet.cli.scripts.flags import (
    Flag,
    defined_by,
    flags_of,
    jobs_named_in,
    positions_of,
    role_of,
    roles,
)
from tensorfleet.cli.scripts.syntax import modules, name_of, nodes_of, text_of

_STEPS = 6  # from name to name, at most
_JOBS = {"ps", "worker"}
# What a flag for a task's number among all tasks is called, where it has none for its job.
_RANK = r"((global|node|machine|process|proc)_?)?(rank|index|id|number)"
_CLUSTER = r"cluster(_?(spec|def|config|conf|json|file|dict)){0,2}"
_STARTING = {"system", "popen", "spawnl", "spawnv", "spawnvp", "execv", "execvp"}
_COMMANDS = ("python", "--", "/")  # what a command line, or one more argument of it, begins with
# In which form a cluster is wanted in one argument, by what is done with it.
_READERS = {"loads": "json", "safe_load": "json", "literal_eval": "json", "eval": "json", "open": "file"}


def told_by_flags(
    script: Path, names: dict[str, str] | None = None, jobs: Iterable[str] = ()
) -> dict[str, Flag]:
    """Which flag tells a task what: as `roles` knows them by their names, and where those say nothing by their use."""
    flags = flags_of(script)
    named = roles(flags, names, jobs)
    free = {n: f for n, f in flags.items() if not f.is_switch and f not in named.values() and not role_of(n)}
    used = {role: flags[name] for role, name in _by_use(script, free).items() if role not in named}
    by_role = {
        **named,
        **{role: f for role, f in used.items() if not (f.is_number and role.endswith("_hosts"))},
    }
    for job in {} if names else addresses_by_default(script):
        by_role.pop(f"{job}_hosts", None)
    return (
        _with_rank(script, by_role, free)
        if not {"job_name", "is_ps", "is_worker"} & by_role.keys()
        else by_role
    )


def addresses_by_default(script: Path) -> dict[str, list[str]]:
    """Where the tasks of each job are if nothing tells a script so, where it connects to one of these by its address.

    Such a script does not find its tasks at any others, whatever its flags say.
    """
    flags = roles(flags_of(script))
    texts = {job: flags[f"{job}_hosts"].default for job in ("ps", "worker") if f"{job}_hosts" in flags}
    addresses = {job: [a.strip() for a in text.split(",")] for job, text in texts.items() if text}
    written = {text_of(node) for node in nodes_of(script)}
    reached = {f"grpc://{address}" for hosts in addresses.values() for address in hosts}
    return addresses if reached & written else {}


def _with_rank(script: Path, told: dict[str, Flag], free: dict[str, Flag]) -> dict[str, Flag]:
    """What flags tell a task that is told no job, where the script finds that by the task's number: among all tasks."""
    known = {*positions_of(script).values(), *variables_of(script).values()}
    if known or not set(jobs_named_in(script)) >= _JOBS or not _looks_up_job(script):
        return told
    fitting = [f for n, f in free.items() if f.is_number and re.fullmatch(_RANK, n.replace("-", "_").lower())]
    flag = told.get("task_index") or next(iter(fitting), None)
    rest = {role: f for role, f in told.items() if role != "task_index"}
    return {**rest, "rank": flag} if flag else told


def _looks_up_job(script: Path) -> bool:
    """Whether the job of a script's servers is nowhere written out where they are made."""
    jobs = [node for tree in modules(script) for role, node in _uses(tree) if role == "job_name"]
    return bool(jobs) and not any(map(text_of, jobs))


def has_chief_of_its_own(script: Path) -> bool:
    """Whether the cluster in a script has a chief at an address that is written out: no worker is that."""
    dicts = [n for n in nodes_of(script) if isinstance(n, ast.Dict)]
    pairs = [pair for node in dicts for pair in zip(map(text_of, node.keys), node.values, strict=True)]
    chiefs = [hosts for job, hosts in pairs if job == "chief" and isinstance(hosts, ast.List)]
    return any(hosts.elts and all(map(text_of, hosts.elts)) for hosts in chiefs)


def starts_copies(script: Path) -> bool:
    """Whether a script starts its tasks itself, as processes: a command line in it has the flags of a task."""
    names = [flag.name for role, flag in told_by_flags(script).items() if role in ("job_name", "task_index")]
    for tree in modules(script, 0):
        nodes = list(ast.walk(tree))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        # Docstrings and help texts may show a command line without running it.
        shown = {id(node.value) for node in nodes if isinstance(node, ast.Expr | ast.keyword)}
        shown |= {id(node) for call in calls if next(defined_by(call), None) for node in call.args}
        lines = [text_of(node).lstrip() for node in nodes if id(node) not in shown]
        words = {w.partition("=")[0] for line in lines if line.startswith(_COMMANDS) for w in line.split()}
        if any(map(_starts_task, calls)):
            return True
        if any(map(_starts_process, calls)):
            named = any(f"--{name}".startswith(word) for name in names for word in words if len(word) > 3)
            return named or any(map(_is_own_command, nodes))
    return False


def _is_own_command(node: ast.AST) -> bool:
    """`["python", __file__]`, or with `sys.executable`: the beginning of a command that runs the script again."""
    if not isinstance(node, ast.List) or len(node.elts) < 2:
        return False
    first, second = node.elts[:2]
    python = text_of(first).startswith("python") or getattr(first, "attr", "") == "executable"
    return python and getattr(second, "id", "") == "__file__"


def _starts_task(call: ast.Call) -> bool:
    """`Process(target=run, args=("ps", 0))`: a process of the script that is a task whose job is written out."""
    given = next((k.value for k in call.keywords if k.arg == "args"), None)
    return name_of(call) == "Process" and bool(_JOBS & set(map(text_of, getattr(given, "elts", ()))))


def _starts_process(call: ast.Call) -> bool:
    owner = getattr(call.func, "value", None)
    by = getattr(owner, "id", "")
    return name_of(call) == "Popen" or (by == "subprocess") or (by == "os" and name_of(call) in _STARTING)


def _by_use(script: Path, flags: dict[str, Flag]) -> dict[str, str]:
    """The flags that reach a `tf.train.Server` or its `ClusterSpec`, or are compared with a job's name, by roles.

    A role that several flags may have is left out.
    """
    by_role: dict[str, set[str]] = {}
    trees = list(modules(script))
    nodes = [node for tree in trees for node in ast.walk(tree)]
    if not any(getattr(node, "attr", "") == "Server" or text_of(node) == "TF_CONFIG" for node in nodes):
        return {}
    for tree in trees:
        module = _Module(tree, flags)
        for role, node in _uses(tree):
            if flag := module.flag_of(node):
                by_role.setdefault(role, set()).add(flag)
        for call in filter(_looks_up, ast.walk(tree)):
            if isinstance(call, ast.Call) and (flag := module.flag_of(call.args[0])):
                by_role.setdefault("machine", set()).add(flag)
    for name in flags:
        if re.fullmatch(_CLUSTER, name.replace("-", "_").lower()) and (form := _cluster_form(script, name)):
            by_role.setdefault(f"cluster_{form}", set()).add(name)
    # Two flags for one role, or one flag for two: to guess would start tasks that are told nonsense.
    single = {role: names.pop() for role, names in by_role.items() if len(names) == 1}
    return {role: name for role, name in single.items() if list(single.values()).count(name) == 1}


def _cluster_form(script: Path, flag: str) -> str | None:
    """How the whole cluster is wanted in a flag: as "json", in a "file" with it, or as "bars" (`ps|a:1;b:2,worker|c:3`)."""
    for tree in modules(script):
        module = _Module(tree, {flag: Flag(flag)})
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        for call in calls:
            form = _READERS.get(name_of(call))
            if form and call.args and module.flag_of(call.args[0]):
                return form
        if {"|", ";"} <= {text_of(a) for call in calls if name_of(call) == "split" for a in call.args}:
            return "bars"
    return None


def _uses(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node) == "Server" and (node.args or node.keywords):
            given = dict(zip(("cluster", "job_name", "task_index"), node.args, strict=False))
            given |= {keyword.arg or "": keyword.value for keyword in node.keywords}
            yield from ((role, given[role]) for role in ("job_name", "task_index") if role in given)
        elif isinstance(node, ast.Dict):
            for key, value in zip(map(text_of, node.keys), node.values, strict=True):
                if key in _JOBS:
                    yield f"{key}_hosts", value
                    yield from ((f"{key}_count", count) for count in _counted(value))
        elif isinstance(node, ast.Compare) and [text_of(n) for n in node.comparators] == ["ps"]:
            yield "job_name", node.left


def _looks_up(node: ast.AST) -> bool:
    """`hosts.index(args.ip)`: a task finds its number by its machine."""
    return isinstance(node, ast.Call) and name_of(node) == "index" and len(node.args) == 1


def _counted(addresses: ast.expr) -> list[ast.expr]:
    """What says how many addresses there are in `["localhost:%d" % (2222 + i) for i in range(args.n)]`."""
    if not isinstance(addresses, ast.ListComp) or len(addresses.generators) != 1:
        return []
    over = addresses.generators[0].iter
    return over.args[-1:] if isinstance(over, ast.Call) and name_of(over) in ("range", "xrange") else []


class _Module:
    """Where the values of a module's names come from."""

    def __init__(self, tree: ast.Module, flags: dict[str, Flag]) -> None:
        self._flags = {(flag.kept_as or name).replace("-", "_"): name for name, flag in flags.items()}
        self._given: dict[str, list[ast.expr]] = {}
        functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._assigned(target, node.value)
            elif isinstance(node, ast.Call) and name_of(node) in functions:
                self._called(functions[name_of(node)], node)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its in zip(target.elts, value.elts, strict=False):
                self._assigned(one, its)
        elif name := getattr(target, "id", "") or getattr(target, "attr", ""):
            self._given.setdefault(name, []).append(value)

    def _called(self, function: ast.FunctionDef, call: ast.Call) -> None:
        names = [a.arg for a in function.args.args if a.arg != "self"]
        for name, value in [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]:
            self._given.setdefault(name or "", []).append(value)

    def flag_of(self, node: ast.expr, steps: int = _STEPS) -> str | None:
        """The flag whose value an expression is, or is made of: `int(args.n)`, `args.n.split(",")`, a name for that."""
        if steps == 0:
            return None
        if _looks_up(node):
            return None  # where something stands in a list is another thing than that
        if isinstance(node, ast.Call):
            inner = node.func.value if isinstance(node.func, ast.Attribute) else None
            return self._first([*node.args[:1], *([inner] if inner else [])], steps)
        if isinstance(node, ast.Subscript):
            return self._flags.get(text_of(node.slice)) or None
        name = getattr(node, "attr", "") or getattr(node, "id", "")
        if isinstance(node, ast.Attribute) and name in self._flags:
            return self._flags[name]
        return self._first(self._given.get(name, []), steps)

    def _first(self, nodes: list[ast.expr], steps: int) -> str | None:
        return next((flag for node in nodes if (flag := self.flag_of(node, steps - 1))), None)
