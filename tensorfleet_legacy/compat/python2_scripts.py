"""Scripts of Python 2's days run as they are: their names, modules and methods, and their meaning of `/`.

A file that Python 3 can parse keeps Python 3's meaning, and finds `xrange`, `cPickle`, `dict.iteritems` or an
iterator's `next()` besides; what `map`, `filter` and `zip` give has a length and elements as well, and so have `keys()`;
bytes that are searched for text are text. One that it cannot parse is a program in Python 2: it is translated, `/` of integers
rounds down, and `range`, `map`, `zip` and `keys()` give lists. All this concerns the script and the modules that are its own, never installed packages.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import io
import operator
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from tensorfleet.base import packages
from tensorfleet_legacy.compat.python2 import PARTS, parse

_OLD_METHODS = {
    **{f"{kind}{what}": what for what in ("items", "values", "keys") for kind in ("iter", "view")},
    "xreadlines": "__iter__",
}
_TEXT_METHODS = (
    *("split", "rsplit", "strip", "lstrip", "rstrip", "replace", "startswith", "endswith"),
    *("find", "rfind", "index", "rindex", "count", "partition", "rpartition"),
)
_HAS_OLD_METHODS = re.compile(
    rf"\.\s*({'|'.join(_OLD_METHODS)}|has_key|getchildren|decode|sort\s*\(\s*[^)\s]|next\s*\(\s*\)"
    rf"|(keys|values|items)\s*\(\s*\)\s*[\[+]|({'|'.join(_TEXT_METHODS)})\s*\(\s*[^)\s])"
    r"|\+[^\n]*\.\s*(keys|values|items)\s*\(\s*\)"
)
_OLD_MODULES = {
    "cPickle": "pickle",
    "Queue": "queue",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "httplib": "http.client",
    "ConfigParser": "configparser",
    "StringIO": "io",
    "cStringIO": "io",
    "commands": "subprocess",
    "thread": "_thread",
    "SocketServer": "socketserver",
    "__builtin__": "builtins",
    "copy_reg": "copyreg",
}
_OLD_PARTS = {"xml.etree.cElementTree": "xml.etree.ElementTree"}  # of packages that are still there
_INSTALLED = ("site-packages", "dist-packages")


def compile_script(source: str, path: str) -> tuple[CodeType, bool]:
    """The code of a script, and whether it was one in Python 2."""
    tree, is_old = parse(source, path)
    if is_old:
        tree = ast.fix_missing_locations(_OldMeaning(tree).visit(tree))
    elif _HAS_OLD_METHODS.search(source):
        tree = ast.fix_missing_locations(_OldMethods().visit(tree))
    try:
        return compile(tree, path, "exec"), is_old
    except SyntaxError as error:
        if "global declaration" not in str(error.msg):
            raise
    # Until Python 3.6 a name could be declared global after its first use, and outside of functions.
    return compile(_EarlyGlobals().visit(tree), path, "exec"), is_old


class _EarlyGlobals(ast.NodeTransformer):
    """Declares global names where a function begins."""

    def __init__(self) -> None:
        self._names: list[str] = []  # of the function around

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outer, self._names = self._names, []
        self.generic_visit(node)
        if self._names:
            declared = ast.copy_location(ast.Global(list(dict.fromkeys(self._names))), node.body[0])
            node.body.insert(1 if ast.get_docstring(node, clean=False) is not None else 0, declared)
        self._names = outer
        return node

    def visit_Global(self, node: ast.Global) -> ast.AST:
        self._names += node.names
        return ast.copy_location(ast.Pass(), node)


class _OldMethods(ast.NodeTransformer):
    """Calls of methods that dictionaries and iterators no longer have go through a function that knows what they did."""

    _calls: dict[str, tuple[int, ...]] = {
        **{name: (0,) for name in (*_OLD_METHODS, "next", "getchildren")},
        **{name: (1, 2, 3) for name in _TEXT_METHODS},
        "has_key": (1,),
        "sort": (1,),
        "decode": (0, 1, 2),
    }  # with how many arguments

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        method = node.func
        match node.keywords:
            case [ast.keyword("cmp", compare)] if not node.args:  # `words.sort(cmp=compare)`
                node.args, node.keywords = [compare], []
        if not isinstance(method, ast.Attribute) or node.keywords:
            return node
        if len(node.args) not in self._calls.get(method.attr, ()):
            return node
        return _call("__old_method__", node, method.value, ast.Constant(method.attr), *node.args)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`d.keys()[0]`: a view has no elements by number."""
        self.generic_visit(node)
        node.value = _listed(node.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """`d.items() + e.items()`: views cannot be joined."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Add):
            node.left, node.right = _listed(node.left), _listed(node.right)
        return node


def _listed(node: ast.expr) -> ast.expr:
    """A dictionary's `keys()`, `values()` or `items()` as a list; any other expression as it is."""
    match node:
        case ast.Call(ast.Attribute(owner, "keys" | "values" | "items" as name), [], []):
            return _call("__old_method__", node, owner, ast.Constant(name))
    return node


class _OldMeaning(_OldMethods):
    """The meaning of Python 2 expressions where Python 3 differs."""

    _calls = {
        **_OldMethods._calls,
        **{name: (0,) for name in ("keys", "values", "items")},
    }

    def __init__(self, tree: ast.Module) -> None:
        futures = [
            node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        ]
        self._divides = any(alias.name == "division" for node in futures for alias in node.names)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        for parameter in reversed(node.args.args):
            if parameter.arg.startswith(PARTS) and parameter.annotation is not None:
                target = ast.parse(f"{ast.unparse(parameter.annotation)} = {parameter.arg}").body[0]
                node.body.insert(0, ast.fix_missing_locations(ast.copy_location(target, parameter)))
                parameter.annotation = None
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if self._divides or not isinstance(node.op, ast.Div):
            return node
        return _call("__old_division__", node, node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if self._divides or not isinstance(node.op, ast.Div) or not isinstance(node.target, ast.Name):
            return node
        now = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], _call("__old_division__", node, now, node.value, ast.Constant(True)))


