"""Write tensorfleet-stubs/: what editors and type checkers read of the names that are attached to `tf.` at run time.

python tools/make_stubs.py            # writes
python tools/make_stubs.py --check    # exits with 1 when a file would change

A stub imports a name from the module that defines it, so that its types are those of the source. What is made by a
call at run time gets the signature it has then.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import keyword
import shutil
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorfleet.base import index, naming

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tensorfleet-stubs"
# Their names follow rules, or are the many inner ones of TensorFlow: any name in them is right. So it is in
# `tf.contrib.layers.python` and the like.
_OPEN = ("compat.v2", "core", "python", "raw_ops")
# Decorators that type checkers understand.
_CLEAR = {"export", "contextmanager", "contextlib.contextmanager", "functools.cache", "dataclass"}
_PLAIN = {"bool", "bytes", "float", "int", "str"}
_NOTE = "# Written by tools/make_stubs.py.\n"


def main() -> None:
    """Compares or writes the files."""
    texts = made()
    there = {str(p.relative_to(FOLDER)): p.read_text() for p in FOLDER.rglob("*") if p.is_file()}
    stale = sorted(path for path in {*texts, *there} if texts.get(path) != there.get(path))
    if stale and "--check" in sys.argv:
        sys.exit(f"tensorfleet-stubs: out of date: {', '.join(stale)}. Run python tools/make_stubs.py.")
    if stale:
        shutil.rmtree(FOLDER, ignore_errors=True)
        for path, text in texts.items():
            (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
            (FOLDER / path).write_text(text)
    print("changed: " + ", ".join(stale) if stale else "nothing changed")


def made() -> dict[str, str]:
    """The text of each file of the folder."""
    index.load_all("place")
    published = naming.exported()
    names = {n: v for n, v in published.items() if not _within(n) and not keyword.iskeyword(_leaf(n))}
    places = {""}
    for name in (*(f"{place}." for place in (*naming._BORROWS, *naming._FINDERS)), *published):
        parts = name.split(".")
        places.update(".".join(parts[:depth]) for depth in range(1, len(parts)))
    places = {place for place in places - names.keys() if not _within(place)}
    # "partial": what is not here, such as tensorfleet.api.train.adam, is in the package itself.
    texts = {"py.typed": "partial\n"}
    homes = _homes()
    for place in sorted(places):
        inner = sorted(p for p in places if p and p.rpartition(".")[0] == place)
        is_open = _is_open(place) or place in naming._BORROWS or place in naming._FINDERS
        own = {_leaf(n): v for n, v in names.items() if n.rpartition(".")[0] == place}
        folder = place.replace(".", "/")
        is_package = inner or is_open or (ROOT / "tensorfleet" / folder).is_dir()
        path = f"{folder}/__init__.pyi".lstrip("/") if is_package else f"{folder}.pyi"
        texts[path] = _stub(place, inner, own, is_open, homes)
    # `import tensorfleet.compat.v1 as tf`, which is the same module.
    texts["compat/v1.pyi"] = f"{_NOTE}from tensorfleet import *\n"
    return texts


def _leaf(name: str) -> str:
    return name.rpartition(".")[2]


def _is_open(place: str) -> bool:
    return place in _OPEN or _leaf(place) == "python"


def _within(name: str) -> bool:
    parts = name.split(".")
    return any(_is_open(".".join(parts[:depth])) for depth in range(1, len(parts)))


def _stub(place: str, inner: list[str], own: dict[str, Any], is_open: bool, homes: _Homes) -> str:
    package = f"tensorfleet.{place}".rstrip(".")
    imports = {f"from {package} import {_leaf(child)} as {_leaf(child)}" for child in inner}
    body = []
    for name, value in sorted(own.items()):
        needed, text = _entry(name, value, homes)
        imports.update(needed)
        body.extend(text)
    if is_open:
        body.append("def __getattr__(name: str) -> typing.Any: ...")
    for module in ("builtins", "typing"):
        if any(f"{module}." in line for line in body):
            imports.add(f"import {module}")
    return _NOTE + "".join(f"{line}\n" for line in [*sorted(imports), *body])


def _entry(name: str, value: object, homes: _Homes) -> tuple[list[str], list[str]]:
    """The imports that a name needs, and its definition if it is not simply imported."""
    if isinstance(value, types.ModuleType):
        place, _, leaf = value.__name__.rpartition(".")
        return _imported(place, leaf, name)
    if not isinstance(value, types.FunctionType | functools.partial | type):
        return _constant(name, value, homes)
    home = homes.get(value)
    if home is not None and not (isinstance(value, type) and _makes_its_init(value, homes)):
        return _imported(*home, name)
    if isinstance(value, type):
        return _class(name, value, homes)
    return [], [f"def {name}({_parameters(value)}) -> typing.Any: ..."]


def _imported(module: str, there: str, here: str) -> tuple[list[str], list[str]]:
    """A checker takes `import X as X` for public, and `import X as Y` for private."""
    source = f"from {module} import" if module else "import"
    if there == here:
        return [f"{source} {here} as {here}"], []
    return [f"{source} {there} as _{here}"], [f"{here} = _{here}"]


def _class(name: str, value: type[Any], homes: _Homes) -> tuple[list[str], list[str]]:
    """A class that checkers cannot read, or only without its `__init__`: what they can read of it, and that."""
    known = next((home for base in value.__mro__ if (home := homes.get(base))), None)
    text = [f"    def __init__({_parameters(value.__init__)}) -> None: ..."]
    if known is None:
        return [], [f"class {name}(typing.Any):", *text]
    return [f"from {known[0]} import {known[1]} as _{name}"], [f"class {name}(_{name}):", *text]


def _constant(name: str, value: object, homes: _Homes) -> tuple[list[str], list[str]]:
    kind = type(value)
    if kind.__name__ in _PLAIN:
        return [], [f"{name}: builtins.{kind.__name__}"]
    home = homes.get(kind)
    if home is None:
        return [], [f"{name}: typing.Any"]
    return [f"from {home[0]} import {home[1]} as _{home[1]}"], [f"{name}: _{home[1]}"]


def _makes_its_init(value: type[Any], homes: _Homes) -> bool:
    """Whether what makes an instance of a class is itself made by a call, as `__init__ = as_keras(...)` is."""
    owner = next(c for c in value.__mro__ if "__init__" in vars(c))
    home = homes.get(owner)
    definition = _definitions(home[0]).get(home[1]) if home else None
    return isinstance(definition, ast.ClassDef) and any(
        isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__init__"
        for line in definition.body
    )


def _parameters(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function, follow_wrapped=False)
    if any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
        signature = inspect.signature(function)
    return ", ".join(_listed(list(signature.parameters.values())))


def _listed(parameters: list[inspect.Parameter]) -> list[str]:
    texts = []
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not any(
            q.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL) for q in parameters[:i]
        ):
            texts.append("*")
        star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        typed = p.name if p.name == "self" else f"{star}{p.name}: {_annotation(p)}"
        texts.append(typed if p.default is p.empty else f"{typed} = ...")
        if p.kind is p.POSITIONAL_ONLY and not any(q.kind is p.POSITIONAL_ONLY for q in parameters[i + 1 :]):
            texts.append("/")
    return texts


def _annotation(parameter: inspect.Parameter) -> str:
    """The annotation if it needs no import, else Any."""
    words = str(parameter.annotation).split(" | ")
    if not {*words} <= {*_PLAIN, "None"}:
        return "typing.Any"
    return " | ".join(word if word == "None" else f"builtins.{word}" for word in words)


class _Homes:
    """Where functions and classes are defined by a `def` or `class` that type checkers can read."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[str, str]] = {}

    def add(self, module: types.ModuleType) -> None:
        definitions = _definitions(module.__name__)
        for name, value in vars(module).items():
            if name in definitions and _is_clear(definitions[name]):
                # A function that is published with a wrapper around it has the arguments it is defined with.
                published = naming._WRAPPED.get(value, value)
                self._found.setdefault(id(published), (module.__name__, name))

    def get(self, value: object) -> tuple[str, str] | None:
        return self._found.get(id(value))


def _homes() -> _Homes:
    homes = _Homes()
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.startswith(("tensorfleet.", "tensorfleet_legacy.")) and file is not None:
            homes.add(module)
    return homes


@functools.cache
def _definitions(module: str) -> dict[str, ast.stmt]:
    """The functions and classes at the top of a module's source."""
    file = Path(importlib.import_module(module).__file__ or "")
    stub = file.with_suffix(".pyi")
    tree = ast.parse((stub if stub.exists() else file).read_text())
    return {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def _is_clear(definition: ast.stmt) -> bool:
    if isinstance(definition, ast.ClassDef):
        return True
    assert isinstance(definition, ast.FunctionDef)
    return all(ast.unparse(d).partition("(")[0] in _CLEAR for d in definition.decorator_list)


if __name__ == "__main__":
    main()
