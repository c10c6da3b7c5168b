"""`tensorfleet run`: its options, and the checks of what they say."""

from __future__ import annotations

import datetime
import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from tensorfleet.cli import plan as planning
from tensorfleet.cli.consistency_option import told_consistency
from tensorfleet.cli.dashboard.launched import launched_page, wanted_place
from tensorfleet.cli.distant_runs import distant_runs, is_own_job
from tensorfleet.cli.engines.base import EngineError, RunEngine, RunOptions, TaskResources
from tensorfleet.cli.engines.ray_connection import advice_of_job
from tensorfleet.cli.engines.registry import make_engine
from tensorfleet.cli.engines.unused_options import check_options
from tensorfleet.cli.registry import runs
from tensorfleet.cli.replicas import MAX_REPLICAS
from tensorfleet.cli.run_request import MakeOutput, PlannedRun, RunRequest
from tensorfleet.cli.run_settings import RunSettings
from tensorfleet.cli.scripts.packages import file_of
from tensorfleet.cli.task_counts import Asked
from tensorfleet.cli.tensorboard import tensorboard as tensorboard_beside

# The options in `--help`, by what they are about.
_TASKS, _WHERE, _ENDS = "Tasks", "Where they run", "Failures and time"
_SCRIPT, _OUTPUT = "The script", "Output"
_GRACE_SECONDS = (
    30.0  # where machines are taken away with notice: Kubernetes gives 30 s if not told otherwise
)
_IN_A_POD = "KUBERNETES_SERVICE_HOST"  # set in every pod
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)


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
        typer.Option(
            "-m",
            "--module",
            help="Run a module, such as trainer.task, instead of a file.",
            rich_help_panel=_SCRIPT,
        ),
    ] = False,
    ps: Annotated[
        int | None, typer.Option(min=0, help="Set the number of parameter servers.", rich_help_panel=_TASKS)
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|MIN:MAX",
            help="Set the number of workers. 2:8 begins with two and takes up to eight, as there is room.",
            rich_help_panel=_TASKS,
        ),
    ] = None,
    max_workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Leave room for up to N workers, which `tensorfleet scale` starts and stops while the run goes on.",
            rich_help_panel=_TASKS,
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="ENGINE",
            help="Run on local, ssh, ray, slurm or kubernetes. The default is this machine, or ssh with --cluster.",
            show_default=False,
            rich_help_panel=_WHERE,
        ),
    ] = None,
    chief: Annotated[
        bool, typer.Option("--chief", help="Add a task of job `chief`.", rich_help_panel=_TASKS)
    ] = False,
    evaluator: Annotated[
        bool | None,
        typer.Option(
            "--evaluator/--no-evaluator",
            help="Add an evaluator outside the cluster. This is the default if the script calls "
            "`tf.estimator.train_and_evaluate`.",
            show_default=False,
            rich_help_panel=_TASKS,
        ),
    ] = None,
    job: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N", help="Add N tasks of another job, such as learner=1.", rich_help_panel=_TASKS
        ),
    ] = None,
    cluster: Annotated[
        Path | None,
        typer.Option(help="Start the tasks over ssh on the hosts in this YAML file.", rich_help_panel=_WHERE),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            help="Use the engine there: a Ray address (default RAY_ADDRESS), a Kubernetes context.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(help="Use this container image, with TensorFleet (kubernetes).", rich_help_panel=_WHERE),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(help="Run in this namespace (kubernetes).", rich_help_panel=_WHERE)
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option(
            "--time", help="Ask for this much time, such as 2:00:00 (slurm).", rich_help_panel=_WHERE
        ),
    ] = None,
    submit: Annotated[
        bool,
        typer.Option(
            "--submit", help="Submit the run as a batch job and return (slurm).", rich_help_panel=_WHERE
        ),
    ] = False,
    engine_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K=V",
            help="Pass an option to the engine; see the engine's page in docs/.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Wait for room for so many seconds. The default is until there is room.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    cpus_per_task: Annotated[
        float | None,
        typer.Option(min=0.01, help="Reserve this many processors for each task.", rich_help_panel=_WHERE),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Reserve this much memory for each task, such as 4G.", rich_help_panel=_WHERE
        ),
    ] = None,
    gpus_per_worker: Annotated[
        int | None, typer.Option(min=0, help="Give each worker this many GPUs.", rich_help_panel=_WHERE)
    ] = None,
    restart: Annotated[
        int, typer.Option(min=0, help="Restart a failed task up to this many times.", rich_help_panel=_ENDS)
    ] = 0,
    replicas: Annotated[
        int,
        typer.Option(
            metavar="0|1",
            help="Start a standby for each parameter server (1). It has every update, and takes over when the parameter "
            "server dies: no step fails, and no update is lost.",
            rich_help_panel=_ENDS,
        ),
    ] = 0,
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going", help="Let the other tasks finish when one fails.", rich_help_panel=_ENDS
        ),
    ] = False,
    timeout: Annotated[
        float | None, typer.Option(help="Stop the run after this many seconds.", rich_help_panel=_ENDS)
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Let tasks save for so many seconds when the run gets SIGTERM or its time is up. The default is 2 on "
            "this machine and 30 on others.",
            rich_help_panel=_ENDS,
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K=V", help="Set an environment variable of every task.", rich_help_panel=_SCRIPT
        ),
    ] = None,
    flag_names: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE=FLAG,...",
            help="Set the names of the script's flags for job_name, task_index, ps_hosts, worker_hosts.",
            rich_help_panel=_SCRIPT,
        ),
    ] = None,
    consistency: Annotated[
        str | None,
        typer.Option(
            metavar="bsp|backup:K|ssp:K|asp|auto",
            help="Set how far workers may drift apart: the optimizers of the script train so. docs/consistency.md has all "
            "values.",
            rich_help_panel=_SCRIPT,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Set the name of the run.", rich_help_panel=_OUTPUT)
    ] = None,
    log_dir: Annotated[
        Path, typer.Option(help="Write logs to NAME/TASK.log in this folder.", rich_help_panel=_OUTPUT)
    ] = Path("runs"),
    no_alias: Annotated[
        bool,
        typer.Option(
            "--no-alias",
            help="Let `import tensorflow` import an installed TensorFlow.",
            rich_help_panel=_SCRIPT,
        ),
    ] = False,
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            metavar="LOGDIR", help="Start TensorBoard on LOGDIR during the run.", rich_help_panel=_OUTPUT
        ),
    ] = None,
    tui: Annotated[
        bool, typer.Option("--tui", help="Show each task in a pane.", rich_help_panel=_OUTPUT)
    ] = False,
    log_format: Annotated[
        str,
        typer.Option(
            metavar="text|json",
            help="Print and log lines as text, or as JSON objects.",
            rich_help_panel=_OUTPUT,
        ),
    ] = "text",
    dashboard: Annotated[
        str | None,
        typer.Option(
            metavar="off|PORT|HOST:PORT",
            help="Serve the page of the run there, or not at all. The default is a free port of this machine.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    print_manifests: Annotated[
        bool,
        typer.Option("--print", help="Print the manifests and exit (kubernetes).", rich_help_panel=_OUTPUT),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the command of each task and exit.", rich_help_panel=_OUTPUT),
    ] = False,
) -> None:
    """Run a script as the tasks of a cluster.

    The run ends when the workers have ended. Each task gets its role in all usual forms: `TF_CONFIG`, the script's
    own flags (`--ps_hosts`, `--worker_hosts`, `--job_name`, `--task_index` or similar names), `CLUSTER_SPEC`,
    `JOB_NAME` and `TASK_INDEX`.

    `tensorfleet run --ps 1 --workers 2 train.py -- --train_steps 200`

    `tensorfleet run --on ray --ps 2 --workers 2:8 train.py`
    """
    if module and (module_file := file_of(script)) is None:
        path = script.replace(".", "/")
        raise typer.BadParameter(
            f"No module {script} in {os.getcwd()}: neither {path}.py nor {path}/__main__.py exists.",
            param_hint="-m",
        )
    script = str(module_file) if module else script
    on = on or ("ssh" if cluster else "local")
    # Only an image or another host may have the script.
    if not Path(script).is_file() and on not in ("ssh", "kubernetes"):
        raise typer.BadParameter(f"No file {script} in {os.getcwd()}.{advice_of_job()}", param_hint="SCRIPT")
    if log_format not in ("text", "json"):
        raise typer.BadParameter(
            f"{log_format!r} is not a format. Use text or json.", param_hint="--log-format"
        )
    _check_replicas(replicas, on, print_manifests, dry_run)
    given = list(arguments or [])
    most, least = _numbers_of_workers(workers, max_workers)
    # `run train.py --ps 2` is a frequent slip. Counts after the script are ours only if none came before it.
    if ps is None and most is None and not chief and not job and cluster is None:
        given, behind = _counts_behind(Path(script), given)
        ps, most = behind.get("ps"), behind.get("workers")
    wishes = planning.Wishes(
        script=script,
        arguments=given[1:] if given[:1] == ["--"] else given,
        use_alias=not no_alias,
        gpus_per_worker=gpus_per_worker,
        environment={**told_consistency(consistency, no_alias), **pairs_of(env or [], "--env")},
        flag_names=pairs_of(flag_names.split(",") if flag_names else [], "--flag-names"),
    )
    try:
        place = wanted_place(dashboard)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--dashboard") from None
    if name and not (dry_run or print_manifests):
        _check_free(name)
    name = name or _fresh_name(script, log_dir)
    options = RunOptions(
        name=name,
        script=Path(script),
        log_dir=log_dir / name,
        cluster_file=cluster,
        submit=submit,
        wait_seconds=wait,
        address=address,
        time_limit=time_limit,
        engine_arguments=tuple(engine_arg or []),
        image=image,
        namespace=namespace,
        environment=wishes.environment,
    )
    try:
        engine = make_engine(on, options)
        asked = Asked(ps, most, chief, evaluator, _numbers(job or []), least, max_workers is not None)
        resources = TaskResources(cpus_per_task, _bytes_of(memory), gpus_per_worker or 0)
        check_options(on, options, resources)
        request = RunRequest.of(wishes, asked, engine, resources, durable=replicas > 0)
        if dry_run or print_manifests:
            _show(request, engine, print_manifests)
            return
    except (ValueError, OSError, EngineError) as error:
        raise typer.BadParameter(str(error)) from None
    settings = RunSettings(
        name=name,
        script=script,
        log_dir=log_dir / name,
        restarts=restart,
        timeout=timeout,
        keep_going=keep_going,
        grace=grace if grace is not None or on == "local" else _GRACE_SECONDS,
        elastic=request.elastic,
        scaled_by_hand=asked.scaled_by_hand,
    )
    guesses = asked.is_nothing and not evaluator and on == "local"
    go = PlannedRun(request, engine, settings, _output_of(log_format, tui), guesses)
    place = None if submit else place  # the job has a page of its own
    with tensorboard_beside(tensorboard), launched_page(place, name, script, log_dir / name) as page:
        code = go.to_its_end(page)
        if page is not None:
            page.close(code)
    raise typer.Exit(code)


