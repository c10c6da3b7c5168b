"""Topic `settings`: every setting that people set, with the value that this task uses and where it comes from.

The token and the page's key never leave the task: of them the report says only that they are set.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from tensorfleet.base import settings
from tensorfleet.cluster.inspection.topics import NoOptions, Options, Report, chosen
from tensorfleet.cluster.transport.token import secured

if TYPE_CHECKING:
    from tensorfleet.cluster.server import Server


def report(server: Server | None, options: Options) -> Report:
    """The settings in the order of docs/settings.md. `source` is default, environment, or program."""
    chosen(NoOptions, options)
    program = _by_program()
    told = [
        dataclasses.replace(one, value=program[one.name], source="program", problem=None)
        if one.name in program
        else one
        for one in settings.in_use(os.environ)
    ]
    return Report({"settings": [dataclasses.asdict(one) for one in told]})


def _by_program() -> dict[str, str]:
    """What `tf.fleet.secure` has set: it goes before the environment."""
    values = {}
    if secured.token:
        values[settings.TOKEN.name] = settings.shown(settings.TOKEN, str(secured.token))
    if secured.tls:
        values[settings.TLS.name] = settings.shown(settings.TLS, secured.tls)
    if secured.mutual is not None:
        values[settings.TLS_MUTUAL.name] = settings.shown(settings.TLS_MUTUAL, secured.mutual)
    return values
