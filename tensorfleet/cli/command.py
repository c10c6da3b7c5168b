"""The `tensorfleet` command line."""

from __future__ import annotations

import functools
import platform
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tensorfleet.base.versions import FLEET_VERSION, VERSION
from tensorfleet.cli import debug_command, run_command
from tensorfleet.cli.dashboard_command import dashboard as _dashboard
from tensorfleet.cli.guard_command import guard
from tensorfleet.cli.join_command import join
from tensorfleet.cli.logs_command import logs
from tensorfleet.cli.move_command import move
from tensorfleet.cli.scale_command import scale
from tensorfleet.cli.standby_command import standby
from tensorfleet.cli.trace_command import trace

app = typer.Typer(
    help="Run unmodified TensorFlow 1 scripts, on this machine or on a cluster.",
    epilog="Start with `tensorfleet run --ps 1 --workers 2 train.py`. See docs/launch.md for details.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(debug_command.app, name="debug")


def main() -> None:
    """Run the console script."""
    app(prog_name="tensorfleet")


def _print_version(wanted: bool) -> None:
    if wanted:
        python = f"Python {platform.python_version()}, {shlex.quote(sys.executable)}"
        typer.echo(f"tensorfleet {FLEET_VERSION} (TensorFlow {VERSION}'s API; {python})")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Run unmodified TensorFlow 1 scripts, on this machine or on a cluster."""


app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})(
    run_command.run
)


app.command()(trace)
app.command()(logs)
app.command()(move)
app.command()(scale)
app.command(context_settings={"allow_interspersed_args": False})(join)


@app.command()
def ps() -> None:
    """List your runs, their tasks and their pages.

    The runs of other machines are listed if these have the same home folder, and so are batch jobs.
    """
    from tensorfleet.cli.distant_runs import distant_runs
    from tensorfleet.cli.registry import runs

    entries, distant = list(runs()), distant_runs()
    if not entries and not distant:
        typer.echo("No runs.")
    for entry in entries:
        where = f"launcher {entry['launcher']}"
        _show_run(
            entry["name"], entry["script"], entry.get("engine", "local"), where, entry["logs"], entry["tasks"]
        )
        if entry.get("join"):
            typer.echo(f"  join at      {entry['join']}")
        if entry.get("page"):
            typer.echo(f"  page         {entry['page']}")
    for run in distant:
        _show_run(run.name, run.script, run.engine, run.where, run.logs, run.tasks)


def _show_run(
    name: str, script: str, engine: str, where: str, logs: str | None, tasks: dict[str, Any]
) -> None:
    typer.echo(f"{name}  {script}  (on {engine}, {where}, logs in {logs})")
    for label, task in tasks.items():
        typer.echo(f"  {label:<12} {task['state']:<8} {task['where']:<12} {task['address'] or ''}")


@app.command()
def stop(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Names of the runs, as listed by `ps`.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Stop all of your runs on this machine, and your batch jobs.")
    ] = False,
) -> None:
    """Stop a run and all its processes.

    You can leave out the name if there is only one run.
    """
    from tensorfleet.cli.distant_runs import distant_runs, stop_distant
    from tensorfleet.cli.engines.base import EngineError
    from tensorfleet.cli.registry import runs, stop_run

    ways: list[tuple[str, Callable[[], str]]]
    ways = [(entry["name"], functools.partial(stop_run, entry)) for entry in runs()]
    ways += [
        (run.name, functools.partial(stop_distant, run)) for run in distant_runs() if run.job or not every
    ]
    running = f"Running: {', '.join(name for name, _ in ways)}." if ways else "No runs."
    matches = [(name, end) for name, end in ways if every or not names or name in names]
    missing = [name for name in names or [] if name not in {name for name, _ in ways}]
    if missing or not matches:
        typer.echo(
            f"No run named {' or '.join(missing)} on this machine. {running}" if missing else running,
            err=True,
        )
        raise typer.Exit(1)
    if len(matches) > 1 and not every and not names:
        typer.echo(f"There are several runs. {running} Give a name, or --all.", err=True)
        raise typer.Exit(2)
    for name, end in matches:
        try:
            typer.echo(f"{name}: {end()}")
        except EngineError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(1) from None


@app.command()
def explain(
    script: Annotated[str, typer.Argument(help="Path of the script.", show_default=False)],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of the script.", show_default=False)
    ] = None,
    passes: Annotated[
        bool, typer.Option("--passes", help="Print what each pass does to the plan of a step instead.")
    ] = False,
) -> None:
    """Print the device of each operation of a script, and the reason.

    This builds the graph without training.
    """
    from tensorfleet.cli.explain import explain_script

    given = list(arguments or [])
    explain_script(script, given[1:] if given[:1] == ["--"] else given, passes)


@app.command()
def doctor(
    on: Annotated[
        str | None,
        typer.Option(metavar="ENGINE", help="Check the way to ray, slurm or kubernetes as well."),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Where the engine is: a Ray address, a Kubernetes context.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(help="Check your rights in this namespace (kubernetes).")
    ] = None,
) -> None:
    """Check this machine's setup.

    The checks cover Python, JAX, devices, ports, the token, the clock and the speed of the loopback.
    """
    from tensorfleet.cli.doctor import examine
    from tensorfleet.cli.engines.base import EngineError
    from tensorfleet.cli.engines.registry import check_of

    try:
        check = check_of(on) if on is not None else None
    except EngineError as error:
        raise typer.BadParameter(str(error), param_hint="--on") from None
    if namespace is not None and on != "kubernetes":
        raise typer.BadParameter(
            "Only Kubernetes has namespaces. Add --on kubernetes.", param_hint="--namespace"
        )
    if namespace is not None:
        from tensorfleet.cli.engines import kubernetes_doctor

        raise typer.Exit(examine(lambda context: kubernetes_doctor.check(context, namespace), address))
    raise typer.Exit(examine(check, address))


@app.command()
def certs(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder for the certificates.", show_default=False)
    ],
    hosts: Annotated[
        list[str] | None,
        typer.Argument(metavar="HOST...", help="Names and addresses of the machines.", show_default=False),
    ] = None,
) -> None:
    """Create TLS certificates for the machines of a cluster.

    This creates an authority, a server certificate and a client certificate. Copy DIR without `ca.key` to every
    machine and set `TENSORFLEET_TLS` to its path. If you run the command again with other hosts, it signs new
    certificates with the same authority.
    """
    try:
        from tensorfleet.cli.certificates import make_certificates

        files = make_certificates(folder, list(hosts or []))
    except (ImportError, OSError, ValueError) as error:
        typer.echo(f"tensorfleet: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(
        f"Created {', '.join(path.name for path in files)} in {folder}. Keep ca.key here and copy the others."
    )
    typer.echo(f"Set TENSORFLEET_TLS={folder} (and TENSORFLEET_TLS_MUTUAL=1) for each task and client.")


app.command("dashboard")(_dashboard)
app.command()(standby)
app.command()(guard)