def _check_replicas(replicas: int, on: str, prints: bool, dry_run: bool) -> None:
    """Raises `typer.BadParameter` for a number of standbys that there cannot be, or where nobody would guard them."""
    if replicas not in (0, MAX_REPLICAS):
        raise typer.BadParameter(
            f"A parameter server has no standby (0) or one (1), not {replicas}. Use --replicas 1.",
            param_hint="--replicas",
        )
    if not replicas or on != "kubernetes" or dry_run:
        return
    if prints:
        raise typer.BadParameter(
            "Manifests have no launcher, which decides who leads a durable parameter server. Leave out --print to let "
            "this command run the tasks.",
            param_hint="--replicas",
        )
    if _IN_A_POD not in os.environ:
        raise typer.BadParameter(
            "This machine does not reach the pods, and so cannot tell which servers are alive. Start the command in a pod "
            "(examples/kubernetes/launcher.yaml).",
            param_hint="--replicas",
        )


def _show(request: RunRequest, engine: RunEngine, as_manifests: bool) -> None:
    tasks = request.tasks_at(engine.preview(request.wanted))
    if not as_manifests:
        for task in tasks:
            typer.echo(f"[{task.label}] {task.shown()}")
        return
    text = engine.manifests(tasks)
    if text is None:
        raise typer.BadParameter(
            f"{engine.name} has no manifests. Use it with --on kubernetes.", param_hint="--print"
        )
    typer.echo(text, nl=False)


