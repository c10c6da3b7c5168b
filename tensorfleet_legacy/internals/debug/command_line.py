"""The command line of tfdbg: looks at the dump of a run."""

from __future__ import annotations

import argparse
import contextlib
import linecache
import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from tensorfleet.runtime.value_stats import in_words, statistics
from tensorfleet_legacy.internals.debug.debug_data import DebugDumpDir, DebugTensorDatum, has_inf_or_nan

_MAX_NUMBERS = 1000  # of a printed tensor, unless all are wanted
_COMMANDS = {
    "list_tensors": "lt",
    "print_tensor": "pt",
    "node_info": "ni",
    "list_inputs": "li",
    "list_outputs": "lo",
    "print_source": "ps",
    "list_source": "ls",
    "run_info": "ri",
}
_HELP = """run | r [-n] [-t TIMES] [-f FILTER]   run on: without debugging, so many times, or until a filter passes
lt [-f FILTER] [-n REGEX] [-t REGEX]  list dumped tensors, those of a filter, of a name, of a type
pt TENSOR[SLICE] [-s] [-a] [-w FILE]  print a tensor: with statistics, all of it, into a .npy file
ni NODE [-a] [-d] [-t]                node: attributes, dumps, traceback
li NODE [-r] [-c] | lo NODE [-r] [-c] inputs or recipients of a node: all that follow, control edges too
ps FILE [-b LINE] | ls                source file with the tensors that each line made; files of the graph
ri                                    what the run was for
exit                                  end the program"""