def _call(function: str, place: ast.AST, *arguments: ast.expr) -> ast.Call:
    return ast.copy_location(ast.Call(ast.Name(function, ast.Load()), list(arguments), []), place)


def _old_division(x: Any, y: Any, in_place: bool = False) -> Any:
    """`x / y`: of integers, rounded down."""
    if _is_whole(x) and _is_whole(y):
        return operator.ifloordiv(x, y) if in_place else x // y
    return operator.itruediv(x, y) if in_place else x / y


def _is_whole(x: Any) -> bool:
    if isinstance(x, int):
        return True
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iu"
    return bool(getattr(dtype, "is_integer", False))


def _old_method(owner: Any, name: str, *arguments: Any) -> Any:
    """The result of `owner.name(*arguments)` in Python 2."""
    if name == "next":
        return owner.next() if hasattr(owner, "next") else next(owner)
    if name == "decode" and isinstance(owner, str):
        return owner  # it was bytes; it is text already
    if name in _TEXT_METHODS and isinstance(owner, bytes) and any(isinstance(a, str) for a in arguments):
        owner = owner.decode(errors="surrogateescape")  # what is searched for text is text
    if name == "sort" and isinstance(owner, list):
        return owner.sort(key=functools.cmp_to_key(*arguments))
    if hasattr(owner, name):
        result = getattr(owner, name)(*arguments)
        return list(result) if isinstance(owner, dict) and name in ("keys", "values", "items") else result
    if name == "has_key":
        return arguments[0] in owner
    if name == "getchildren":
        return list(owner)
    return iter(getattr(owner, _OLD_METHODS.get(name, name))())


