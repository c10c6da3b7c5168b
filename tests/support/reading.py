"""The pages of the documentation, taken apart: fenced blocks with the remark before them, headings, links."""

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
_FENCE = re.compile(
    r"^(?:<!-- (?P<remark>[^\n]*?) -->\n+)?(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=fence)$",
    re.M | re.S,
)


def tool(name: str) -> ModuleType:
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the HTML comment right above it, where it is."""

    page: Path
    line: int
    language: str
    code: str
    remark: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def not_run(self) -> str:
        """Why this block cannot be run, if it says so."""
        return self.remark.partition("not run: ")[2]


def blocks_of(page: Path) -> list[Block]:
    """A page's fenced blocks in order."""
    text = page.read_text()
    return [
        Block(
            page,
            text.count("\n", 0, m.start("fence")) + 1,
            m["language"].strip(),
            m["code"],
            (m["remark"] or "").strip(),
        )
        for m in _FENCE.finditer(text)
    ]


def pages_of_the_site() -> list[Path]:
    """README.md and everything under docs/."""
    return [README, *sorted(DOCS.rglob("*.md"))]


def without_code(text: str) -> str:
    """A page without fenced blocks, comments and inline code: what is left can hold links."""
    text = re.sub(r"<!--.*?-->", "", _FENCE.sub("", text), flags=re.S)
    return re.sub(r"``.+?``|`[^`\n]+`", "", text)


def headings_of(page: Path) -> list[str]:
    """The headings as links name them: as GitHub does, which is as the site does."""
    result: list[str] = []
    for heading in re.findall(r"^#+ (.*)$", _FENCE.sub("", page.read_text()), re.M):
        words = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        result.append(words if words not in result else f"{words}-{result.count(words)}")
    return result


def links_of(page: Path) -> list[str]:
    """Where the links and pictures of a page point to."""
    return re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text()))