class CommandError(Exception):
    """A command that cannot be carried out, in words."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{self.prog}: {message}")


def _parser(name: str, **flags: dict[str, Any]) -> _Parser:
    parser = _Parser(prog=name, add_help=False)
    for flag, options in flags.items():
        names = [f"-{flag}"] if len(flag) == 1 else [flag]
        parser.add_argument(*names, **options)
    return parser


def parse_run(words: list[str]) -> argparse.Namespace:
    """The options of `run`."""
    parser = _parser(
        "run",
        n={"action": "store_true"},
        t={"type": int, "default": 1},
        f={"default": None},
    )
    return parser.parse_args(words)


class Analyzer:
    """Commands about one dump; each gives the text to print."""

    def __init__(self, dump: DebugDumpDir, filters: dict[str, Callable]) -> None:
        self._dump = dump
        self._filters = {"has_inf_or_nan": has_inf_or_nan, **filters}

    def do(self, line: str) -> str:
        """Carries out a line. Raises `CommandError`."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise CommandError(str(error)) from None
        if not words:
            return ""
        name = _COMMANDS.get(words[0], words[0])
        if name in ("help", "h"):
            return _HELP
        command = getattr(self, f"_{name}", None) if name in _COMMANDS.values() else None
        if command is None:
            raise CommandError(f"No command {words[0]!r}.\n{_HELP}")
        return str(command(words[1:]))

    # -- tensors --------------------------------------------------------------------------------------

    def _lt(self, words: list[str]) -> str:
        options = _parser(
            "lt",
            f={"default": None},
            n={"default": ""},
            t={"default": ""},
            s={"default": None},
            r={"action": "store_true"},
        ).parse_args(words)
        data = self._passing(options.f) if options.f else self._dump.dumped_tensor_data
        data = [d for d in data if re.match(options.n, d.node_name) and re.match(options.t, self._type(d))]
        keys: dict[str, Callable[[DebugTensorDatum], Any]] = {
            "timestamp": lambda d: d.timestamp,
            "dump_size": lambda d: d.dump_size_bytes,
            "op_type": self._type,
            "tensor_name": lambda d: d.tensor_name,
        }
        if options.s is not None:
            if options.s not in keys:
                raise CommandError(f"lt: -s takes {', '.join(keys)}.")
            data = sorted(data, key=keys[options.s])
        if options.r:
            data = data[::-1]
        head = f"{len(data)} dumped tensor(s)" + (f' passing filter "{options.f}"' if options.f else "") + ":"
        rows = [["t (ms)", "Size (B)", "Op type", "Tensor name"]]
        for d in data:
            milliseconds = (d.timestamp - (self._dump.t0 or 0)) / 1000
            rows.append([f"[{milliseconds:.3f}]", str(d.dump_size_bytes), self._type(d), d.tensor_name])
        return f"{head}\n\n{_table(rows)}"

    def _passing(self, name: str) -> list[DebugTensorDatum]:
        if name not in self._filters:
            raise CommandError(
                f"There is no tensor filter named {name!r}. There are {', '.join(self._filters)}."
            )
        return self._dump.find(self._filters[name])

    def _type(self, datum: DebugTensorDatum) -> str:
        known = self._dump.node_exists(datum.node_name)
        return self._dump.node_op_type(datum.node_name) if known else "?"

    def _pt(self, words: list[str]) -> str:
        options = _parser(
            "pt",
            tensor={},
            a={"action": "store_true"},
            s={"action": "store_true"},
            w={"default": None},
            n={"type": int, "default": 0},
        ).parse_args(words)
        name, bracket, cut = options.tensor.partition("[")
        data = [
            d
            for d in self._dump.dumped_tensor_data
            if d.tensor_name == (name if ":" in name else f"{name}:0")
        ]
        if not data:
            raise CommandError(f"No dump of {name!r}. `lt` lists the tensors.")
        datum = data[min(options.n, len(data) - 1)]
        value = datum.get_tensor()
        if value is None:
            return f"Tensor {datum.watch_key}: not initialized."
        value = np.asarray(value)
        if bracket:
            value = np.asarray(value[_slices(cut.removesuffix("]"))])
        lines = [
            f'Tensor "{datum.watch_key}{bracket}{cut}":',
            f"  dtype: {value.dtype}",
            f"  shape: {value.shape}",
            "",
        ]
        if options.s:
            lines += [in_words(statistics(value)), ""]
        if options.w:
            np.save(options.w, value)
            lines.append(f"Written to {options.w}.")
        else:
            lines.append(
                np.array2string(
                    value, threshold=value.size + 1 if options.a else _MAX_NUMBERS, separator=", "
                )
            )
        return "\n".join(lines)

    # -- the graph ------------------------------------------------------------------------------------

    def _need_node(self, name: str) -> str:
        name = name.partition(":")[0]
        if not self._dump.node_exists(name):
            raise CommandError(f"There is no node named {name!r} in the graph.")
        return name

    def _ni(self, words: list[str]) -> str:
        flags = {flag: {"action": "store_true"} for flag in "adt"}
        options = _parser("ni", node={}, **flags).parse_args(words)
        name = self._need_node(options.node)
        lines = [
            f"Node {name}",
            "",
            f"  Op: {self._dump.node_op_type(name)}",
            f"  Device: {self._dump.node_device(name)}",
        ]
        for title, of in (("input", self._dump.node_inputs), ("recipient", self._dump.node_recipients)):
            for control in (False, True):
                near = of(name, is_control=control)
                kind = f"control {title}" if control else title
                lines += [
                    "",
                    f"  {len(near)} {kind}(s):",
                    *(f"    [{self._dump.node_op_type(n)}] {n}" for n in near if self._dump.node_exists(n)),
                ]
        if options.a:
            attributes = self._dump.node_attributes(name)
            lines += [
                "",
                "Node attributes:",
                *(f"  {key}: {str(attributes[key]).strip()}" for key in sorted(attributes)),
            ]
        if options.d:
            keys = self._dump.debug_watch_keys(name)
            lines += ["", f"{len(keys)} dumped tensor(s):", *(f"  {key}" for key in keys)]
        if options.t:
            lines += ["", "Traceback of node construction:", *self._traceback(name)]
        return "\n".join(lines)

    def _traceback(self, name: str) -> list[str]:
        with contextlib.suppress(LookupError):
            calls = self._dump.node_traceback(name)
            return [f"  {file}:{line} in {function}\n      {text}" for file, line, function, text in calls]
        return ["  (not known)"]

    def _li(self, words: list[str]) -> str:
        return self._neighbours("li", words, self._dump.node_inputs, "Inputs to")

    def _lo(self, words: list[str]) -> str:
        return self._neighbours("lo", words, self._dump.node_recipients, "Recipients of")

    def _neighbours(self, name: str, words: list[str], of: Callable, title: str) -> str:
        options = _parser(
            name,
            node={},
            r={"action": "store_true"},
            c={"action": "store_true"},
            d={"type": int, "default": 20},
            t={"action": "store_true"},
        ).parse_args(words)
        node = self._need_node(options.node)
        lines = [f'{title} node "{node}" (Depth limit = {options.d if options.r else 1}):']
        seen = {node}

        def walk(at: str, depth: int) -> None:
            edges = [(n, "") for n in of(at)] + (
                [(n, "(Ctrl) ") for n in of(at, is_control=True)] if options.c else []
            )
            for other, mark in edges:
                kind = (
                    f"[{self._dump.node_op_type(other)}] "
                    if options.t and self._dump.node_exists(other)
                    else ""
                )
                again = " (seen above)" if other in seen and options.r else ""
                lines.append(f"{'|  ' * (depth - 1)}|- ({depth}) {mark}{kind}{other}{again}")
                if options.r and depth < options.d and other not in seen and self._dump.node_exists(other):
                    seen.add(other)
                    walk(other, depth + 1)

        walk(node, 1)
        return "\n".join(lines)

    # -- source ---------------------------------------------------------------------------------------

    def _made(self) -> dict[str, dict[int, list[str]]]:
        """By file and line: the operations of the dump that were made there."""
        if self._dump.python_graph is None:
            raise CommandError("The lines of this graph are not known.")
        files: dict[str, dict[int, list[str]]] = {}
        for op in self._dump.python_graph.get_operations():
            if self._dump.node_exists(op.name):
                for file, line, *_ in op.traceback:
                    files.setdefault(file, {}).setdefault(line, []).append(op.name)
        return files

    def _ls(self, words: list[str]) -> str:
        rows = [["Nodes", "File"]]
        for file, lines in sorted(self._made().items()):
            rows.append([str(len({name for names in lines.values() for name in names})), file])
        return _table(rows)

    def _ps(self, words: list[str]) -> str:
        options = _parser(
            "ps",
            file={},
            b={"type": int, "default": 1},
            n={"action": "store_true"},
            m={"type": int, "default": 5},
        ).parse_args(words)
        made = self._made()
        matches = [file for file in made if file == options.file or file.endswith("/" + options.file)]
        if not matches:
            raise CommandError(f"No operation was made in {options.file}. `ls` lists the files.")
        dumped = {d.node_name for d in self._dump.dumped_tensor_data}
        result = []
        for number, text in enumerate(linecache.getlines(matches[0]), 1):
            if number < options.b:
                continue
            result.append(f"[{'*' if number in made[matches[0]] else ' '}] L{number:<5} {text.rstrip()}")
            names = made[matches[0]].get(number, [])
            shown = names if options.n else [n for n in names if n in dumped]
            result += [f"             {name}" for name in shown[: options.m]]
            if len(shown) > options.m:
                result.append(f"             ... {len(shown) - options.m} more")
        return "\n".join(result)

    def _ri(self, words: list[str]) -> str:
        return (
            f"Fetches: {self._dump.run_fetches_info}\nFeeds: {self._dump.run_feed_keys_info}\n"
            f"{self._dump.size} dumped tensor(s)"
        )


def _slices(text: str) -> tuple[Any, ...]:
    """`1:3, :` as what an array takes."""
    try:
        parts = [[int(n) if n.strip() else None for n in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise CommandError(f"pt: [{text}] is not a slice. Write for example [0, 1:3].") from None
    return tuple(slice(*part) if len(part) > 1 else part[0] for part in parts)


def _table(rows: Iterable[list[str]]) -> str:
    lines = list(rows)
    widths = [max(len(row[i]) for row in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in lines
    )
