"""Which variables of the environment tell a script its task: tasks get them under the names that it reads."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

from tensorfleet.cli.scripts.flags import defined_by, role_of
from tensorfleet.cli.scripts.syntax import modules, name_of, nodes_of, text_of

# What a variable may be called besides what flags are; a word such as TF_ may stand before it.
_SPELLINGS = {
    "cluster": r"cluster(_?(spec|def|config))?",
    "job_name": r"type|role",
    "task_index": r"index",
}
# What managers of clusters call their own: a task's number among all tasks, how many there are, and its machine.
_MANAGERS = {
    "rank": r"SLURM_(PROC|NODE)ID|OMPI_COMM_WORLD_RANK|PMI_RANK",
    "size": r"SLURM_(NTASKS|NPROCS|NNODES|JOB_NUM_NODES)|OMPI_COMM_WORLD_SIZE|PMI_SIZE",
    "nodes": r"SLURM_(JOB_|STEP_)?NODELIST",
    "node": r"SLURMD_NODENAME",
    "per_node": r"SLURM_NTASKS_PER_NODE",
    "pod": r"(\w+_)?POD_NAME",  # of a set of pods: job and number
    # As PaddlePaddle's clusters tell their tasks, to programs for TensorFlow as well.
    "training_role": r"(PADDLE_)?TRAINING_ROLE",
    "task_index": r"(PADDLE_)?(TRAINER|PSERVER)_(ID|INDEX)",
    "ps_hosts": r"(PADDLE_)?PSERVERS?_(IP_PORT_LIST|ENDPOINTS)",
    "worker_hosts": r"(PADDLE_)?TRAINERS?_(IP_PORT_LIST|ENDPOINTS)",
    "ps_count": r"(PADDLE_)?PSERVERS(_NUM)?",
    "worker_count": r"(PADDLE_)?TRAINERS(_NUM)?",
    "own_address": r"(PADDLE_)?CURRENT_ENDPOINT",
    "own_host": r"POD_IP",
    "own_port": r"PADDLE_PORT",
}
# What a resolver reads for a script that makes one.
_RESOLVERS = {
    "SlurmClusterResolver": {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_NODELIST", "SLURM_NTASKS_PER_NODE"}
}
# Either says a task's job.
_JOB = {"job_name", "training_role"}


def variables_of(script: Path) -> dict[str, str]:
    """What a script, with the modules beside it, reads from the environment about its task: roles by names.

    None unless both its job and its number can be known from them.
    """
    roles: dict[str, str] = {}
    for tree in modules(script):
        roles.update({name: role for name in _read_in(tree) if (role := _role_of(name))})
    if any(_splits_in_three(node) for node in nodes_of(script)):
        roles = {name: "named_pod" if role == "pod" else role for name, role in roles.items()}
    known = set(roles.values())
    tells = names_task(roles) or {"rank", "pod", "named_pod"} & known or {"nodes", "node"} <= known
    return roles if tells else {}


def makes_cluster(script: Path) -> bool:
    """Whether a script makes a cluster of its own, or a TF_CONFIG."""
    return any(
        getattr(node, "attr", "") in ("Server", "ClusterSpec") or text_of(node) == "TF_CONFIG"
        for node in nodes_of(script)
    )


def makes_servers(script: Path) -> bool:
    """Whether a script, or a module beside it, makes a server, or starts other programs that may."""
    nodes = nodes_of(script)
    names = {getattr(node, "attr", None) or getattr(node, "id", None) for node in nodes}
    return bool({"Server", "create_local_server", "Popen", "subprocess", "system"} & names)


def names_task(variables: dict[str, str]) -> bool:
    """Whether variables say a task's job and number themselves."""
    known = set(variables.values())
    return bool(_JOB & known) and bool({"task_index", "own_address", "own_port"} & known)


def refuses_flags(script: Path) -> bool:
    """Whether a script has a parser that knows no flag for its task, and refuses what it does not know."""
    for tree in modules(script, 0):
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        strict = any(name_of(call) == "parse_args" and not call.args for call in calls)
        own = [flag for call in calls if name_of(call) == "add_argument" for flag in defined_by(call)]
        return strict and not any(role_of(flag.name) in ("job_name", "task_index") for flag in own)
    return False


