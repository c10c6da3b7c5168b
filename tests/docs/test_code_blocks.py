"""Every code block of README.md and docs/ is run, or checked as far as it can be.

- `python`: the blocks of a page that begin with `import tensorfleet as tf` each start a program; those that follow
  go on with it. A program runs in a process and a folder of its own, and must end well, or with the error that is
  shown. `print(...)  # text` must print that text. Ports 2222 and up stand for free ones.
- `text` after a program, with the remark `prints` or `fails with`: just that is what it prints, or how its error ends.
- `console`: lines that begin with `$ ` are run, in a folder with the examples and the scripts that the page shows;
  what is shown below each is what it prints, whatever the numbers, with `...` for lines left out.
- `sh`: commands that would take long or need more than this machine: their options, targets and files exist.
- any block with the remark `file: train.py`: a file for the commands of the page.

A block that cannot be run says why in a comment above it: `<!-- not run: needs two machines -->`.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
import typer.main

from tensorfleet.cli.command import app
from tensorfleet.testing.cluster import free_ports
from tests.support.reading import ROOT, Block, blocks_of, pages_of_the_site

pytestmark = pytest.mark.slow  # left out by `make quick`

SECONDS = 240
PAGES = pages_of_the_site()
KNOWN = {"python", "text", "console", "sh", "yaml", "diff", "dockerfile"}
COMMANDS = typer.main.get_command(app)
START = "import tensorfleet as tf\n"


def pages_with(*languages: str) -> list[Path]:
    return [page for page in PAGES if any(b.language in languages and not b.not_run for b in blocks_of(page))]


def by_page(page: Path) -> str:
    return str(page.relative_to(ROOT))


def title(block: Block) -> str:
    """The file that a block is, if it is one."""
    return block.remark.partition("file: ")[2]


def environment(folder: Path) -> dict[str, str]:
    unwanted = ("TENSORFLEET_", "TF_CONFIG", "COLUMNS")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {
        **clean,
        "HOME": str(folder),
        "TENSORFLEET_STATE": str(folder / "state"),
        "TENSORFLEET_DASHBOARD": "off",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / f"tensorfleet-tests-{os.getuid()}"),
    }


class Ports:
    """Ports that nobody has, for those that a page names; and back, in what is printed."""

    def __init__(self, page: Path) -> None:
        named = sorted(set(re.findall(r"(?<=:)22\d\d\b", page.read_text())))
        self._taken = dict(zip(named, map(str, free_ports(len(named))), strict=True))

    def put(self, code: str) -> str:
        return re.sub(r"(?<=:)22\d\d\b", lambda m: self._taken[m[0]], code)

    def take_back(self, printed: str) -> str:
        for named, taken in self._taken.items():
            printed = re.sub(rf"\b{taken}\b", named, printed)
        return printed


def programs(page: Path) -> Iterator[tuple[list[Block], Block | None]]:
    """The programs of a page, each with the block that shows what it prints."""
    blocks = [b for b in blocks_of(page) if not b.not_run and not title(b)]
    results: list[tuple[list[Block], Block | None]] = []
    for block in blocks:
        if block.language == "python":
            if START in block.code or not results:
                results.append(([], None))
            results[-1][0].append(block)
        elif block.remark in ("prints", "fails with"):
            assert results and results[-1][1] is None, f"{block.place}: a program's output is shown once"
            results[-1] = (results[-1][0], block)
    yield from results


def run_python(code: str, folder: Path) -> subprocess.CompletedProcess:
    (folder / "train.py").write_text(code)
    return subprocess.run(
        [sys.executable, str(folder / "train.py")],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@pytest.mark.parametrize("page", pages_with("python"), ids=by_page)
def test_programs_run_and_print_what_the_page_shows(page: Path, tmp_path: Path):
    ports = Ports(page)
    for number, (blocks, shown) in enumerate(programs(page)):
        folder = tmp_path / str(number)
        folder.mkdir()
        code = "\n".join(b.code for b in blocks)
        done = run_python(ports.put(code), folder)
        where = f"{blocks[0].place}\n{done.stdout}\n{done.stderr}"
        if shown is not None and shown.remark == "fails with":
            assert done.returncode == 1, where
            printed = done.stderr[done.stderr.index("tensorfleet.errors.") :]
            assert ports.take_back(printed.replace(str(folder), "/home/me")) == shown.code, where
            continue
        assert done.returncode == 0, where
        if shown is not None:
            assert done.stdout == shown.code, where
        in_a_row = done.stdout + ", ".join(done.stdout.splitlines())  # as a comment beside a loop shows it
        for text in re.findall(r"^ *print\(.*\)  # (.+)$", code, re.M):
            assert re.search(".*".join(map(re.escape, text.split("..."))), in_a_row), where


def looks_like(shown: str, printed: str) -> bool:
    """Whether the output is what is shown: numbers may differ, `...` stands for any lines, `…` for any text."""
    parts = []
    for line in shown.rstrip().splitlines():
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
            continue
        pieces = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?|…| +)", line)
        parts.append("".join(_piece(piece) for piece in pieces) + r"[ ]*\n")
    return re.fullmatch("".join(parts), printed.rstrip() + "\n") is not None


def _piece(piece: str) -> str:
    if piece == "…":
        return ".*"
    if piece[:1].isdigit():
        return r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
    return " +" if piece[:1] == " " else re.escape(piece)


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown."""
    yield from re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.code, re.M)


