"""The `tensorfleet` command line."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import secrets
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tensorfleet.base.versions import FLEET_VERSION, VERSION
from tensorfleet.cli import debug_command
from tensorfleet.cli import plan as planning
from tensorfleet.cli.dashboard_command import dashboard as _dashboard
from tensorfleet.cli.scripts.packages import file_of
from tensorfleet.cli.task_counts import Asked, spoken, tasks_for
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


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})
def run(
    script: Annotated[str, typer.Argument(help="Path of the script.", show_default=False)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="Arguments of the script, preferably after `--`. {job_name}, {task_index}, {ps_hosts} and "
            "{worker_hosts} are replaced by the task's values.",
            show_default=False,
        ),
    ] = None,
    module: Annotated[
        bool,
        typer.Option("-m", "--module", help="Run a module, such as trainer.task, instead of a file."),
    ] = False,
    ps: Annotated[int | None, typer.Option(min=0, help="Set the number of parameter servers.")] = None,
    workers: Annotated[int | None, typer.Option(min=0, help="Set the number of workers.")] = None,
    chief: Annotated[bool, typer.Option("--chief", help="Add a task of job `chief`.")] = False,
    evaluator: Annotated[
        bool | None,
        typer.Option(
            "--evaluator/--no-evaluator",
            help="Add an evaluator outside the cluster. This is the default if the script calls "
            "`tf.estimator.train_and_evaluate`.",
            show_default=False,
        ),
    ] = None,
    job: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=N", help="Add N tasks of another job, such as learner=1."),
    ] = None,
    cluster: Annotated[
        Path | None, typer.Option(help="Start the tasks over ssh on the hosts in this YAML file.")
    ] = None,
    gpus_per_worker: Annotated[
        int | None, typer.Option(min=0, help="Give each worker this many GPUs.")
    ] = None,
    restart: Annotated[int, typer.Option(min=0, help="Restart a failed task up to this many times.")] = 0,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Let the other tasks finish when one fails.")
    ] = False,
    timeout: Annotated[float | None, typer.Option(help="Stop the run after this many seconds.")] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="Set an environment variable of every task.")
    ] = None,
    flag_names: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE=FLAG,...",
            help="Set the names of the script's flags for job_name, task_index, ps_hosts, worker_hosts.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Set the name of the run.")] = None,
    log_dir: Annotated[Path, typer.Option(help="Write logs to NAME/TASK.log in this folder.")] = Path("runs"),
    no_alias: Annotated[
        bool, typer.Option("--no-alias", help="Let `import tensorflow` import an installed TensorFlow.")
    ] = False,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="LOGDIR", help="Start TensorBoard on LOGDIR during the run.")
    ] = None,
    tui: Annotated[bool, typer.Option("--tui", help="Show each task in a pane.")] = False,
    log_format: Annotated[
        str, typer.Option(metavar="text|json", help="Print and log lines as text, or as JSON objects.")
    ] = "text",
    dashboard: Annotated[
        str | None,
        typer.Option(
            metavar="off|PORT|HOST:PORT",
            help="Serve the page of the run there, or not at all. The default is a free port of this machine.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the command of each task and exit.")
    ] = False,
) -> None:
    """Run a script as the tasks of a cluster.

    The run ends when the workers have ended. Each task gets its role in all usual forms: `TF_CONFIG`, the script's
    own flags (`--ps_hosts`, `--worker_hosts`, `--job_name`, `--task_index` or similar names), `CLUSTER_SPEC`,
    `JOB_NAME` and `TASK_INDEX`.

    `tensorfleet run --ps 1 --workers 2 train.py -- --train_steps 200`
    """
    if module and (module_file := file_of(script)) is None:
        path = script.replace(".", "/")
        raise typer.BadParameter(
            f"No module {script} in {os.getcwd()}: neither {path}.py nor {path}/__main__.py exists.",
            param_hint="-m",
        )
    script = str(module_file) if module else script
    if not Path(script).is_file() and cluster is None:
        raise typer.BadParameter(f"No file {script} in {os.getcwd()}.", param_hint="SCRIPT")
    if log_format not in ("text", "json"):
        raise typer.BadParameter(
            f"{log_format!r} is not a format. Use text or json.", param_hint="--log-format"
        )
    given = list(arguments or [])
    # `run train.py --ps 2` is a frequent slip. Counts after the script are ours only if none came before it.
    if ps is None and workers is None and not chief and not job and cluster is None:
        given, behind = _counts_behind(Path(script), given)
        ps, workers = behind.get("ps"), behind.get("workers")
    wishes = planning.Wishes(
        script=script,
        arguments=given[1:] if given[:1] == ["--"] else given,
        use_alias=not no_alias,
        gpus_per_worker=gpus_per_worker,
        environment=_pairs(env or [], "--env"),
        flag_names=_pairs(flag_names.split(",") if flag_names else [], "--flag-names"),
    )
    try:
        asked = Asked(ps, workers, chief, evaluator, _numbers(job or []))
        tasks = tasks_for(wishes, asked, cluster)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from None
    if dry_run:
        for task in tasks:
            typer.echo(f"[{task.label}] {task.shown()}")
        return
    # Nobody said how many tasks there are. If the script then makes another cluster, the run starts again with that.
    guessed = asked.is_nothing and not (evaluator or cluster)
    again = wishes if guessed and not tasks[0].is_alone else None
    _go(
        tasks,
        script,
        name,
        log_dir,
        restart,
        timeout,
        keep_going,
        tensorboard,
        tui,
        again,
        log_format,
        dashboard,
    )


def _counts_behind(script: Path, given: list[str]) -> tuple[list[str], dict[str, int]]:
    """Split `--ps 2` and `--workers 4` from arguments after the script's name, unless the script has these flags."""
    from tensorfleet.cli.scripts.flags import flags_of

    end = given.index("--") if "--" in given else len(given)
    pattern = re.compile(r"--(ps|workers)(?:=(\d+))?")
    counts: dict[str, int] = {}
    rest: list[str] = []
    i = 0
    while i < end:
        match = pattern.fullmatch(given[i])
        number = match and (match[2] or (given[i + 1] if i + 1 < end else ""))
        if match and number and number.isdecimal():
            counts[match[1]] = int(number)
            i += 1 if match[2] else 2
        else:
            rest.append(given[i])
            i += 1
    if not counts or not counts.keys().isdisjoint(flags_of(script)):
        return given, {}
    options = " ".join(f"--{option} {number}" for option, number in counts.items())
    print(
        f"tensorfleet: using {options} as an option of the launcher, because {script} has no such flag. "
        "Write it before the script.",
        file=sys.stderr,
    )
    return rest + given[end:], counts


