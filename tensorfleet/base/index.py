"""Which module to import at the first use of a name, an op or a collection.

Most modules are imported when something of theirs is first used, so that starting up costs little. The file
`index.txt` of a package lists what each such module registers. `tools/make_index.py` writes it, and a test
compares it with the code.

    tensorfleet.api.train.saver
     name train Saver latest_checkpoint     tf.train.Saver, tf.train.latest_checkpoint ("." stands for tf itself)
     place python.training.saver            a place whose names the module finds by a rule
     op SaveV2 RestoreV2                    ops, or gradients of ops
     collection savers                      how a collection is written into MetaGraphs
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Literal

Kind = Literal["name", "place", "op", "collection"]
_MODULES: dict[Kind, dict[str, list[str]]] = {"name": {}, "place": {}, "op": {}, "collection": {}}


def attach(text: str) -> None:
    """Adds the lines of an `index.txt`."""
    module = ""
    for line in text.splitlines():
        if line[0] != " ":
            module = line
            continue
        kind, *words = line.split()
        table = _MODULES[kind]  # type: ignore[index]
        if kind == "name":
            place, *leaves = words
            words = leaves if place == "." else [f"{place}.{leaf}" for leaf in leaves]
        for word in words:
            table.setdefault(word, []).append(module)


def load(kind: Kind, key: str) -> bool:
    """Imports the modules that register `key`; False when none does, or all of them are imported already."""
    modules = _MODULES[kind].get(key)
    if modules is None:
        return False
    # Another thread may be importing them: `import_module` waits until it has. The entry goes when they are there;
    # a missing optional package is reported at every use, not only at the first.
    for module in modules:
        importlib.import_module(module)
    _MODULES[kind].pop(key, None)
    return True


def load_all(kind: Kind) -> None:
    """Imports every module that registers something of this kind."""
    for key in tuple(_MODULES[kind]):
        load(kind, key)


def listed(kind: Kind) -> Iterable[str]:
    """The keys of modules that are not imported yet."""
    return _MODULES[kind]
