"""Branches, loops, logic and calls of a function, as calls of `ag__`: the operators that know tensors from Python."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tensorfleet.api.autograph.liveness import live_into, owner, reads, symbol, writes, writes_of
from tensorfleet.api.autograph.lowering import lowered, parsed

# They look at the frame they are called from.
_AS_THEY_ARE = {"super", "locals", "globals", "vars", "dir", "eval", "exec", "breakpoint"}
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def rewritten(function: ast.FunctionDef) -> ast.FunctionDef:
    """A function whose branches and loops may depend on tensors."""
    taken = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    taken |= {n.arg for n in ast.walk(function) if isinstance(n, ast.arg)}
    return _FunctionRewriter(function, _unique(taken)).made()


def _unique(taken: set[str]) -> Callable[[str], str]:
    def unique(name: str) -> str:
        number, result = 0, name
        while result in taken:
            number += 1
            result = f"{name}_{number}"
        taken.add(result)
        return result

    return unique


class _FunctionRewriter(ast.NodeTransformer):
    """One function; those inside of it are rewritten each by its own."""

    def __init__(self, function: ast.FunctionDef, unique: Callable[[str], str]) -> None:
        self._function, self._unique = function, unique
        self._outside: set[str] = set()
        self._undefined: set[str] = set()

    def made(self) -> ast.FunctionDef:
        function = self._function
        lowered(function, self._unique)
        for node in ast.walk(function):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                self._outside |= set(node.names)
        inside = {
            name
            for statement in function.body
            for node in ast.walk(statement)
            if isinstance(node, _NESTED)
            for name in reads(node)
        }
        # A function inside may run at any time: what it reads is read behind every statement.
        live_into(function.body, inside)
        body = [self.visit(statement) for statement in function.body]
        flat = [s for made in body for s in (made if isinstance(made, list) else [made])]
        given = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
        missing = sorted(self._undefined - given)
        start = parsed("\n".join(f"{n} = ag__.Undefined({n!r})" for n in missing), function)
        # Python wants these before any use of the names.
        declared = [s for s in flat if isinstance(s, (ast.Global, ast.Nonlocal))]
        function.body = [*declared, *start, *(s for s in flat if s not in declared)]
        return function

    # -- statements -------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args = self.visit(node.args)
        return _FunctionRewriter(node, self._unique).made() if convertible(node) else node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node

    visit_AsyncFunctionDef = visit_ClassDef  # type: ignore[assignment]

    def _state(self, node: Any, body: list[ast.stmt], also: set[str]) -> tuple[list[str], list[str], int]:
        """The variables that a statement sets, and those of them that matter outside: first those read behind it."""
        changed = writes_of(body) | also
        simple = {name for name in changed if owner(name) == name}
        # A part such as `self.x` counts only while its owner stays: `self = other` sets all of it.
        whole = {name for name in changed - simple if owner(name) not in changed}
        results = (simple & node.live_out) | whole
        carried = (simple & node.live_in) - results
        self._undefined |= ((results | carried) & simple) - self._outside
        return sorted(simple), [*sorted(results), *sorted(carried)], len(results)

    def _declarations(self, names: list[str], state: list[str]) -> str:
        """The `nonlocal` and `global` declarations of a block that becomes a function."""
        around = [n for n in names if n in state and n not in self._outside]
        inherited = [n for n in names if n in self._outside]
        lines = [f"nonlocal {', '.join(around)}"] if around else []
        for name in inherited:
            lines.append(f"{'global' if self._is_global(name) else 'nonlocal'} {name}")
        return "\n ".join(lines) or "pass"

    def _is_global(self, name: str) -> bool:
        return any(name in n.names for n in ast.walk(self._function) if isinstance(n, ast.Global))

    def _accessors(
        self, node: ast.stmt, names: list[str], state: list[str]
    ) -> tuple[list[ast.stmt], str, str]:
        """Functions that read and that set the state."""
        get, change = self._unique("get_state"), self._unique("set_state")
        values = "".join(f"ag__.ldu(lambda: {n}, {n!r}), " for n in state)
        declarations = self._declarations(names, state)
        text = f"def {get}():\n return ({values})\n"
        targets = "".join(f"{n}, " for n in state)
        if state:
            text += f"def {change}(vars_):\n {declarations}\n ({targets}) = vars_\n"
        else:
            text += f"def {change}(vars_):\n pass\n"
        return parsed(text, node), get, change

    def _block(
        self, name: str, arguments: str, declarations: str, body: list[ast.stmt], like: ast.AST
    ) -> ast.stmt:
        """A function of a block."""
        (result,) = parsed(f"def {name}({arguments}):\n {declarations}", like)
        visited = [self.visit(s) for s in body]
        result.body += [s for v in visited for s in (v if isinstance(v, list) else [v])]  # type: ignore[attr-defined]
        return result

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        names, state, count = self._state(node, [*node.body, *node.orelse], set())
        declarations = self._declarations(names, state)
        yes, no = self._unique("if_body"), self._unique("else_body")
        functions, get, change = self._accessors(node, names, state)
        test = self.visit(node.test)
        return [
            *functions,
            self._block(yes, "", declarations, node.body, node),
            self._block(no, "", declarations, node.orelse, node.orelse[0] if node.orelse else node),
            *parsed(
                f"ag__.if_stmt(test__, {yes}, {no}, {get}, {change}, {tuple(state)!r}, {count})",
                node,
                test__=test,
            ),
        ]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        names, state, _ = self._state(node, node.body, set())
        functions, get, change = self._accessors(node, names, state)
        test, body = self._unique("loop_test"), self._unique("loop_body")
        condition = _unless(node.__dict__.get("flags", []), node.test, node)
        asked = parsed(f"def {test}():\n return test__", node, test__=self.visit(condition))
        return [
            *functions,
            *asked,
            self._block(body, "", self._declarations(names, state), node.body, node),
            *parsed(f"ag__.while_stmt({test}, {body}, {get}, {change}, {tuple(state)!r})", node),
        ]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        names, state, _ = self._state(node, node.body, writes(node.target))
        functions, get, change = self._accessors(node, names, state)
        body, item, extra = self._unique("loop_body"), self._unique("itr"), "None"
        asked: list[ast.stmt] = []
        if flags := node.__dict__.get("flags", []):
            extra = self._unique("extra_test")
            rest = _unless(flags, None, node)
            asked = parsed(f"def {extra}():\n return test__", node, test__=self.visit(rest))
        block = self._block(body, item, self._declarations(names, state), node.body, node)
        # The target may be a tuple or an attribute, which no argument of a function can be.
        target = ast.copy_location(ast.Assign([node.target], ast.Name(item, ast.Load())), node)
        block.body.insert(1, ast.fix_missing_locations(target))  # type: ignore[attr-defined]
        call = f"ag__.for_stmt(iter__, {extra}, {body}, {get}, {change}, {tuple(state)!r})"
        return [*functions, *asked, block, *parsed(call, node, iter__=self.visit(node.iter))]

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        message = node.msg or ast.copy_location(ast.Constant("Assertion error"), node)
        return parsed(
            "ag__.assert_stmt(test__, lambda: message__)",
            node,
            test__=self.visit(node.test),
            message__=self.visit(message),
        )

    # -- expressions ------------------------------------------------------------------------------------

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        values = [self.visit(v) for v in node.values]
        result: ast.expr = values[-1]
        for value in reversed(values[:-1]):
            result = _expression(
                f"ag__.{name}(lambda: first__, lambda: second__)", node, first__=value, second__=result
            )
        return result

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Outside of such functions tensors are equal when they are one and the same."""
        node = self.generic_visit(node)  # type: ignore[assignment]
        name = {ast.Eq: "eq", ast.NotEq: "not_eq"}.get(type(node.ops[0]))
        if name is None or len(node.ops) > 1:
            return node
        return _expression(f"ag__.{name}(a__, b__)", node, a__=node.left, b__=node.comparators[0])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        node.operand = self.visit(node.operand)
        if not isinstance(node.op, ast.Not):
            return node
        return _expression("ag__.not_(value__)", node, value__=node.operand)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        parts = {"test__": node.test, "yes__": node.body, "no__": node.orelse}
        visited = {name: self.visit(part) for name, part in parts.items()}
        return _expression("ag__.if_exp(test__, lambda: yes__, lambda: no__)", node, **visited)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        # `super()` looks at the first argument of the function that it is in, and blocks become functions of their own.
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not (node.args or node.keywords):
            first = self._function.args.args[0].arg if self._function.args.args else "self"
            return _expression(f"super(__class__, {first})", node)
        named = symbol(node.func) or ""
        if named in _AS_THEY_ARE or named.startswith(("ag__.", "pdb.")):
            return self.generic_visit(node)  # type: ignore[return-value]
        node = self.generic_visit(node)  # type: ignore[assignment]
        given = ast.Tuple(node.args, ast.Load())
        options = ast.Call(ast.Name("dict", ast.Load()), [], node.keywords)
        call = _expression(
            "ag__.converted_call(f__, args__, kwargs__)", node, f__=node.func, args__=given, kwargs__=options
        )
        return ast.fix_missing_locations(call)


def _expression(text: str, like: ast.AST, **parts: ast.AST) -> ast.expr:
    (statement,) = parsed(text, like, **parts)
    result: ast.expr = statement.value  # type: ignore[attr-defined]
    return result


def _unless(flags: list[str], test: ast.expr | None, like: ast.AST) -> ast.expr:
    """A condition that holds no longer when a flag is set."""
    terms = [_expression(f"not {flag}", like) for flag in flags]
    terms += [] if test is None else [test]
    if len(terms) == 1:
        return terms[0]
    return ast.copy_location(ast.BoolOp(ast.And(), terms), like)


def convertible(node: ast.FunctionDef) -> bool:
    """Whether a function is no generator."""
    inner = [n for s in node.body for n in _own_nodes(s)]
    return not any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in inner)


def _own_nodes(node: ast.AST) -> list[ast.AST]:
    result = [node]
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _NESTED):
            result += _own_nodes(child)
    return result