def _numbers(texts: list[str]) -> dict[str, int]:
    pairs = _pairs(texts, "--job")
    for name, count in pairs.items():
        if not count.isdigit():
            raise typer.BadParameter(
                f"{name}={count} is not a number of tasks. Write for example {name}=2.", param_hint="--job"
            )
    return {name: int(count) for name, count in pairs.items()}


def _go(
    tasks: list[planning.Task],
    script: str,
    name: str | None,
    log_dir: Path,
    restart: int,
    timeout: float | None,
    keep_going: bool,
    tensorboard: Path | None,
    tui: bool,
    guessed: planning.Wishes | None,
    log_format: str,
    dashboard: str | None,
) -> None:
    from tensorfleet.cli.dashboard.launched import launched_page, wanted_place
    from tensorfleet.cli.output import JsonOutput, Output
    from tensorfleet.cli.run import Launcher, free_ports
    from tensorfleet.cli.tensorboard import tensorboard as show

    name = name or _fresh_name(script, log_dir)
    logs = log_dir / name
    try:
        place = wanted_place(dashboard)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--dashboard") from None

    def go(tasks: list[planning.Task], made: Path | None = None) -> int:
        output: Output | None = None
        if log_format == "json":
            output = JsonOutput([task.label for task in tasks], sys.stdout, logs)
        elif tui:
            from tensorfleet.cli.panes import Panes

            output = Panes([task.label for task in tasks], logs)
        return Launcher(tasks, name, script, logs, restart, timeout, keep_going, output, made, page).go()

    cluster_file = (logs / "cluster.json").absolute() if guessed else None
    with show(tensorboard), launched_page(place, name, script, logs) as page:
        try:
            code = go(tasks, cluster_file)
            if guessed and cluster_file and cluster_file.exists() and code < 128:  # not interrupted
                counts = json.loads(cluster_file.read_text())
                cluster_file.unlink()
                typer.echo(
                    f"tensorfleet: {script} creates a cluster of {spoken(counts)}. Restarting with these tasks.",
                    err=True,
                )
                code = go(planning.plan_again(guessed, tasks, counts, iter(free_ports(sum(counts.values())))))
        except OSError as error:
            typer.echo(f"tensorfleet: {error}", err=True)
            code = 127
        if page is not None:
            page.close(code)
    raise typer.Exit(code)