def _output_of(log_format: str, tui: bool) -> MakeOutput:
    """How the lines of the tasks are shown."""
    from tensorfleet.cli.output import JsonOutput, Output
    from tensorfleet.cli.panes import Panes

    if log_format == "json":
        return lambda labels, logs: JsonOutput(labels, sys.stdout, logs)
    if tui:
        return Panes
    return lambda labels, logs: Output(labels, sys.stdout, logs)


def _numbers_of_workers(text: str | None, room: int | None) -> tuple[int | None, int | None]:
    """The most workers, and the least if that is another number or there is `room` for more."""
    if room is not None:
        return _with_room(text or "1", room)
    if text is None:
        return None, None
    least, colon, most = text.rpartition(":")
    if not most.isdecimal() or (colon and not least.isdecimal()):
        raise typer.BadParameter(
            f"{text!r} is not a number of workers. Write for example 4, or 2:8 for two to eight.",
            param_hint="--workers",
        )
    if colon and not 1 <= int(least) <= int(most):
        raise typer.BadParameter(
            f"{text} is not a range. Write the least first, at least 1: for example 2:8.",
            param_hint="--workers",
        )
    return int(most), int(least) if colon and int(least) < int(most) else None


def _with_room(text: str, room: int) -> tuple[int, int]:
    if not text.isdecimal() or not 1 <= int(text) <= room:
        raise typer.BadParameter(
            f"--workers {text} does not go with --max-workers {room}. Give the number of workers to begin with, 1 to {room}.",
            param_hint="--workers",
        )
    return room, int(text)


