"""Which flags a script defines, read from its source: so that tasks get those of the cluster it has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard

from tensorfleet.cli.scripts.syntax import imported_names, modules, name_of, text_of

# What a task must be told, and what scripts call the flags for it; dashes count as underscores.
_WHERE = r"(hosts?|address(es)?|addrs?|list|ips?|ip_ports?|servers?|nodes?|machines?|spec|urls?)"
_JOBS = {"ps": r"(ps|param(eter)?_?servers?)", "worker": r"(workers?)", "chief": r"(chief|master)"}
_HOW_MANY = r"(num|n|number|count|nr)"
SPELLINGS = {
    "ps_hosts": rf"{_JOBS['ps']}(_?{_WHERE})?|\w*ps_hosts?",
    "worker_hosts": rf"{_JOBS['worker']}(_?{_WHERE})?|\w*work(er)?s?_hosts?",
    "chief_hosts": rf"{_JOBS['chief']}_?{_WHERE}",
    "job_name": r"(job|task|node)_?(name|type|mode|role)|job|role",
    "task_index": r"(task|worker|replica|node)_?(index|idx|id)|task_?(num|number)|task",
    "ps_count": rf"{_HOW_MANY}_(of_)?{_JOBS['ps']}(_{_WHERE})?|{_JOBS['ps']}_({_WHERE}_)?{_HOW_MANY}",
    "worker_count": rf"{_HOW_MANY}_(of_)?{_JOBS['worker']}(_{_WHERE})?|{_JOBS['worker']}_({_WHERE}_)?{_HOW_MANY}"
    r"|(workers|slaves)_per_(url|host|machine)",
    "hosts": r"(cluster_?)?(hosts|host_?list|addresses)",
}
# What a task is told by a flag that is there or not.
SWITCHES = {f"is_{job}": rf"(is_?)?{name}" for job, name in _JOBS.items()}
# Where several flags fit, these come first, in this order.
_PREFERRED = [
    "ps_hosts",
    "worker_hosts",
    "job_name",
    "task_type",
    "job",
    "task_index",
    "task_id",
    "task",
    "worker_index",
    "worker_id",
]
# A number under these names says how many there are, not where.
_COUNTS = {"ps_hosts": "ps_count", "worker_hosts": "worker_count"}
# What arguments without dashes may be called as well, beside one for the job.
_SHORT = {"ps_hosts": r"servers?", "task_index": r"index|idx|id|number"}
_FILE = re.compile(r".+\.(txt|json|ya?ml|conf|cfg|ini|csv|lst)")  # where addresses may be listed


@dataclass(frozen=True)
class Flag:
    """A flag that a script defines; `many` when its values follow as separate arguments.

    A switch has no value; `negates` when `--no` before its name says the contrary. One that is `listed` takes a list
    as Python writes it, as its default is. `kept_as` is the name that the script reads it by, where that is another,
    `default` the text that it has if it is not given. `added` is what the script adds to its value: a flag for the last
    number, where how many there are is meant.
    """

    name: str
    is_number: bool = False
    many: bool = False
    is_switch: bool = False
    negates: bool = False
    listed: bool = False
    kept_as: str = ""
    added: int = 0
    default: str = ""


def flags_of(script: Path) -> dict[str, Flag]:
    """The flags that a script, or a module beside it that it imports, defines; none when it cannot be parsed."""
    by_name: dict[str, Flag] = {}
    added: dict[str, int] = {}
    for tree in modules(script):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                by_name.update({flag.name: flag for flag in defined_by(node)})
            elif isinstance(node, ast.For):
                by_name.update({flag.name: flag for flag in _defined_in_turn(node)})
            elif isinstance(node, ast.AugAssign) and _is_of_flags(node.target):
                added[node.target.attr] = _number(node.value) or 0 if isinstance(node.op, ast.Add) else 0
    return {name: replace(flag, added=added.get(name.replace("-", "_"), 0)) for name, flag in by_name.items()}


def _is_of_flags(node: ast.expr) -> TypeGuard[ast.Attribute]:
    """Whether an expression is `FLAGS.x` or `args.x`, not an attribute of an object that counts something."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and bool(re.search(r"flag|arg|opt|param|config", node.value.id, re.IGNORECASE))
    )


