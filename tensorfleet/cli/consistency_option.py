"""The option `--consistency` of `tensorfleet run`."""

from __future__ import annotations

import typer

from tensorfleet.base import settings
from tensorfleet.fleet.consistency.text import parse


def told_consistency(text: str | None, no_alias: bool) -> dict[str, str]:
    """What the environment of tasks tells of the option. Raises `typer.BadParameter` for a text without a meaning."""
    if text is None:
        return {}
    if no_alias:
        raise typer.BadParameter(
            "An installed TensorFlow has no consistency. Leave out --no-alias or --consistency.",
            param_hint="--consistency",
        )
    try:
        return {settings.CONSISTENCY.name: parse(text).text}
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--consistency") from None
