"""Write docs/compatibility.md: which public names of TensorFlow 1.15 the package has, module by module.

    python tools/make_compatibility.py

The names of 1.15 come from tests/data/api_1.15.tsv, ours from the package as it is now.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tensorfleet.base import naming as api

ROOT = Path(__file__).resolve().parent.parent
NAMES = ROOT / "tests" / "data" / "api_1.15.tsv"
PAGE = ROOT / "docs" / "compatibility.md"
INTRODUCTION = """\
# Which names of TensorFlow 1.15 are here

Written by `python tools/make_compatibility.py` from the list of TensorFlow 1.15's public names and from
the package itself; a test fails when it is out of date. A name counts as supported when `tf.<name>` is there;
[a test](../tests/base/test_naming.py) compares its arguments with 1.15's and lists what differs on purpose. Methods of
classes and fields of messages are not counted.
"""


@dataclass
class Module:
    """The names of one module of TensorFlow 1.15."""

    name: str
    supported: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        return f"tf.{self.name}" if self.name else "tf"

    @property
    def size(self) -> int:
        return len(self.supported) + len(self.missing)


def public_names() -> Iterator[tuple[str, str]]:
    """Every name of 1.15 with its kind."""
    for line in NAMES.read_text().splitlines():
        if line and not line.startswith("#"):
            name, kind = line.split("\t")[:2]
            yield name, kind


def compare(ours: Collection[str]) -> list[Module]:
    """The modules of 1.15 that hold names of their own, in alphabetical order."""
    kinds = dict(public_names())
    modules = {name: Module(name) for name, kind in kinds.items() if kind == "module"}
    modules[""] = Module("")
    for name, kind in sorted(kinds.items(), key=lambda pair: (pair[0].lower(), pair[0])):
        parent, _, last = name.rpartition(".")
        if kind == "module" or parent not in modules:
            continue  # what belongs to a class or a message comes with it
        module = modules[parent]
        (module.supported if name in ours else module.missing).append(last)
    return [modules[name] for name in sorted(modules) if modules[name].size]


def listed(names: list[str]) -> str:
    return textwrap.fill(", ".join(f"`{name}`" for name in names), 110, break_on_hyphens=False)


def section(module: Module) -> str:
    """One module: what is missing in full view, what is there folded away."""
    parts = [f"## {module.title}"]
    if module.supported:
        summary = f"<details><summary>{len(module.supported)} supported</summary>"
        parts.append(f"{summary}\n\n{listed(module.supported)}\n\n</details>")
    if module.missing:
        parts.append(f"{len(module.missing)} missing: {listed(module.missing)}")
    return "\n\n".join(parts)


def summary(modules: list[Module]) -> str:
    lines = ["| module | names | supported | missing |", "|---|--:|--:|--:|"]
    for m in modules:
        link = f"[{m.title}](#{m.title.replace('.', '').lower()})"
        lines.append(f"| {link} | {m.size} | {len(m.supported)} | {len(m.missing)} |")
    names, supported = sum(m.size for m in modules), sum(len(m.supported) for m in modules)
    lines.append(f"| **all** | **{names}** | **{supported}** | **{names - supported}** |")
    return "\n".join(lines)


def page() -> str:
    """The whole file."""
    found = compare(set(api.exported()))
    return "\n\n".join([INTRODUCTION.rstrip(), summary(found), *map(section, found)]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"Wrote {PAGE.relative_to(ROOT)}.")
