"""`tensorfleet debug`: looks into a running task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

_RUN = "Name of the run, as listed by `ps`, or grpc://host:port of any task. Leave it out if there is only one run."


class _Task(TyperGroup):
    """Takes the task, and perhaps the run, before the action: `debug [RUN] TASK ACTION`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the words before the action into the context."""
        actions = set(self.commands)
        before = []
        rest = list(args)
        while rest and not rest[0].startswith("-") and rest[0] not in actions:
            before.append(rest.pop(0))
        if before and not (rest and rest[0] in (*actions, "--help", "-h")):
            self._no_action(ctx, before)
        if len(before) > 2 or (
            rest and rest[0] in actions and not before and not {"-h", "--help"} & set(rest)
        ):
            ctx.fail(
                "Write `tensorfleet debug [RUN] TASK ACTION`, such as `tensorfleet debug digits worker/1 stack`."
            )
        ctx.obj = before
        if (
            rest and rest[0] in actions
        ):  # the words stand before the action, also in the usage that help shows
            ctx.info_name = " ".join(["debug", *(before or ["[RUN]", "TASK"])])
        return super().parse_args(ctx, rest)

    def _no_action(self, ctx: typer.Context, before: list[str]) -> None:
        given = f"{before[-1]!r} is not an action." if len(before) > 1 else "No action."
        ctx.fail(f"{given} Actions: {', '.join(self.commands)}.")


app = typer.Typer(
    cls=_Task,
    no_args_is_help=True,
    subcommand_metavar="[RUN] TASK ACTION [OPTIONS]",
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _debug() -> None:
    """Look into a running task: stacks, tensors, numeric checks, a debugger, a profile.

    `tensorfleet debug digits worker/1 stack` prints what every thread of a task does. RUN is a name listed by
    `tensorfleet ps`, or `grpc://host:port` of any task; leave it out if there is only one run. The log of the task
    says that somebody looked.
    """


def _questions(ctx: typer.Context) -> Any:
    from tensorfleet.cli.debugging.questions import questions_to

    return questions_to(list(ctx.obj))


@app.command()
def stack(
    ctx: typer.Context,
    every_frame: Annotated[
        bool, typer.Option("--all", help="Print the calls of libraries and of TensorFleet too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print all threads, the step each is in, and what it waits for.

    Lines that begin with `>` are in your own files. SIGUSR1 writes the same into the log of a task.
    """
    from tensorfleet.cli.debugging.stack import print_stacks

    print_stacks(_questions(ctx), every_frame, as_json)


@app.command()
def watch(
    ctx: typer.Context,
    tensors: Annotated[
        list[str], typer.Argument(metavar="TENSOR...", help="Names such as dense/Relu:0, or of variables.")
    ],
    stats: Annotated[bool, typer.Option("--stats", help="Print statistics instead of values.")] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write each value to DIR as a .npy file.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, max=100_000, help="Watch so many steps.")] = 1,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="Give up after so many seconds without all steps.")
    ] = 60.0,
) -> None:
    """Print values of tensors in the coming steps of the task.

    The script need not be changed, and its steps compute the same as without the watch. Only tensors that a step
    computes anyway are shown. Ctrl-C withdraws the watch.

    `tensorfleet debug digits worker/1 watch dense/Relu:0 --stats --steps 5`
    """
    from tensorfleet.cli.debugging.watch import watch_tensors

    watch_tensors(_questions(ctx), tensors, stats, save, steps, seconds)


@app.command()
def numerics(
    ctx: typer.Context,
    steps: Annotated[int, typer.Option(min=1, max=100_000, help="Check so many steps of the task.")] = 100,
    seconds: Annotated[float, typer.Option(min=0.1, max=86_400, help="Stop after so many seconds.")] = 60.0,
    alone: Annotated[
        bool, typer.Option("--alone", help="Check this task only, not the others of its cluster.")
    ] = False,
) -> None:
    """Find the first operation that makes a NaN or an infinity.

    Each checked step also runs operation by operation, on copies of what it works on. Its results stay the same;
    it takes longer. All tasks of the cluster are checked.
    """
    from tensorfleet.cli.debugging.numerics import check_numerics

    check_numerics(_questions(ctx), steps, seconds, alone)


@app.command()
def attach(
    ctx: typer.Context,
    pdb: Annotated[
        bool, typer.Option("--pdb", help="Open a debugger in this terminal instead of a port for an editor.")
    ] = False,
    port: Annotated[
        int,
        typer.Option(min=0, max=65_535, help="Listen at this port of the task's loopback; 0 for a free one."),
    ] = 0,
) -> None:
    """Open a debugger in the task.

    Without `--pdb` this opens debugpy on the loopback of the task's machine, and prints the configuration for
    VS Code and PyCharm. It needs `pip install 'tensorfleet[debug]'` on that machine.
    """
    from tensorfleet.cli.debugging.attach import attach_debugger

    attach_debugger(_questions(ctx), pdb, port)


@app.command()
def profile(
    ctx: typer.Context,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Sample for so many seconds.")] = 10.0,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Write the flame graph (SVG) to FILE.")
    ] = Path("profile.svg"),
    native: Annotated[
        bool, typer.Option("--native", help="Sample native code too, where py-spy can.")
    ] = False,
    rate: Annotated[int, typer.Option(min=1, max=1000, help="Take so many samples a second.")] = 100,
) -> None:
    """Sample what the task computes, as a flame graph.

    This runs py-spy on the task's machine (`pip install 'tensorfleet[debug]'`). Where it is missing or not allowed, a
    thread of the task samples the Python frames instead.
    """
    from tensorfleet.cli.debugging.profile import profile_task

    profile_task(_questions(ctx), seconds, output, native, rate)