def run_command(line: str, folder: Path) -> subprocess.CompletedProcess:
    """Runs a line in a shell in which `tensorfleet` and `python` are those of this environment."""
    names = folder / "bin"
    if not names.exists():
        names.mkdir()
        for name, command in (("tensorfleet", "-m tensorfleet"), ("python", "")):
            (names / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {command} "$@"\n')
            (names / name).chmod(0o755)
    clean = environment(folder)
    clean["PATH"] = os.pathsep.join([str(names), clean["PATH"]])
    return subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env={**clean, "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )


@pytest.mark.parametrize("page", pages_with("console"), ids=by_page)
def test_commands_run_and_print_what_the_page_shows(page: Path, tmp_path: Path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    ports = Ports(page)
    for block in blocks_of(page):
        if title(block):
            (tmp_path / title(block)).write_text(ports.put(block.code))
        if block.language != "console" or block.not_run:
            continue
        for command, output in commands(block):
            done = run_command(command, tmp_path)
            printed = done.stdout.replace(str(tmp_path), "/home/me").replace(str(ROOT), "/home/me")
            assert looks_like(output, printed), f"{block.place}: {command}\n{printed}"


def logical_lines(block: Block) -> Iterator[list[str]]:
    """The commands of a shell block, as words."""
    for line in block.code.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=";&|")
        words.whitespace_split = True
        for is_pipe, command in groupby(words, lambda word: word in ("|", "&", ";", "&&")):
            if not is_pipe:
                yield list(command)


def check_command(words: list[str]) -> None:
    """Raises when a command names a target, option or file that is not there."""
    words = list(words)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    if not words:
        return
    program, *rest = words
    if program == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)
        unknown = [w for w in rest if w not in targets and not re.fullmatch(r"[A-Z]+=\S*", w)]
        assert not unknown, f"no such target: {unknown}"
    elif program.endswith("tensorfleet"):
        command = COMMANDS.commands[rest[0]]
        if "--help" not in rest:
            command.make_context(rest[0], rest[1:], resilient_parsing=True)
            known = {name for p in command.params for name in p.opts} | {"--help", "-h"}
            script = next((i for i, w in enumerate(rest[1:], 1) if w.endswith(".py")), len(rest))
            unknown = [w for w in rest[1:script] if w.startswith("--") and w.partition("=")[0] not in known]
            assert not unknown, f"no such option: {unknown}"
    elif "python" in program:
        scripts = [w for w in rest if w.endswith(".py") and "/" in w]
        assert all((ROOT / script).exists() for script in scripts), scripts


@pytest.mark.parametrize("page", pages_with("sh"), ids=by_page)
def test_commands_that_take_long_name_what_exists(page: Path):
    for block in blocks_of(page):
        if block.language == "sh" and not block.not_run:
            for words in logical_lines(block):
                check_command(words)


@pytest.mark.parametrize("page", PAGES, ids=by_page)
def test_every_block_says_what_it_is(page: Path):
    assert [b.place for b in blocks_of(page) if b.language not in KNOWN] == []


def test_few_blocks_are_not_run_and_each_says_why():
    excused = [b for page in PAGES for b in blocks_of(page) if b.not_run]
    assert len(excused) <= 12, [b.place for b in excused]
    assert all(len(b.not_run.split()) >= 2 for b in excused)


def test_twelve_line_program_has_twelve_lines():
    program = next(b for b in blocks_of(ROOT / "README.md") if b.language == "python")
    assert len([line for line in program.code.splitlines() if line.strip()]) == 12


def test_shown_output_is_compared_by_its_words():
    assert looks_like("step 12 loss 0.5\n...\ndone\n", "step 7 loss 1e-05\na\nb\ndone\n")
    assert looks_like("at … end\n", "at 10.0.0.1:99 end\n")
    assert not looks_like("step 12\n", "step 12 of 3\n")
    assert not looks_like("done\n", "done\nmore\n")