def _bytes_of(text: str | None) -> int | None:
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(
            f"{text!r} is not a size. Write for example 512M or 4G.", param_hint="--memory"
        )
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


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
    pairs = pairs_of(texts, "--job")
    for name, count in pairs.items():
        if not count.isdigit():
            raise typer.BadParameter(
                f"{name}={count} is not a number of tasks. Write for example {name}=2.", param_hint="--job"
            )
    return {name: int(count) for name, count in pairs.items()}


def _check_free(name: str) -> None:
    """Two runs of one name would write to the same logs, and `stop` would end both."""
    launcher = next((run["launcher"] for run in runs() if run["name"] == name), None)
    if launcher is not None:
        raise typer.BadParameter(
            f"A run named {name} is going on (launcher {launcher}). Stop it with `tensorfleet stop {name}`, or give this "
            "run another name.",
            param_hint="--name",
        )
    distant = next((run for run in distant_runs() if run.name == name), None)
    if distant is not None and not is_own_job(name):
        raise typer.BadParameter(
            f"A run named {name} is going on ({distant.where}). Stop it with `tensorfleet stop {name}`, or give this run "
            "another name.",
            param_hint="--name",
        )


def _fresh_name(script: str, log_dir: Path) -> str:
    stem = f"{Path(script).stem}-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    taken = [n for n in range(1, 1000) if (log_dir / (stem if n == 1 else f"{stem}-{n}")).exists()]
    return f"{stem}-{taken[-1] + 1}" if taken else stem


def pairs_of(texts: list[str], option: str) -> dict[str, str]:
    """`NAME=VALUE` texts as a dict."""
    result = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{text!r} does not have the form NAME=VALUE.", param_hint=option)
        result[key.strip()] = value
    return result
