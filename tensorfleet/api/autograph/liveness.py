"""Liveness: which variables a statement sets, and which of them later statements still read."""

from __future__ import annotations

import ast
import re

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def symbol(node: ast.AST) -> str | None:
    """The name of a variable, or of a part of one such as "self.x" or "d['key']"."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = symbol(node.value)
        return None if base is None else f"{base}.{node.attr}"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        base = symbol(node.value)
        return None if base is None else f"{base}[{node.slice.value!r}]"
    return None


def owner(name: str) -> str:
    """The variable that a symbol is a part of."""
    return re.split(r"[.\[]", name, maxsplit=1)[0]


def reads(node: ast.AST) -> set[str]:
    """The variables and their parts that a piece of code reads, functions inside of it included."""
    result: set[str] = set()
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        name = symbol(node)
        if name is not None and isinstance(node.ctx, ast.Load):
            result.add(name)
    if isinstance(node, ast.AugAssign) and (name := symbol(node.target)) is not None:
        result.add(name)
    for child in ast.iter_child_nodes(node):
        result |= reads(child)
    if isinstance(node, _COMPREHENSIONS):
        return result - {n for g in node.generators for n in _names(g.target)}
    if isinstance(node, _SCOPES):
        return result - {a.arg for a in _arguments(node)}
    return result


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    a = node.args
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]


def _names(target: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}


def writes(node: ast.AST) -> set[str]:
    """The variables and their parts that a piece of code sets; what is inside a function is its own."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
        return set()
    result: set[str] = set()
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        name = symbol(node)
        if name is not None and isinstance(node.ctx, (ast.Store, ast.Del)):
            result.add(name)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        result |= {(a.asname or a.name).partition(".")[0] for a in node.names}
    if isinstance(node, ast.ExceptHandler) and node.name:
        # Python deletes the name of an exception at the end of its handler.
        return {n for child in node.body for n in writes(child)} - {node.name}
    for child in ast.iter_child_nodes(node):
        result |= writes(child)
    return result


def writes_of(body: list[ast.stmt]) -> set[str]:
    """The variables that the statements of a block set."""
    return {name for statement in body for name in writes(statement)}


def live_into(body: list[ast.stmt], after: set[str]) -> set[str]:
    """The variables that a block reads before it sets them, and those read behind it.

    Each branch and loop inside gets as `live_out` the variables read behind it, and a loop as `live_in` those that a turn
    of it reads from the one before.
    """
    live = set(after)
    for statement in reversed(body):
        live = _before(statement, live)
    return live


def _before(node: ast.stmt, after: set[str]) -> set[str]:
    if isinstance(node, ast.If):
        node.live_out = after  # type: ignore[attr-defined]
        node.live_in = live_into(node.body, after) | live_into(node.orelse, after)  # type: ignore[attr-defined]
        result: set[str] = reads(node.test) | node.live_in  # type: ignore[attr-defined]
        return result
    if isinstance(node, (ast.While, ast.For)):
        return _before_loop(node, after)
    if isinstance(node, ast.With):
        inner = live_into(node.body, after)
        names = {n for item in node.items if item.optional_vars for n in writes(item.optional_vars)}
        return {n for item in node.items for n in reads(item.context_expr)} | (inner - names)
    if isinstance(node, ast.Try):
        live = set(after)
        # An exception may leave the body anywhere, so that all that any part reads counts as read.
        for block in (node.finalbody, node.orelse, *(h.body for h in node.handlers), node.body):
            live |= live_into(block, live)
        return live | {n for h in node.handlers if h.type is not None for n in reads(h.type)}
    return (after - writes(node)) | reads(node)


def _before_loop(node: ast.While | ast.For, after: set[str]) -> set[str]:
    node.live_out = after  # type: ignore[union-attr]
    flags = set(node.__dict__.get("flags", ()))
    tested = flags | (reads(node.test) if isinstance(node, ast.While) else set())
    targets = writes(node.target) if isinstance(node, ast.For) else set()
    live = after | tested
    # Until nothing is added: what the end of a turn sets, the beginning of the next may read.
    while True:
        larger = live | (live_into(node.body, live) - targets)
        if larger == live:
            break
        live = larger
    node.live_in = live  # type: ignore[union-attr]
    return live | (reads(node.iter) if isinstance(node, ast.For) else set())