def of_task(jobs: dict[str, list[str]], job: str, index: int) -> dict[str, str]:
    """What the roles of variables stand for in one task. Its machine has a name of its own, as under a manager."""
    tasks = [(name, i) for name, where in jobs.items() for i in range(len(where))]
    rank = tasks.index((job, index)) if (job, index) in tasks else len(tasks)
    own = jobs[job][index] if rank < len(tasks) else ""
    return {
        "training_role": "PSERVER" if job == "ps" else "TRAINER",
        "own_address": own,
        "own_host": own.rpartition(":")[0],
        "own_port": own.rpartition(":")[2],
        "cluster": json.dumps(jobs),
        "pod": f"{job}-{index}",
        "named_pod": f"{job}-{index}-pod",
        "rank": str(rank),
        "size": str(len(tasks)),
        "nodes": f"node[1-{len(tasks)}]" if len(tasks) > 1 else "node1",
        "node": f"node{rank + 1}",
        "per_node": "1",
    }


def _read_in(tree: ast.Module) -> set[str]:
    """The names of variables that a module asks the environment for."""
    nodes = list(ast.walk(tree))
    given = [n for n in nodes if isinstance(n, ast.Assign) and text_of(n.value)]
    constants = {t.id: text_of(n.value) for n in given for t in n.targets if isinstance(t, ast.Name)}
    asked: list[ast.expr] = []
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_environment(node.value):
            asked.append(node.slice)
        elif isinstance(node, ast.Call) and node.args and _asks(node):
            asked.append(node.args[0])
    used = {getattr(node, "attr", getattr(node, "id", "")) for node in nodes} & _RESOLVERS.keys()
    read = {text_of(e) or (constants.get(e.id, "") if isinstance(e, ast.Name) else "") for e in asked}
    return read.union(*(_RESOLVERS[name] for name in used))


def _splits_in_three(node: ast.AST) -> bool:
    """`job, number, _ = name.split("-", 2)`: pods of a controller have a part of a name behind their number."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.args):
        return False
    to = node.targets[0]
    three = isinstance(to, ast.Tuple | ast.List) and len(to.elts) == 3
    return three and name_of(node.value) == "split" and text_of(node.value.args[0]) == "-"


def _asks(call: ast.Call) -> bool:
    """`os.getenv(...)` and `os.environ.get(...)`."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return name_of(call) == "getenv" or (name_of(call) in ("get", "pop") and _is_environment(owner))


def _is_environment(node: ast.expr | None) -> bool:
    return getattr(node, "attr", getattr(node, "id", "")) == "environ"


def _role_of(name: str) -> str | None:
    for role, pattern in _MANAGERS.items():
        if re.fullmatch(pattern, name):
            return role
    plain = name.lower()
    without = "" if plain.startswith("slurm") else plain.partition("_")[2]
    return _plain_role(plain) or _plain_role(without)


def _plain_role(name: str) -> str | None:
    own = (role for role, pattern in _SPELLINGS.items() if re.fullmatch(pattern, name))
    return next(own, role_of(name))


_ASKING = {"argv", "environ", "getenv", "gethostname", "getfqdn", "input", "raw_input", "FLAGS", "parse_args"}


def asks_who_it_is(script: Path) -> bool:
    """Whether anything in a script can differ from one process to another that runs it."""
    nodes = nodes_of(script)
    names = {getattr(node, "attr", None) or getattr(node, "id", None) for node in nodes}
    return bool(_ASKING & names)


def asks_for_ps(script: Path) -> bool:
    """Whether a script has something to do for the tasks of a job "ps": it compares jobs with that."""
    nodes = nodes_of(script)
    return any(isinstance(node, ast.Compare) and "ps" in _texts(node) for node in nodes)


