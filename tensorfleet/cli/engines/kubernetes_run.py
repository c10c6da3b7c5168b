"""A run before it is in the cluster: its options checked, its files read, its objects printed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensorfleet.cli.engines import kubernetes_manifests as manifests
from tensorfleet.cli.engines.base import EngineError, RunOptions, TaskResources, Wanted
from tensorfleet.cli.engines.kubernetes_arguments import Json, pod_options
from tensorfleet.cli.engines.kubernetes_folders import warnings
from tensorfleet.cli.engines.kubernetes_names import run_label, task_name
from tensorfleet.cli.engines.kubernetes_ship import keys_for, shipped_files, shipped_root, tls_files
from tensorfleet.cli.plan import ALONE_JOB, TOKEN, Task


class Preparation:
    """The run's options as Kubernetes needs them, and the objects that follow from them."""

    def __init__(self, options: RunOptions) -> None:
        """Raises ValueError for a mistake in the options."""
        self._options = options
        pod = pod_options(options.engine_arguments)
        self._files: dict[str, bytes] = {}
        if pod.ship and options.script.is_file():
            self._files = shipped_files(options.script, options.log_dir)
        self._keys = keys_for(list(self._files))
        self._tls = tls_files(pod.tls_folder) if pod.tls_folder else {}
        self.run = manifests.RunObjects(
            label=run_label(options.name),
            name=options.name,
            image=options.image or "",
            options=pod,
            time_limit=_seconds(options.time_limit),
            environment=options.environment,
            shipped=self._keys,
        )

    def check(self, wanted: Sequence[Wanted]) -> None:
        """Refuses a run that cannot start. Raises EngineError."""
        script, pod = self._options.script, self.run.options
        if not self.run.image:
            raise EngineError(
                "Kubernetes needs a container image with TensorFleet and your script: --image NAME. "
                "examples/kubernetes/Dockerfile builds one."
            )
        if script.is_file():
            return
        if pod.ship:
            raise EngineError(f"Cannot ship {script}: no such file in {os.getcwd()}.")
        if not pod.script_in_image:
            raise EngineError(
                f"{script} is not in {os.getcwd()}, so nobody can see by which flags its tasks learn who they are. Run the "
                "command beside a copy of it. If only the image has it, add --engine-arg script=image with --ps and --workers, "
                "and --flag-names job_name=NAME,task_index=NAME,... unless it reads TF_CONFIG."
            )
        if all(one.job == ALONE_JOB for one in wanted):
            raise EngineError(
                f"{script} is not in {os.getcwd()}: say how many tasks it has. Add --ps N --workers N."
            )

    def notes(self) -> list[str]:
        """How the script gets there."""
        script = self._options.script
        if self._files:
            size = sum(map(len, self._files.values())) / 1000
            root = shipped_root(script)
            return [
                f"Shipping {root} ({len(self._files)} files, {size:.0f} KB), which tasks find read-only in "
                f"{manifests.SHIPPED_FOLDER}. Checkpoints need a volume (--engine-arg volume=claim:NAME:/path)."
            ]
        return [f"Expecting {script} in the image {self.run.image}."]

    def warnings(self, task: Task) -> list[str]:
        """What will be lost of a task, as its arguments have it."""
        directory = self.run.options.working_directory or (manifests.SHIPPED_FOLDER if self._files else None)
        return warnings(task.command, self.run.options, directory)

    def in_pod(self, task: Task) -> Task:
        """A task whose command names the script as the pod knows it."""
        if not self._files:
            return task
        script = self._options.script
        there = f"{manifests.SHIPPED_FOLDER}/{script.resolve().relative_to(shipped_root(script)).as_posix()}"
        given = str(script)
        place = task.command.index(given) if given in task.command else None
        if place is None:
            return task
        return replace(task, command=[*task.command[:place], there, *task.command[place + 1 :]])

    def token_secret(self, token: str) -> Json:
        """The Secret with the token."""
        return manifests.secret(self.run, self.run.label, {"token": token.encode()})

    def files(self) -> list[Json]:
        """What the pods mount, besides the user's own volumes."""
        things = []
        if self._tls:
            things.append(manifests.secret(self.run, f"{self.run.label}-tls", self._tls))
        if self._files:
            content = {self._keys[path]: data for path, data in self._files.items()}
            things.append(manifests.config_map(self.run, content))
        return things

    def objects(self, tasks: Sequence[Task], resources: Mapping[str, TaskResources]) -> list[Json]:
        """All objects of a run that nobody follows."""
        token = next((task.environment[TOKEN] for task in tasks if task.environment.get(TOKEN)), "")
        jobs = [
            manifests.task_job(
                self.run,
                task_name(self.run.label, task.job, task.index),
                self.in_pod(task),
                resources.get(task.label, TaskResources()),
                self.run.options.backoff_limit,
            )
            for task in tasks
        ]
        secrets = [self.token_secret(token)] if token else []
        return [manifests.service(self.run), *secrets, *self.files(), *jobs]

    def printed(self, tasks: Sequence[Task], resources: Mapping[str, TaskResources]) -> str:
        """The objects as YAML, with how to delete them."""
        import yaml

        text: str = yaml.safe_dump_all(
            self.objects(tasks, resources), sort_keys=False, default_flow_style=False
        )
        namespace = f" -n {self._options.namespace}" if self._options.namespace else ""
        lost = "".join(f"# Note: {line}\n" for line in (self.warnings(tasks[0]) if tasks else []))
        return (
            f"{lost}# Apply with: kubectl apply{namespace} -f FILE\n"
            f"# Delete with: kubectl delete{namespace} -l {self.run.selector} job,service,secret,configmap\n{text}"
        )


def _seconds(text: str | None) -> int | None:
    """A limit of time: seconds, or 2:00:00, or 1-12:00:00 with days."""
    if text is None:
        return None
    match = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d\d)|(\d+)s?", text.strip())
    if match is None or text.strip() in ("0", "0s"):
        raise ValueError(f"--time {text} is not a time. Write for example 2:00:00, 30:00 or 3600 (seconds).")
    if match[5]:
        return int(match[5])
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
