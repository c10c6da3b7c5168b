"""Write index.txt of both packages: what each module registers that is imported at its first use.

python tools/make_index.py            # writes
python tools/make_index.py --check    # exits with 1 when a file would change
"""

from __future__ import annotations

import collections
import importlib
import pkgutil
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("tensorfleet", "tensorfleet_legacy")
# Modules that register nothing, cannot be imported without effects on the process, or register ops for tests only.
_SKIPPED = (
    "tensorfleet.cli",
    "tensorfleet.__main__",
    "tensorfleet.testing",
    "tensorfleet.names",
    "tensorfleet_legacy.testing.test_ops",
)
# tf. name, op, ... -> module, in the order of the imports.
_Found = dict[str, dict[str, dict[str, None]]]


def main() -> None:
    """Compares or writes the files."""
    stale = []
    for package, text in made().items():
        file = ROOT / package / "index.txt"
        if not file.exists() or file.read_text() != text:
            stale.append(str(file.relative_to(ROOT)))
            if "--check" not in sys.argv:
                file.write_text(text)
    if stale and "--check" in sys.argv:
        sys.exit(f"{', '.join(stale)}: out of date. Run python tools/make_index.py.")
    print("changed: " + ", ".join(stale) if stale else "nothing changed")


def made() -> dict[str, str]:
    """The text of each package's index.txt."""
    for name in PACKAGES:
        # Bare packages: their own __init__ would load the index that is being made.
        bare = types.ModuleType(name)
        bare.__path__ = [str(ROOT / name)]
        sys.modules[name] = bare
    found: _Found = collections.defaultdict(lambda: collections.defaultdict(dict))
    pending = _walk()
    _record(found, pending)
    names = importlib.import_module("tensorfleet.names")
    names.publish_base()
    for module in names.EAGER.split():
        importlib.import_module(module)
    eager = set(sys.modules)
    while pending:
        importlib.import_module(pending.pop(0))
    texts = {}
    for package in PACKAGES:
        modules = sorted(m for m in found if m.split(".")[0] == package and m not in eager)
        texts[package] = "".join(_lines(m, found[m]) for m in modules)
    return texts


def _walk() -> list[str]:
    names = []
    for package in PACKAGES:
        for info in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if (
                not info.name.startswith(_SKIPPED)
                and "_pb2" not in info.name
                and ".stand_in" not in info.name
            ):
                names.append(info.name)
    return names


def _record(found: _Found, pending: list[str]) -> None:
    """Makes what registers things note which module called it."""
    naming = importlib.import_module("tensorfleet.base.naming")
    registry = importlib.import_module("tensorfleet.graph.registry")
    meta_graph = importlib.import_module("tensorfleet.graph.meta_graph")

    def note(owner: types.ModuleType, function: str, kind: str, keys: Callable[..., Iterable[str]]) -> None:
        original = getattr(owner, function)

        def noting(*args: Any, **kwargs: Any) -> Any:
            for key in keys(*args):
                found[_caller()][kind][key] = None
            return original(*args, **kwargs)

        setattr(owner, function, noting)

    known = {"name": (naming._NAMES, naming._LAZY), "op": (registry._TABLE,)}

    def import_until_known(kind: str, key: str) -> None:
        """Stands for the index, which is being made."""
        while pending and kind in known and not any(key in table for table in known[kind]):
            importlib.import_module(pending.pop(0))

    vars(importlib.import_module("tensorfleet.base.index"))["load"] = import_until_known
    note(naming, "publish", "name", lambda _, *names: names)
    note(naming, "publish_lazily", "name", lambda _, *names: names)
    note(naming, "publish_replaceable", "name", lambda name, *_: [name])
    note(naming, "publish_module", "place", lambda place, *_: [place])
    note(naming, "publish_finder", "place", lambda place, *_: [place])
    note(registry, "op", "op", lambda name, *_: [name])
    note(registry, "gradient", "op", lambda *names: names)
    note(registry, "not_differentiable", "op", lambda *names: names)
    note(meta_graph, "register_proto_function", "collection", lambda name, *_: [name])


def _caller() -> str:
    """The module that is being imported and called what is recorded."""
    frame = sys._getframe(2)
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals["__name__"])


def _lines(module: str, kinds: dict[str, dict[str, None]]) -> str:
    places: dict[str, list[str]] = {}
    for name in sorted(kinds.get("name", ())):
        place, _, leaf = name.rpartition(".")
        places.setdefault(place or ".", []).append(leaf)
    lines = [f" name {place} {' '.join(leaves)}" for place, leaves in places.items()]
    lines += [f" {k} {' '.join(sorted(kinds[k]))}" for k in ("place", "op", "collection") if k in kinds]
    return "\n".join([module, *lines, ""])


if __name__ == "__main__":
    main()