def roles(
    flags: dict[str, Flag], names: dict[str, str] | None = None, jobs: Iterable[str] = ()
) -> dict[str, Flag]:
    """Which flag tells a task what: one for each role that the script has a flag for.

    `names` gives the flag of a role where the script's own spelling is not among the customary ones, `jobs` the
    cluster's: where the tasks of a job with a name of its own are, and how many, are roles too. A list of hosts
    without more is of one job, and is none where there are lists for several.
    """
    by_role: dict[str, Flag] = {}
    for role, name in (names or {}).items():
        if role not in SPELLINGS:
            raise ValueError(f"--flag-names has an unknown role {role!r}. Use one of {', '.join(SPELLINGS)}.")
        by_role[role] = flags.get(name, Flag(name))
    for flag in sorted(flags.values(), key=lambda flag: _rank(flag.name)):
        known_as = _switched_by if flag.is_switch else role_of
        fits = known_as(flag.name) or known_as(flag.kept_as)
        in_file = (fits or "").endswith("hosts") and _FILE.fullmatch(flag.default)
        if fits is not None and flag not in by_role.values() and not in_file:
            by_role.setdefault(_COUNTS[fits] if flag.is_number and fits in _COUNTS else fits, flag)
    others = _roles_of_others([job for job in jobs if f"{job}_hosts" not in SPELLINGS])
    for role, pattern in others.items():
        fitting = [flag for name, flag in flags.items() if re.fullmatch(pattern, _plain(name))]
        if fitting and fitting[0].is_number == role.endswith("_count"):
            by_role[role] = fitting[0]
    # Plain `hosts` are the tasks of the only job. With lists for several jobs they mean something else.
    if any(role.endswith("_hosts") for role in by_role) or "task_index" not in by_role:
        by_role.pop("hosts", None)
    return {role: by_role[role] for role in (*SPELLINGS, *others, *SWITCHES) if role in by_role}


def has_one_job(script: Path) -> bool:
    """Whether all tasks of a script are of one job: it is told their addresses, and no job."""
    by_role = roles(flags_of(script))
    return "hosts" in by_role and not {"job_name", "is_ps"} & by_role.keys()


def _roles_of_others(jobs: list[str]) -> dict[str, str]:
    """Where the tasks of jobs with names of their own are, and how many, with what flags for it are called."""
    names = {job: rf"{re.escape(_plain(job))}s?" for job in jobs}
    return {f"{job}_hosts": rf"{name}_?{_WHERE}" for job, name in names.items()} | {
        f"{job}_count": rf"{_HOW_MANY}_(of_)?{name}|{name}_{_HOW_MANY}" for job, name in names.items()
    }


def role_of(name: str) -> str | None:
    """What a flag or a variable of this name tells a task, if it is a customary name."""
    plain = _plain(name)
    order = (*_COUNTS.values(), *SPELLINGS)  # num_ps_hosts is a number, whatever else it looks like
    return next((role for role in order if re.fullmatch(SPELLINGS[role], plain)), None)


def _switched_by(name: str) -> str | None:
    plain = _plain(name)
    return next((role for role, pattern in SWITCHES.items() if re.fullmatch(pattern, plain)), None)


def _plain(name: str) -> str:
    return name.replace("-", "_").lower()


def _rank(name: str) -> int:
    plain = _plain(name)
    return _PREFERRED.index(plain) if plain in _PREFERRED else len(_PREFERRED)


def positions_of(script: Path) -> dict[int, str]:
    """What a script expects to be told by arguments without a name, by their places, counted from 1.

    That is `job = sys.argv[1]` and the like, or argparse's arguments without dashes.
    """
    for tree in modules(script, 0):
        return _by_argv(tree) or _by_argparse(tree)
    return {}


def reads_places(script: Path) -> bool:
    """Whether a script looks at arguments of the command line by their places, as in `sys.argv[1]`."""
    nodes = [node for tree in modules(script, 0) for node in ast.walk(tree)]
    aliases = _names_for_argv(nodes)
    return any(_place_in_argv(node, aliases) for node in nodes)