def _list_of(function: Callable[..., Any]) -> Callable[..., list[Any]]:
    return lambda *arguments: list(function(*arguments))


class _Lazy:
    """The result of `map`, `filter` and `zip`: an iterator, and a list as soon as it is used like one."""

    _function: Callable[..., Any]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._elements: Any = self._function(*arguments, **options)

    def __iter__(self) -> Any:
        while not isinstance(self._elements, list):  # which it may become under way, as by `list`
            try:
                yield next(self._elements)
            except StopIteration:
                return
        yield from self._elements

    def __next__(self) -> Any:
        return next(self._elements)

    def __bool__(self) -> bool:
        return True  # without a look at the elements

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if not isinstance(self._elements, list):
            self._elements = list(self._elements)
        return getattr(self._elements, name)


def _through(name: str) -> Callable[..., Any]:
    return lambda self, *arguments: self.__getattr__(name)(*arguments)


_METHODS = {name for name in dir(list) if not name.startswith("_")} | {
    "__len__",
    "__getitem__",
    "__setitem__",
    "__add__",
}
for _name in _METHODS:
    if _name.startswith("__"):
        setattr(_Lazy, _name, _through(_name))


def _lazy(function: Callable[..., Any]) -> type:
    return type(function.__name__, (_Lazy,), {"_function": staticmethod(function)})


