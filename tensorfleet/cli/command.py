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
from tensorfleet.cli import plan as planning
from tensorfleet.cli.scripts.packages import file_of
from tensorfleet.cli.task_counts import Asked, spoken, tasks_for

app = typer.Typer(
    help="Runs TensorFlow 1 scripts as they are, on this machine or on a cluster.",
    epilog="`tensorfleet run --ps 1 --workers 2 train.py` is the place to start; docs/launch.md has the rest.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The entry point of the console script."""
    app(prog_name="tensorfleet")


def _print_version(wanted: bool) -> None:
    if wanted:
        python = f"Python {platform.python_version()}, {shlex.quote(sys.executable)}"
        typer.echo(f"tensorfleet {FLEET_VERSION} (TensorFlow {VERSION}'s API; {python})")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Runs TensorFlow 1 scripts as they are, on this machine or on a cluster."""


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})
def run(
    script: Annotated[str, typer.Argument(help="The script, unchanged.", show_default=False)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="Its own arguments, best after `--`. {job_name}, {task_index}, {ps_hosts} and {worker_hosts} in "
            "them stand for the task's own.",
            show_default=False,
        ),
    ] = None,
    module: Annotated[
        bool, typer.Option("-m", "--module", help="The script is given as a module: trainer.task.")
    ] = False,
    ps: Annotated[int | None, typer.Option(min=0, help="How many parameter servers.")] = None,
    workers: Annotated[int | None, typer.Option(min=0, help="How many workers.")] = None,
    chief: Annotated[
        bool, typer.Option("--chief", help="A task of job `chief` besides the workers.")
    ] = False,
    evaluator: Annotated[
        bool | None,
        typer.Option(
            "--evaluator/--no-evaluator",
            help="An evaluator, outside the cluster. Scripts that call `tf.estimator.train_and_evaluate` get one.",
            show_default=False,
        ),
    ] = None,
    job: Annotated[
        list[str] | None, typer.Option(metavar="NAME=N", help="Tasks of a job by another name: learner=1.")
    ] = None,
    cluster: Annotated[
        Path | None, typer.Option(help="A YAML file with hosts and jobs: tasks are started there by ssh.")
    ] = None,
    gpus_per_worker: Annotated[int | None, typer.Option(min=0, help="GPUs that each worker sees.")] = None,
    restart: Annotated[int, typer.Option(min=0, help="How often a task that died is started again.")] = 0,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="When a task fails, let the others finish.")
    ] = False,
    timeout: Annotated[float | None, typer.Option(help="Seconds after which the run is stopped.")] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Set for every task.")] = None,
    flag_names: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE=FLAG,...",
            help="What the script calls its flags, for job_name, task_index, ps_hosts, worker_hosts.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The run's name.")] = None,
    log_dir: Annotated[Path, typer.Option(help="Where the logs go: NAME/TASK.log in it.")] = Path("runs"),
    no_alias: Annotated[
        bool, typer.Option("--no-alias", help="Leave `import tensorflow` to an installed TensorFlow.")
    ] = False,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="LOGDIR", help="Start TensorBoard beside the run.")
    ] = None,
    tui: Annotated[bool, typer.Option("--tui", help="A pane for each task.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print each task's command.")] = False,
) -> None:
    """Runs a script as all the tasks of a cluster, and ends when its workers have ended.

    Each task is told what it is in every customary way: `TF_CONFIG`, the script's own flags (`--ps_hosts`,
    `--worker_hosts`, `--job_name`, `--task_index` or its spelling of them), `CLUSTER_SPEC`, `JOB_NAME`,
    `TASK_INDEX`.

    `tensorfleet run --ps 1 --workers 2 train.py -- --train_steps 200`
    """
    if module and (found := file_of(script)) is None:
        path = script.replace(".", "/")
        raise typer.BadParameter(
            f"{script} is not a file here ({os.getcwd()}): {path}.py or {path}/__main__.py is looked for.",
            param_hint="-m",
        )
    script = str(found) if module else script
    if not Path(script).is_file() and cluster is None:
        raise typer.BadParameter(f"{script} is not a file here ({os.getcwd()}).", param_hint="SCRIPT")
    given = list(arguments or [])
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
    guessed = asked.is_nothing and not (evaluator or cluster)
    again = wishes if guessed and not tasks[0].is_alone else None
    _go(tasks, script, name, log_dir, restart, timeout, keep_going, tensorboard, tui, again)


def _counts_behind(script: Path, given: list[str]) -> tuple[list[str], dict[str, int]]:
    """`--ps 2` and `--workers 4` behind the script's name are ours where it has no such flags; the rest, and these."""
    from tensorfleet.cli.scripts.flags import flags_of

    end = given.index("--") if "--" in given else len(given)
    pattern = re.compile(r"--(ps|workers)(?:=(\d+))?")
    found: dict[str, int] = {}
    rest: list[str] = []
    i = 0
    while i < end:
        match = pattern.fullmatch(given[i])
        number = match and (match[2] or (given[i + 1] if i + 1 < end else ""))
        if match and number and number.isdecimal():
            found[match[1]] = int(number)
            i += 1 if match[2] else 2
        else:
            rest.append(given[i])
            i += 1
    if not found or not found.keys().isdisjoint(flags_of(script)):
        return given, {}
    told = " ".join(f"--{option} {number}" for option, number in found.items())
    print(
        f"tensorfleet: {told} is taken as ours, since {script} has no such flag; it belongs before the script.",
        file=sys.stderr,
    )
    return rest + given[end:], found