def _fresh_name(script: str, log_dir: Path) -> str:
    stem = f"{Path(script).stem}-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    taken = [n for n in range(1, 1000) if (log_dir / (stem if n == 1 else f"{stem}-{n}")).exists()]
    return f"{stem}-{taken[-1] + 1}" if taken else stem


def _pairs(texts: list[str], option: str) -> dict[str, str]:
    result = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{text!r} does not have the form NAME=VALUE.", param_hint=option)
        result[key.strip()] = value
    return result


@app.command(context_settings={"allow_interspersed_args": False})
def kubernetes(
    script: Annotated[str, typer.Argument(help="Path of the script in the image.", show_default=False)],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Arguments of the script.", show_default=False)
    ] = None,
    image: Annotated[
        str, typer.Option(help="Use this container image, with the script and TensorFleet.")
    ] = "",
    ps: Annotated[int, typer.Option(min=0, help="Set the number of parameter servers.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Set the number of workers.")] = 2,
    gpus_per_worker: Annotated[int, typer.Option(min=0, help="Request this many GPUs for each worker.")] = 0,
    env: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="Set an environment variable of every task.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Set the name of the run.")] = None,
) -> None:
    """Print Kubernetes manifests for a script.

    The manifests are a Job for each task, a Service for their names, and a Secret with the token. Pipe them to
    `kubectl apply -f -`.
    """
    from tensorfleet.cli.manifests import kubernetes as manifest

    if not image:
        raise typer.BadParameter(
            "Give a container image that has the script and TensorFleet.", param_hint="--image"
        )
    given = list(arguments or [])
    wishes = planning.Wishes(
        script,
        given[1:] if given[:1] == ["--"] else given,
        environment=_pairs(env or [], "--env"),
        python="python3",
    )
    label = re.sub("[^a-z0-9]+", "-", (name or Path(script).stem).lower()).strip("-")
    token = os.environ.get(planning.TOKEN) or secrets.token_hex(32)
    typer.echo(
        manifest(wishes, label, image, {"ps": ps, "worker": workers}, token, gpus_per_worker), nl=False
    )


app.command()(trace)


@app.command()
def ps() -> None:
    """List the runs on this machine, their tasks and their pages."""
    from tensorfleet.cli.registry import runs

    entries = list(runs())
    if not entries:
        typer.echo("No runs.")
    for entry in entries:
        typer.echo(
            f"{entry['name']}  {entry['script']}  (launcher {entry['launcher']}, logs in {entry['logs']})"
        )
        for label, task in entry["tasks"].items():
            typer.echo(f"  {label:<12} {task['state']:<8} pid {task['pid']:<8} {task['address'] or ''}")
        if entry.get("page"):
            typer.echo(f"  page         {entry['page']}")


@app.command()
def stop(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Names of the runs, as listed by `ps`.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Stop all of your runs on this machine.")] = False,
) -> None:
    """Stop a run and all its processes.

    You can leave out the name if there is only one run.
    """
    from tensorfleet.cli.registry import runs, stop_run

    known = list(runs())
    running = f"Running: {', '.join(entry['name'] for entry in known)}." if known else "No runs."
    matches = [entry for entry in known if every or not names or entry["name"] in names]
    missing = [name for name in names or [] if name not in {entry["name"] for entry in known}]
    if missing or not matches:
        typer.echo(
            f"No run named {' or '.join(missing)} on this machine. {running}" if missing else running,
            err=True,
        )
        raise typer.Exit(1)
    if len(matches) > 1 and not every and not names:
        typer.echo(f"There are several runs. {running} Give a name, or --all.", err=True)
        raise typer.Exit(2)
    for entry in matches:
        typer.echo(f"{entry['name']}: {stop_run(entry)}")


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
def doctor() -> None:
    """Check this machine's setup.

    The checks cover Python, JAX, devices, ports, the token, the clock and the speed of the loopback.
    """
    from tensorfleet.cli.doctor import examine

    raise typer.Exit(examine())


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