def _open(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
    """`open`, with the mode `U` as well: every kind of line end is a line end, as it is without."""
    plain = mode.replace("U", "")
    return open(file, plain if set(plain) & set("rwax") else f"r{plain}", *arguments, **options)


def _reload(module: ModuleType) -> ModuleType:
    return module if module is sys else importlib.reload(module)


def _cmp(x: Any, y: Any) -> int:
    return (x > y) - (x < y)


def _sorted(elements: Any, compare: Any = None, key: Any = None, reverse: bool = False, **more: Any) -> list:
    """`sorted`, by a function of two elements as well."""
    compare = more.pop("cmp", compare)
    if compare is None:
        return sorted(elements, key=key, reverse=reverse, **more)
    of_two = functools.cmp_to_key(compare)
    by = of_two if key is None else lambda element: of_two(key(element))
    return sorted(elements, key=by, reverse=reverse, **more)


# What a script that mentions them finds, and what one in Python 2 finds instead of Python's own.
_NAMES: dict[str, Any] = {
    "xrange": range,
    "unicode": str,
    "basestring": str,
    "raw_input": input,
    "long": int,
    "unichr": chr,
    "reduce": functools.reduce,
    "cmp": _cmp,
    "file": _open,
    "reload": _reload,
    "sorted": _sorted,
}
_LISTS = {function.__name__: _list_of(function) for function in (range, map, filter, zip)}
_SEQUENCES: dict[str, Any] = {function.__name__: _lazy(function) for function in (map, filter, zip)}
_UNIVERSAL = re.compile(r"""['"](r?b?U|Ur?b?|rUb?)['"]""")  # modes of files
_HELPERS = {"__old_method__": _old_method, "__old_division__": _old_division}


def names_for(source: str, is_old: bool) -> dict[str, Any]:
    """The names in a script's module before its first line."""
    names = {**_NAMES, **(_LISTS if is_old else _SEQUENCES)}
    if _UNIVERSAL.search(source):
        names["open"] = _open
    helpers = _HELPERS if is_old or _HAS_OLD_METHODS.search(source) else {}
    return {**{name: value for name, value in names.items() if name in source}, **helpers}


class ScriptLoader(SourceFileLoader):
    """Loads a module that belongs to a script."""

    def get_code(self, fullname: str) -> CodeType:
        source = importlib.util.decode_source(self.get_data(self.path))
        code, is_old = self._compile(fullname, source)
        module = sys.modules.get(fullname)  # the one that is being loaded, or loaded once more
        if module is not None:
            module.__dict__.update(names_for(source, is_old))
        return code

    def _compile(self, fullname: str, source: str) -> tuple[CodeType, bool]:
        try:
            cached = None if _HAS_OLD_METHODS.search(source) else super().get_code(fullname)
        except SyntaxError:
            cached = None
        return compile_script(source, self.path) if cached is None else (cached, False)


class ScriptFinder(MetaPathFinder):
    """Gives modules that are a script's own to `ScriptLoader`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or not _is_own(spec.origin or ""):
            return None
        spec.loader = ScriptLoader(fullname, str(spec.origin))
        return spec


@functools.cache
def _libraries() -> tuple[str, ...]:
    """Where modules are that are no script's. Not asked of `sysconfig`, which imports while it is asked."""
    standard = os.path.dirname(os.__file__)
    compiled = os.path.join(sys.base_exec_prefix, sys.platlibdir, os.path.basename(standard))
    return (*packages.FOLDERS, *(os.path.join(path, "") for path in (standard, compiled)))


def _is_own(file: str) -> bool:
    """Whether a file is the script's, not an installed package's."""
    return not file.startswith(_libraries()) and not any(part in Path(file).parts for part in _INSTALLED)


class OldModules(MetaPathFinder):
    """For imports by a script that nobody else answers: modules of Python 2, and those beside the importing file."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        importer = _importer()
        if not is_of_a_script(importer):
            return None
        if fullname in (_OLD_MODULES if path is None else _OLD_PARTS):
            return ModuleSpec(fullname, _OldModule())
        if path is not None:
            return None
        file = importer.get("__file__")
        spec = PathFinder.find_spec(fullname, [os.path.dirname(os.path.abspath(file))]) if file else None
        if spec is not None and spec.origin == os.path.abspath(file or ""):
            return None  # a module named after the package that it asks for
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = ScriptLoader(fullname, str(spec.origin))
        return spec


def is_of_a_script(names: dict[str, Any]) -> bool:
    """Whether a module, by its names, is a script or one of its own."""
    loader = getattr(names.get("__spec__"), "loader", None)
    return names.get("__name__") == "__main__" or isinstance(loader, ScriptLoader)


def _importer() -> dict[str, Any]:
    """The names of the module whose import statement is being served."""
    frame = sys._getframe(2)
    while frame.f_back is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame.f_globals


class _OldModule(Loader):
    """A module of Python 2, with all that its successor has."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        successor = importlib.import_module({**_OLD_MODULES, **_OLD_PARTS}[spec.name])
        module.__dict__.update({k: v for k, v in vars(successor).items() if not k.startswith("__")})
        for name, change in _CHANGED.get(spec.name, {}).items():
            setattr(module, name, change(getattr(successor, name)))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Everything is there already."""


def _loading(load: Any) -> Any:
    """The script's reader of pickles, for files of Python 2 too and however they were opened."""

    def read(source: Any, **options: Any) -> Any:
        binary: Any = getattr(source, "buffer", source) if isinstance(source, io.TextIOBase) else source
        return load(binary, **{"encoding": "latin1", **options})

    return read


def _in_memory(text: Any) -> Any:
    """A file in memory, of text or of bytes as what it begins with."""
    return lambda initial="": io.BytesIO(initial) if isinstance(initial, bytes) else text(initial)


# What takes a successor's function and gives that of Python 2.
_CHANGED: dict[str, dict[str, Any]] = {
    "cPickle": {"load": _loading, "loads": _loading},
    "StringIO": {"StringIO": _in_memory},
    "cStringIO": {"StringIO": _in_memory},
}


def install() -> None:
    """From here on modules of scripts are loaded as this file says."""
    if not any(isinstance(finder, ScriptFinder) for finder in sys.meta_path):
        at = next((i for i, f in enumerate(sys.meta_path) if f is PathFinder), len(sys.meta_path))
        sys.meta_path.insert(at, ScriptFinder())
        sys.meta_path.append(OldModules())