def _numbers(texts: list[str]) -> dict[str, int]:
    found = _pairs(texts, "--job")
    for name, count in found.items():
        if not count.isdigit():
            raise typer.BadParameter(f"{name}={count}: how many tasks of {name}?", param_hint="--job")
    return {name: int(count) for name, count in found.items()}


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
) -> None:
    from tensorfleet.cli.run import Run, free_ports
    from tensorfleet.cli.tensorboard import tensorboard as show

    name = name or _fresh_name(script, log_dir)
    logs = log_dir / name

    def go(tasks: list[planning.Task], made: Path | None = None) -> int:
        output = None
        if tui:
            from tensorfleet.cli.panes import Panes

            output = Panes([task.label for task in tasks], logs)
        return Run(tasks, name, script, logs, restart, timeout, keep_going, output, made).go()

    made = (logs / "cluster.json").absolute() if guessed else None
    with show(tensorboard):
        try:
            code = go(tasks, made)
            if guessed and made and made.exists() and code < 128:  # not interrupted
                counts = json.loads(made.read_text())
                made.unlink()
                typer.echo(
                    f"tensorfleet: {script} makes a cluster of {spoken(counts)}: starting these.", err=True
                )
                code = go(planning.plan_again(guessed, tasks, counts, iter(free_ports(sum(counts.values())))))
        except OSError as error:
            typer.echo(f"tensorfleet: {error}", err=True)
            code = 127
    raise typer.Exit(code)


def _fresh_name(script: str, log_dir: Path) -> str:
    stem = f"{Path(script).stem}-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    taken = [n for n in range(1, 1000) if (log_dir / (stem if n == 1 else f"{stem}-{n}")).exists()]
    return f"{stem}-{taken[-1] + 1}" if taken else stem


def _pairs(texts: list[str], option: str) -> dict[str, str]:
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint=option)
        found[key.strip()] = value
    return found


