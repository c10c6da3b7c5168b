"""Runs a script in this process as `python script.py` would, with `import tensorflow` meaning TensorFleet."""

from __future__ import annotations

import atexit
import builtins
import os
import re
import shutil
import sys
import tempfile
import threading
import tokenize
import traceback
import warnings
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import NoReturn

from tensorfleet.base import packages, settings
from tensorfleet.cli.scripts import alias
from tensorfleet.cli.scripts.annex import old_scripts
from tensorfleet.cli.scripts.bootstrap import CLUSTER_FILE
from tensorfleet.cli.scripts.hostnames import take_host
from tensorfleet.cli.scripts.packages import places_of

# What Python says about statements that were right in Python 2.
_OLD_SYNTAX = re.compile(
    r"Missing parentheses in call to '(print|exec)'|multiple exception types must be parenthesized"
    r"|parameters cannot be parenthesized|leading zeros in decimal integer|invalid decimal literal|inconsistent use of tabs"
)
_OLD_LINE = re.compile(
    r"^\s*(print|exec)\s+[^\s(=]|^\s*except\s+\w+\s*,|^\s*raise\s+\w+\s*,|<>|\b0[0-7]+\b|\b\d+[lL]\b|\bur['\"]|`"
)


def run_script(path: str, arguments: list[str], use_alias: bool = True) -> None:
    """Runs the script at `path` as the main program. Returns when it does; its exceptions pass through."""
    if use_alias:
        alias.install()
        _be_found_as_python()
        _say_nothing_of_age()
        os.environ[settings.ENDS_AT_JOIN.name] = "1"
    take_host()
    if not Path(path).is_file():
        _give_up(2, f"tensorfleet: no such script: {path} (in {os.getcwd()})")
    sys.argv = [path, *_with_cluster_file(arguments)]
    _show_errors_of(path)
    module = ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=builtins, __spec__=None, __cached__=None)
    code = _compile(path, module, use_alias)
    # Pickle and multiprocessing look up classes of a script in __main__.
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        if _training_is_over(error):
            print(f"tensorfleet: {error}", file=sys.stderr)
        elif _is_after_the_end():
            _note(error, path)
        else:
            if isinstance(error, SystemExit) and not error.code:
                _serve_on()
            raise
    else:
        _serve_on()


def _with_cluster_file(arguments: list[str]) -> list[str]:
    """The arguments, with a file of the cluster's tasks where one stands for it; it goes with this process."""
    if not any(CLUSTER_FILE in argument for argument in arguments):
        return arguments
    with tempfile.NamedTemporaryFile("w", prefix="cluster-", suffix=".json", delete=False) as file:
        file.write(os.environ.get("CLUSTER_SPEC", "{}"))
    atexit.register(Path(file.name).unlink, missing_ok=True)
    return [argument.replace(CLUSTER_FILE, file.name) for argument in arguments]


def _be_found_as_python() -> None:
    """`python train.py`, as a script starts tasks of its own, is the Python that runs the script."""
    folder = os.path.dirname(sys.executable)
    if (
        os.path.exists(os.path.join(folder, "python"))
        and os.path.dirname(shutil.which("python") or "") != folder
    ):
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])


def _say_nothing_of_age() -> None:
    """Hints that a script is old are for its author, and it is not edited: -W or PYTHONWARNINGS asks for them."""
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="__main__")
        warnings.filterwarnings("ignore", category=SyntaxWarning)


def _training_is_over(error: BaseException) -> bool:
    """Whether the script waited for a chief that has ended in good order. In TensorFlow it would wait for ever."""
    roster = sys.modules.get("tensorfleet.state.queue_members")
    return roster is not None and str(getattr(error, "message", "")).startswith(roster.OVER)


def _is_after_the_end() -> bool:
    """Whether the script's server has ended with its cluster. In TensorFlow its `join` would not have returned."""
    servers = sys.modules.get("tensorfleet.cluster.process_servers")
    return servers is not None and servers.any_has_ended()


def _serve_on() -> None:
    """Where this is a parameter server of a run, the script's end is not yet its own."""
    server = sys.modules.get("tensorfleet.cluster.server")
    if server is not None:
        server.serve_on()


def _note(error: BaseException, path: str) -> None:
    """Says in one line what went wrong after the end; an exit is none."""
    if isinstance(error, SystemExit):
        return
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    where = f" ({path}:{lines[-1]})" if lines else ""
    text = str(error).partition("\n")[0]
    print(
        f"tensorfleet: the run is over; code after server.join() raised {type(error).__name__}: {text}{where}. "
        "TensorFlow never reaches this code.",
        file=sys.stderr,
    )


def _compile(path: str, module: ModuleType, use_alias: bool) -> CodeType:
    """The script's code; the names of Python 2 that it uses are put into its module."""
    try:
        with tokenize.open(path) as file:
            source = file.read()
        package, sys.path[:0] = places_of(Path(path), source)
        if package:
            module.__package__ = package
        if not use_alias:
            return compile(source, path, "exec")
        old_scripts().install_script_loader()
        code, is_old = old_scripts().compile_script(source, path)
    except SyntaxError as error:
        report = _about_old_syntax(error)
        if report is None:
            raise
        _give_up(1, report)
    module.__dict__.update(old_scripts().names_for(source, is_old))
    if is_old:
        print(
            f"tensorfleet: {path} is Python 2. Translating it to Python 3; see docs/migrating.md.",
            file=sys.stderr,
        )
    return code


def _about_old_syntax(error: SyntaxError) -> str | None:
    """A report on a syntax error that Python 2 would not have seen as one; None for any other."""
    line = error.text or ""
    if not (_OLD_SYNTAX.search(error.msg or "") or _OLD_LINE.search(line)):
        return None
    where = f"{error.filename}:{error.lineno}"
    return (
        f"{where}: this is Python 2, and TensorFleet runs on Python {sys.version_info[0]}.\n"
        f"    {line.strip()}\n"
        f"Convert it first, for example with `2to3 -w {error.filename}` (Python 3.12 and older) or `modernize`."
    )


def _about_old_text(error: BaseException) -> str | None:
    """What to do about text that the script takes for bytes."""
    if isinstance(error, AttributeError) and isinstance(error.obj, str) and error.name == "decode":
        return "In Python 3 a str is text already: leave out .decode(...). Python 2 made it from bytes."
    return None


def _show_errors_of(path: str) -> None:
    """Tracebacks begin at the script, not at what started it, and say when Python 2 is the reason."""

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            return
        start = trace
        while start is not None and start.tb_frame.f_code.co_filename != path:
            start = start.tb_next
        report = traceback.TracebackException(kind, error, start or trace)
        report.stack = traceback.StackSummary.from_list(f for f in report.stack if not _is_ours(f.filename))
        old = _about_old_syntax(error) if isinstance(error, SyntaxError) else _about_old_text(error)
        text = report.format() if report.stack else report.format_exception_only()
        sys.stderr.write("".join(text) + (f"{old}\n" if old else ""))

    sys.excepthook = show


def _is_ours(file: str) -> bool:
    """Whether a frame is of what starts scripts and loads their modules, which is nothing to a user."""
    core, annex = packages.FOLDERS
    starts = (
        os.path.join(core, "cli", ""),
        os.path.join(annex, "compat", ""),
        os.path.join(core, "__main__.py"),
    )
    return file.startswith(("<frozen ", *starts))


def _give_up(code: int, message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(code)