def _names_for_argv(nodes: list[ast.AST]) -> set[str]:
    return {
        node.targets[0].id
        for node in nodes
        if isinstance(node, ast.Assign) and _is_argv(node.value) and isinstance(node.targets[0], ast.Name)
    }


def _by_argv(tree: ast.Module) -> dict[int, str]:
    nodes = list(ast.walk(tree))
    aliases = _names_for_argv(nodes)
    slices = (n.value for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice))
    if not any(map(_is_argv, slices)):
        aliases.add("argv")  # what a function is handed by main(sys.argv) or tf.app.run()
    result: dict[int, str] = {}
    served = _names_at_servers(nodes)
    for name, value in _given_names(nodes):
        role = role_of(name) or served.get(name)
        places = [place for inner in ast.walk(value) if (place := _place_in_argv(inner, aliases))]
        if role and len(places) == 1 and not isinstance(value, ast.Compare):
            result.setdefault(places[0], role)
    return result


def _names_at_servers(nodes: list[ast.AST]) -> dict[str, str]:
    """The names that a `tf.train.Server` is given for the job and the index, whatever they are called."""
    result: dict[str, str] = {}
    for call in nodes:
        if isinstance(call, ast.Call) and name_of(call) == "Server":
            given = dict(zip(("cluster", "job_name", "task_index"), call.args, strict=False))
            given |= {keyword.arg or "": keyword.value for keyword in call.keywords}
            for role in ("job_name", "task_index"):
                value = given.get(role)
                value = value.args[0] if isinstance(value, ast.Call) and value.args else value  # int(index)
                if isinstance(value, ast.Name):
                    result[value.id] = role
    return result