@app.command(context_settings={"allow_interspersed_args": False})
def kubernetes(
    script: Annotated[str, typer.Argument(help="The script, as its path in the image.", show_default=False)],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Its own arguments.", show_default=False)
    ] = None,
    image: Annotated[str, typer.Option(help="A container image with the script and TensorFleet.")] = "",
    ps: Annotated[int, typer.Option(min=0, help="How many parameter servers.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="How many workers.")] = 2,
    gpus_per_worker: Annotated[int, typer.Option(min=0, help="GPUs that each worker asks for.")] = 0,
    env: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Set for every task.")] = None,
    name: Annotated[str | None, typer.Option(help="The run's name.")] = None,
) -> None:
    """Prints what runs a script on Kubernetes, for `kubectl apply -f -`.

    A Job for each task, a Service for their names, a Secret with the token.
    """
    from tensorfleet.cli.manifests import kubernetes as manifest

    if not image:
        raise typer.BadParameter("which container image?", param_hint="--image")
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


@app.command()
def ps() -> None:
    """Lists the runs on this machine, and their tasks."""
    from tensorfleet.cli.registry import runs

    found = list(runs())
    if not found:
        typer.echo("Nothing is running.")
    for entry in found:
        typer.echo(
            f"{entry['name']}  {entry['script']}  (launcher {entry['launcher']}, logs in {entry['logs']})"
        )
        for label, task in entry["tasks"].items():
            typer.echo(f"  {label:<12} {task['state']:<8} pid {task['pid']:<8} {task['address'] or ''}")


@app.command()
def stop(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="The runs' names, as `ps` lists them.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Stop all of your runs on this machine.")] = False,
) -> None:
    """Stops a run and everything it has started. Without a name: the only one there is."""
    from tensorfleet.cli.registry import runs, stop_run

    known = list(runs())
    running = f"Running: {', '.join(entry['name'] for entry in known)}." if known else "Nothing is running."
    found = [entry for entry in known if every or not names or entry["name"] in names]
    missing = [name for name in names or [] if name not in {entry["name"] for entry in known}]
    if missing or not found:
        typer.echo(f"No run {' or '.join(missing)} here. {running}" if missing else running, err=True)
        raise typer.Exit(1)
    if len(found) > 1 and not every and not names:
        typer.echo(f"Which run? {running} Give its name, or --all.", err=True)
        raise typer.Exit(2)
    for entry in found:
        typer.echo(f"{entry['name']}: {stop_run(entry)}")


@app.command()
def explain(
    script: Annotated[str, typer.Argument(help="The script, unchanged.", show_default=False)],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Its own arguments.", show_default=False)
    ] = None,
    passes: Annotated[
        bool, typer.Option("--passes", help="Print what each pass does to the plan of a step instead.")
    ] = False,
) -> None:
    """Prints which device each operation of a script's graph runs on, and why, without training."""
    from tensorfleet.cli.explain import explain_script

    given = list(arguments or [])
    explain_script(script, given[1:] if given[:1] == ["--"] else given, passes)


@app.command()
def doctor() -> None:
    """Looks at this machine: Python, JAX, devices, ports, the token, the clock, the loopback's speed."""
    from tensorfleet.cli.doctor import examine

    raise typer.Exit(examine())


@app.command()
def certs(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where they go.", show_default=False)],
    hosts: Annotated[
        list[str] | None,
        typer.Argument(metavar="HOST...", help="Names and addresses of the machines.", show_default=False),
    ] = None,
) -> None:
    """Makes certificates for TLS between the machines of a cluster: an authority, a server's and a client's.

    Copy DIR without `ca.key` to every machine and set `TENSORFLEET_TLS` to it there. Run again with other hosts, it
    signs new ones by the same authority.
    """
    from tensorfleet.cli.certificates import make_certificates

    try:
        made = make_certificates(folder, list(hosts or []))
    except (OSError, ValueError) as error:
        typer.echo(f"tensorfleet: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(
        f"Made {', '.join(path.name for path in made)} in {folder}. Keep ca.key here; copy the others."
    )
    typer.echo(f"Then, for each task and client: TENSORFLEET_TLS={folder} (and TENSORFLEET_TLS_MUTUAL=1)")
