"""`return`, `break` and `continue` inside of branches and loops, as flags that the statements behind them look at.

What is left has one way out of each block, so that a block can become a function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

_LOOPS = (ast.For, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def lowered(function: ast.FunctionDef, unique: Callable[[str], str]) -> None:
    """Rewrites the body of a function."""
    # Breaks first: a return inside a loop becomes a flag that ends the loop, too.
    body = _without_breaks(function.body, unique)
    if any(_has(s, ast.Return, into_loops=True) for s in body if not isinstance(s, ast.Return)):
        body = _without_returns(body, unique)
    function.body = body


def parsed(text: str, like: ast.AST, **parts: ast.AST) -> list[ast.stmt]:
    """Statements from text at the place of a node; a name that is among `parts` stands for that."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            ast.copy_location(node, like)
    result: list[ast.stmt] = _Fill(parts).visit(tree).body
    return result


class _Fill(ast.NodeTransformer):
    """Puts nodes where their names stand."""

    def __init__(self, parts: dict[str, ast.AST]) -> None:
        self.parts = parts

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.parts.get(node.id, node)


def _has(node: ast.AST, kind: type[ast.stmt], into_loops: bool) -> bool:
    """Whether a statement of a kind is inside another, but not inside a function there."""
    if isinstance(node, kind):
        return True
    if isinstance(node, _SCOPES) or (isinstance(node, _LOOPS) and not into_loops):
        return False
    return any(
        _has(child, kind, into_loops)
        for child in ast.iter_child_nodes(node)
        if isinstance(child, (ast.stmt, ast.excepthandler))
    )


def _blocks(node: ast.stmt) -> list[str]:
    """The names of the fields of a statement that are lists of statements."""
    return [name for name in ("body", "orelse", "finalbody") if getattr(node, name, None)]


def _guarded(flag: str, rest: list[ast.stmt]) -> list[ast.stmt]:
    """Statements that run unless a flag is set."""
    if not rest:
        return []
    (guard,) = parsed(f"if ag__.not_({flag}):\n pass", rest[0])
    guard.body = rest  # type: ignore[attr-defined]
    return [guard]


# -- break and continue ---------------------------------------------------------------------------------


def _without_breaks(body: list[ast.stmt], unique: Callable[[str], str]) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, _SCOPES):
            result.append(statement)
            continue
        for name in _blocks(statement):
            setattr(statement, name, _without_breaks(getattr(statement, name), unique))
        for handler in getattr(statement, "handlers", ()):
            handler.body = _without_breaks(handler.body, unique)
        result += _loop(statement, unique) if isinstance(statement, _LOOPS) else [statement]
    return result


def _loop(loop: ast.For | ast.While, unique: Callable[[str], str]) -> list[ast.stmt]:
    """A loop whose body ends at its end only."""
    before: list[ast.stmt] = []
    after: list[ast.stmt] = loop.orelse
    loop.orelse = []
    # A continue before a break: its flag is reset in each turn, that of a break once.
    if any(_has(s, ast.Continue, False) for s in loop.body):
        flag = unique("continue_")
        loop.body = [*parsed(f"{flag} = False", loop), *_flagged(loop.body, ast.Continue, flag)]
    if any(_has(s, ast.Break, False) for s in loop.body):
        flag = unique("break_")
        before = parsed(f"{flag} = False", loop)
        loop.body = _flagged(loop.body, ast.Break, flag)
        _ends_with(loop, flag)
        after = _guarded(flag, after)
    return [*before, loop, *after]


def _ends_with(loop: ast.For | ast.While, flag: str) -> None:
    """Ends a loop when a flag is set."""
    loop.__dict__.setdefault("flags", []).append(flag)


def _flagged(body: list[ast.stmt], kind: type[ast.stmt], flag: str) -> list[ast.stmt]:
    """A block in which a flag is set instead of a statement of a kind; the statements behind it test the flag."""
    result: list[ast.stmt] = []
    for i, statement in enumerate(body):
        if isinstance(statement, kind):
            result += parsed(f"{flag} = True", statement)
            return result
        if not _has(statement, kind, False):
            result.append(statement)
            continue
        for name in _blocks(statement):
            setattr(statement, name, _flagged(getattr(statement, name), kind, flag))
        for handler in getattr(statement, "handlers", ()):
            handler.body = _flagged(handler.body, kind, flag)
        # All statements behind it run only if the flag was not set.
        return [*result, statement, *_guarded(flag, _flagged(body[i + 1 :], kind, flag))]
    return result


# -- return ---------------------------------------------------------------------------------------------


def _without_returns(body: list[ast.stmt], unique: Callable[[str], str]) -> list[ast.stmt]:
    flag, value = unique("do_return"), unique("retval_")
    first = body[0]
    start = parsed(f"{flag} = False\n{value} = ag__.UndefinedReturnValue()", first)
    end = parsed(f"return ag__.retval({value})", body[-1])
    return [*start, *_returning(_both_ways(body), flag, value), *end]


def _returns(body: list[ast.stmt]) -> bool:
    """Whether a block returns for sure."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Raise)):
        return True
    if isinstance(last, ast.If):
        return _returns(last.body) and _returns(last.orelse)
    return isinstance(last, ast.With) and _returns(last.body)


def _both_ways(body: list[ast.stmt]) -> list[ast.stmt]:
    """Moves the statements behind a branch that returns into the other branch: then both have a value."""
    result: list[ast.stmt] = []
    for i, statement in enumerate(body):
        result.append(statement)
        for name in _blocks(statement):
            if not isinstance(statement, _SCOPES):
                setattr(statement, name, _both_ways(getattr(statement, name)))
        if not isinstance(statement, ast.If) or not body[i + 1 :]:
            continue
        # `tf.cond` needs a value from both branches.
        yes, no = _returns(statement.body), _returns(statement.orelse)
        if yes and not no:
            statement.orelse = _both_ways([*statement.orelse, *body[i + 1 :]])
            return result
        if no and not yes:
            statement.body = _both_ways([*statement.body, *body[i + 1 :]])
            return result
    return result


def _returning(body: list[ast.stmt], flag: str, value: str) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for i, statement in enumerate(body):
        if isinstance(statement, ast.Return):
            given = statement.value or ast.copy_location(ast.Constant(None), statement)
            return [*result, *parsed(f"{flag} = True\n{value} = given__", statement, given__=given)]
        result.append(statement)
        if isinstance(statement, _SCOPES) or not _has(statement, ast.Return, True):
            continue
        for name in _blocks(statement):
            setattr(statement, name, _returning(getattr(statement, name), flag, value))
        for handler in getattr(statement, "handlers", ()):
            handler.body = _returning(handler.body, flag, value)
        if isinstance(statement, _LOOPS):
            _ends_with(statement, flag)
        return [*result, *_guarded(flag, _returning(body[i + 1 :], flag, value))]
    return result