def _given_names(nodes: list[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """What is assigned, or given by a keyword, under which name; also name by name: `a, b = x, y`, `a, b = sys.argv`."""
    for node in nodes:
        if isinstance(node, ast.keyword):
            yield node.arg or "", node.value
        elif isinstance(node, ast.Assign):
            targets, values = [node.targets[0]], [node.value]
            if isinstance(targets[0], ast.Tuple) and (
                isinstance(values[0], ast.Tuple) or _is_argv(values[0])
            ):
                targets = targets[0].elts
                whole = values[0]
                every: list[ast.expr] = [
                    ast.Subscript(whole, ast.Constant(i), ast.Load()) for i in range(len(targets))
                ]
                values = whole.elts if isinstance(whole, ast.Tuple) else every
            for name, value in zip(targets, values, strict=False):
                yield name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", ""), value


def _is_argv(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "argv"


def _place_in_argv(node: ast.AST, aliases: set[str]) -> int:
    """The number in `sys.argv[number]`, or 0."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return 0
    whole = node.value
    if not (_is_argv(whole) or (isinstance(whole, ast.Name) and whole.id in aliases)):
        return 0
    return node.slice.value if isinstance(node.slice.value, int) and node.slice.value > 0 else 0


def _by_argparse(tree: ast.Module) -> dict[int, str]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "add_argument"]
    names = [text for c in sorted(calls, key=lambda c: c.lineno) if c.args and (text := text_of(c.args[0]))]
    names = [name for name in names if not name.startswith("-")]
    result = {place: role for place, name in enumerate(names, 1) if (role := role_of(name))}
    if "job_name" in result.values():
        short = {
            name: role for role, pattern in _SHORT.items() for name in names if re.fullmatch(pattern, name)
        }
        result.update({place: short[name] for place, name in enumerate(names, 1) if name in short})
    return result


def reads_tf_config(script: Path) -> bool:
    """Whether a script learns from TF_CONFIG which task it is, and starts a server for it. `fleet.join()` does both."""
    for tree in modules(script):
        nodes = list(ast.walk(tree))
        if any(_joins(node) for node in nodes):
            return True
        written = {
            id(inner)
            for node in nodes
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
            for inner in ast.walk(node)
        }
        asks = any(text_of(node) == "TF_CONFIG" and id(node) not in written for node in nodes)
        asks |= any(getattr(node, "attr", "") == "TFConfigClusterResolver" for node in nodes)
        if asks and any(getattr(node, "attr", "") in ("Server", "ClusterSpec") for node in nodes):
            return True
    return False


def _joins(node: ast.AST) -> bool:
    """Whether a node is a call of `fleet.join` or `tf.fleet.join`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "join":
        return False
    owner = node.func.value
    return getattr(owner, "attr", getattr(owner, "id", "")) == "fleet"


def cluster_in(script: Path) -> dict[str, int]:
    """How many tasks each job has in the cluster that is written out in a script.

    None where it is made otherwise, or one of several that are written out.
    """
    clusters: list[dict[str, int]] = []
    for tree, names in _with_names(script):
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
        specs = [call for call in calls if name_of(call) == "ClusterSpec" and call.args]
        clusters += [_counts(call.args[0], names) for call in specs]
    return clusters[0] if clusters and all(counts == clusters[0] for counts in clusters) else {}


def _with_names(script: Path) -> Iterator[tuple[ast.Module, dict[str, ast.expr]]]:
    """The syntax trees of a script and its modules, each with what is first given to its names, and to those it imports."""
    trees = list(modules(script))
    given: list[dict[str, ast.expr]] = []
    for tree in trees:
        assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
        given.append(
            {n.id: a.value for a in reversed(assigned) for n in a.targets if isinstance(n, ast.Name)}
        )
    for tree, own in zip(trees, given, strict=True):
        beside = {name: value for names in reversed(given) for name, value in names.items()}
        within = {f"{module.rpartition('.')[2]}." for module in imported_names(tree)}
        yield tree, {**beside, **own, **{f"{m}{n}": v for m in within for n, v in beside.items()}}


# What scripts call the jobs "ps" and "worker", if not that.
_OTHER_NAMES = {"ps": r"ps|param(eter)?_?servers?|servers?", "worker": r"workers?|work|trainers?"}
_CHIEFS = ("chief", "master", "evaluator")  # beside workers, which may be added to the cluster later


def job_names(script: Path) -> dict[str, str]:
    """What a script calls the jobs "ps" and "worker" in the cluster it makes, where it has other names for them."""
    keys = jobs_named_in(script)
    by_job = {job: [k for k in keys if re.fullmatch(p, k.lower())] for job, p in _OTHER_NAMES.items()}
    if len(by_job["ps"]) == 1 and not by_job["worker"] and len(keys) == 2:
        by_job["worker"] = [k for k in keys if k not in by_job["ps"] and k.lower() not in _CHIEFS]
    return {job: own[0] for job, own in by_job.items() if len(own) == 1 and own != [job]}


_PLURAL_ROLES = re.compile(
    r"(actor|agent|explor|collect|rollout|slave|client|trainer|worker)\w*", re.IGNORECASE
)


def other_jobs(script: Path) -> dict[str, int]:
    """How many tasks to start of each job in a cluster that has no workers by any name; its servers are "ps"."""
    keys = jobs_named_in(script)
    called = {job: own for own, job in job_names(script).items()}
    own = [called.get(key, key) for key in keys]
    if len(own) < 2 or "worker" in own or not {*own} - {"ps", *_CHIEFS}:
        return {}
    return {key: 2 if _PLURAL_ROLES.fullmatch(key) else 1 for key in own}


def jobs_named_in(script: Path) -> list[str]:
    """The jobs of the cluster that a script makes, as far as they are written out."""
    keys: list[str] = []
    for tree, names in _with_names(script):
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args]
        jobs = [_known(call.args[0], names) for call in calls if name_of(call) in ("ClusterSpec", "Server")]
        keys += [text_of(key) for job in jobs if isinstance(job, ast.Dict) for key in job.keys]
    return list(dict.fromkeys(filter(None, keys)))


def _counts(cluster: ast.expr, names: dict[str, ast.expr]) -> dict[str, int]:
    jobs = _known(cluster, names)
    if not isinstance(jobs, ast.Dict):
        return {}
    pairs = zip(jobs.keys, jobs.values, strict=True)
    counts = {text_of(job): _length(_known(tasks, names)) for job, tasks in pairs}
    return counts if all(counts) and all(counts.values()) else {}


def _known(node: ast.expr, names: dict[str, ast.expr]) -> ast.expr:
    """What stands for a name, or for `settings.workers`, where that is written out; else the expression itself."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return names.get(f"{node.value.id}.{node.attr}", node)
    return names.get(node.id, node) if isinstance(node, ast.Name) else node


def _length(node: ast.expr) -> int:
    """How many addresses a list that is written out has, or `"a,b".split(",")`; 0 for anything else."""
    if isinstance(node, ast.Call) and name_of(node) == "split" and isinstance(node.func, ast.Attribute):
        return len(text_of(node.func.value).split(",")) if text_of(node.func.value) else 0
    if isinstance(node, ast.ListComp) and len(node.generators) == 1 and not node.generators[0].ifs:
        return len(_range(node.generators[0].iter))
    if not isinstance(node, ast.List | ast.Tuple) or any(isinstance(e, ast.Starred) for e in node.elts):
        return 0
    return len(node.elts)


def _range(node: ast.expr) -> range:
    """`range(2223, 2223 + 4)` if it is written with numbers, else an empty one."""
    if not isinstance(node, ast.Call) or name_of(node) not in ("range", "xrange"):
        return range(0)
    numbers = [_number(argument) for argument in node.args]
    return range(0) if None in numbers else range(*numbers)  # type: ignore[arg-type]


def _number(node: ast.expr) -> int | None:
    """The value of a whole number that is written out, or of a sum or difference of such."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        left, right = _number(node.left), _number(node.right)
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else left - right
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


_TELLS_HOW_MANY = re.compile(r"\s*(the )?(total )?(number|num|count)\b|\s*how many", re.IGNORECASE)


def defined_by(call: ast.Call) -> Iterator[Flag]:
    """The flag that a call defines, in absl's, argparse's, optparse's or click's way."""
    name = name_of(call)
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    texts = [text for argument in call.args if (text := text_of(argument))]
    default = [keywords[key] for key in ("default", "default_value") if key in keywords]
    text = "".join(map(text_of, default or call.args[1:2]))
    listed = text.startswith("[")
    if name.startswith("DEFINE_"):
        by_keyword = [text_of(keywords.get(key)) for key in ("name", "flag_name")]
        help_text = text_of(keywords.get("help")) or "".join(texts[1:][-1:])
        is_number = name in ("DEFINE_integer", "DEFINE_float") or bool(_TELLS_HOW_MANY.match(help_text))
        switch = name in ("DEFINE_bool", "DEFINE_boolean")
        yield from (
            Flag(n, is_number, is_switch=switch, negates=switch, listed=listed, default=text)
            for n in texts[:1] or by_keyword
            if n
        )
    elif name in ("add_argument", "option", "add_option"):
        number = isinstance(kind := keywords.get("type"), ast.Name) and kind.id in ("int", "float")
        number |= isinstance(kind, ast.Attribute) and kind.attr in ("INT", "FLOAT")
        number |= text_of(kind) in ("int", "float")
        number |= bool(_TELLS_HOW_MANY.match(text_of(keywords.get("help"))))
        number |= any(isinstance(d, ast.Constant) and type(d.value) is int for d in default)
        nargs = keywords.get("nargs")
        many = isinstance(nargs, ast.Constant) and nargs.value in ("+", "*")
        switch = text_of(keywords.get("action")).startswith("store_") or "is_flag" in keywords
        kept_as = text_of(keywords.get("dest"))
        yield from (
            Flag(t[2:], number, many, switch, listed=listed, kept_as=kept_as, default=text)
            for t in texts
            if t.startswith("--")
        )


def _defined_in_turn(loop: ast.For) -> Iterator[Flag]:
    """The flags that a loop over their names, written out in its first line, defines."""
    for call in ast.walk(loop):
        if isinstance(call, ast.Call) and call.args and not text_of(call.args[0]):
            for name in filter(None, map(text_of, ast.walk(loop.iter))):
                flag = ast.Constant(_before(call.args[0]) + name)
                yield from defined_by(ast.Call(call.func, [flag], call.keywords))


def _before(node: ast.expr) -> str:
    """What stands before the loop's name in `"--" + name`, `"--%s" % name` or `f"--{name}"`."""
    first = (
        node.left
        if isinstance(node, ast.BinOp)
        else node.values[0]
        if isinstance(node, ast.JoinedStr)
        else None
    )
    return text_of(first).removesuffix("%s")
