"""Which flags a script defines, read from its source: so that tasks get those of the cluster it has."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# What a task must be told, and what scripts call the flags for it.
SPELLINGS = {
    "ps_hosts": "ps_hosts ps_host pshosts ps_addresses ps_address ps_list parameter_servers ps",
    "worker_hosts": "worker_hosts worker_host workerhosts worker_addresses worker_address worker_list workers worker",
    "chief_hosts": "chief_hosts chief_host master_hosts master_host",
    "job_name": "job_name job jobname job_type task_type task_name role",
    "task_index": "task_index task_id task_idx taskid task_number task_num task worker_index worker_id worker_idx",
    "ps_count": "num_ps num_ps_hosts num_parameter_servers ps_num n_ps",
    "worker_count": "num_workers num_worker_hosts worker_num n_workers",
}
# A number under these names says how many there are, not where.
_COUNTS = {"ps_hosts": "ps_count", "worker_hosts": "worker_count"}
_DEPTH = 3


@dataclass(frozen=True)
class Flag:
    """A flag that a script defines; `many` when its values follow as separate arguments."""

    name: str
    is_number: bool = False
    many: bool = False


def flags_of(script: Path) -> dict[str, Flag]:
    """The flags that a script, or a module beside it that it imports, defines; none when it cannot be parsed."""
    found: dict[str, Flag] = {}
    for tree in _modules(script, _DEPTH, set()):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                found.update({flag.name: flag for flag in _defined_by(node)})
            elif isinstance(node, ast.For):
                found.update({flag.name: flag for flag in _defined_in_turn(node)})
    return found


def roles(flags: dict[str, Flag], names: dict[str, str] | None = None) -> dict[str, Flag]:
    """Which flag tells a task what: one for each role that the script has a flag for.

    `names` gives the flag of a role where the script's own spelling is not among the customary ones.
    """
    found: dict[str, Flag] = {}
    for role, name in (names or {}).items():
        if role not in SPELLINGS:
            raise ValueError(f"--flag-names knows {', '.join(SPELLINGS)}, but not {role!r}.")
        found[role] = flags.get(name, Flag(name))
    for role, spellings in SPELLINGS.items():
        for name in spellings.split():
            flag = flags.get(name)
            if flag is None or flag in found.values():
                continue
            found.setdefault(_COUNTS[role] if flag.is_number and role in _COUNTS else role, flag)
            break
    return found


def _modules(script: Path, depth: int, seen: set[Path]) -> Iterator[ast.Module]:
    """The script's syntax tree, and those of the modules beside it that it imports."""
    script = script.resolve()
    if script in seen or not script.is_file():
        return
    seen.add(script)
    try:
        with tokenize.open(script) as file:
            tree = ast.parse(file.read())
    except (SyntaxError, UnicodeDecodeError, ValueError):
        return
    yield tree
    if depth == 0:
        return
    for name in _imported(tree):
        path = script.parent.joinpath(*name.split("."))
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            yield from _modules(candidate, depth - 1, seen)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.module
            prefix = f"{node.module}." if node.module else ""
            yield from (prefix + alias.name for alias in node.names if alias.name != "*")


def _defined_by(call: ast.Call) -> Iterator[Flag]:
    """The flag that a call defines, in absl's, argparse's or click's way."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    keywords = {k.arg: k.value for k in call.keywords if k.arg}
    texts = [text for argument in call.args if (text := _text(argument))]
    if name.startswith("DEFINE_"):
        by_keyword = [_text(keywords.get(key)) for key in ("name", "flag_name")]
        is_number = name in ("DEFINE_integer", "DEFINE_float")
        yield from (Flag(n, is_number) for n in texts[:1] or by_keyword if n)
    elif name in ("add_argument", "option"):
        number = isinstance(kind := keywords.get("type"), ast.Name) and kind.id in ("int", "float")
        number |= isinstance(kind, ast.Attribute) and kind.attr in ("INT", "FLOAT")
        nargs = keywords.get("nargs")
        many = isinstance(nargs, ast.Constant) and nargs.value in ("+", "*")
        yield from (Flag(t[2:], number, many) for t in texts if t.startswith("--"))


def _defined_in_turn(loop: ast.For) -> Iterator[Flag]:
    """The flags that a loop over their names, written out in its first line, defines."""
    for call in ast.walk(loop):
        if isinstance(call, ast.Call) and call.args and not _text(call.args[0]):
            for name in filter(None, map(_text, ast.walk(loop.iter))):
                yield from _defined_by(ast.Call(call.func, [ast.Constant(name)], call.keywords))


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