def has_master(script: Path) -> bool:
    """Whether a script's chief is the task of a job "master", as in `is_chief = task.type == "master"`.

    Where it says otherwise who is the chief, it is not; where it does not say, any question for a master is for the chief.
    """
    nodes = nodes_of(script)
    given: list[tuple[ast.AST, ast.expr]] = [(n, n.value) for n in nodes if isinstance(n, ast.keyword)]
    given += [(target, n.value) for n in nodes if isinstance(n, ast.Assign) for target in n.targets]
    chiefs = [value for name, value in given if _names_chief(name) and not isinstance(value, ast.Name)]
    others = [value for value in chiefs if "worker" in _texts(value)]
    if others and all(isinstance(v, ast.Compare) and isinstance(v.ops[0], ast.NotEq) for v in others):
        return any(text_of(node) == "master" for node in nodes)  # whoever is no worker
    if others:
        return False
    questions: list[ast.AST] = [*chiefs] or [n for n in nodes if isinstance(n, ast.Compare) and _is_of_job(n)]
    return any("master" in _texts(q) and "worker" not in _texts(q) for q in questions)


def _texts(node: ast.AST) -> set[str]:
    """The texts that are written out in an expression; `TaskType.MASTER` is one of them."""
    texts = {text_of(inner) for inner in ast.walk(node)}
    return texts | {
        n.attr.lower() for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr.isupper()
    }


def _is_of_job(question: ast.Compare) -> bool:
    """Whether it is a job that is compared: `job_name == ...`, `config["task"]["type"] in ...`."""
    asked = question.left
    name = text_of(asked.slice) if isinstance(asked, ast.Subscript) else _ends(asked)
    return bool(re.search(r"job|type|role|task", name.lower()))


def _names_chief(node: ast.AST) -> bool:
    name = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "arg", None) or ""
    return bool(re.fullmatch(r"_*is_(the_)?(chief|master)", name))


# What makes or trains an estimator of `tf.estimator`, which then looks for a chief.
_ESTIMATORS = re.compile(r"RunConfig|train_and_evaluate|\w*(Estimator|Classifier|Regressor)")
_STRATEGIES = re.compile(r"\w*(Mirrored|Server|AllReduce|Storage|Device)Strategy(V1)?")


def needs_chief(script: Path, alone: bool = False) -> bool:
    """Whether a script makes estimators of `tf.estimator` for the cluster it is told: that has a job "chief".

    Those of `tf.contrib.learn` have the first worker for one, and so have strategies. A script that writes down its
    cluster from its flags has no use for that when it runs `alone`: the one it is told is then all there is.
    """
    nodes = nodes_of(script)
    names = {getattr(node, "attr", "") for node in nodes}
    own = {"Server", "ClusterSpec"} & names or any(map(_STRATEGIES.fullmatch, names))
    written = any(
        text_of(inner) == "TF_CONFIG"
        for node in nodes
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del)
        for inner in ast.walk(node)
    )
    learns = any(
        isinstance(n, ast.Attribute) and n.attr == "RunConfig" and _ends(n.value) == "learn" for n in nodes
    )
    return any(map(_makes_estimator, nodes)) and not (own or (written and not alone) or learns)


def evaluates_beside(script: Path) -> bool:
    """Whether a script calls `tf.estimator.train_and_evaluate` for the cluster it is told: one task of it evaluates.

    The method of an Experiment, which takes no arguments, has its master do that.
    """
    calls = [n for n in nodes_of(script) if isinstance(n, ast.Call)]
    called = any(name_of(n) == "train_and_evaluate" and len(n.args) + len(n.keywords) >= 3 for n in calls)
    return called and needs_chief(script)


def _makes_estimator(node: ast.AST) -> bool:
    """`tf.estimator.Estimator`, `from tensorflow.estimator import Estimator` and the like."""
    if isinstance(node, ast.ImportFrom):
        inside = (node.module or "").split(".")
        return inside[0] == "tensorflow" and "estimator" in inside and "contrib" not in inside
    return (
        isinstance(node, ast.Attribute)
        and _ends(node.value) == "estimator"
        and bool(_ESTIMATORS.fullmatch(node.attr))
    )


def _ends(node: ast.expr) -> str:
    return str(getattr(node, "attr", "") or getattr(node, "id", ""))
