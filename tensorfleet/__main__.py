"""`python -m tensorfleet script.py [arguments]`, or any command of `tensorfleet` (see `--help`)."""

from __future__ import annotations

import sys

from tensorfleet.base import settings


def main() -> None:
    """Runs a script in this process, else the command line."""
    arguments = sys.argv[1:]
    use_alias = arguments[:1] != ["--no-alias"]
    if not use_alias:
        arguments = arguments[1:]
    if arguments and (arguments[0].endswith(".py") or not use_alias):
        from tensorfleet.cli.scripts.bootstrap import answer_questions, tie_to_launcher
        from tensorfleet.cli.scripts.script import run_script
        from tensorfleet.cluster.inspection.signal_report import install

        tie_to_launcher()
        install()
        answer_questions()
        if settings.METRICS():
            from tensorfleet.cli.task_probe import serve_probe

            serve_probe()
        if (seconds := settings.NOTICE_SECONDS()) > 0 and not settings.SERVES():
            from tensorfleet.base.platform import notice

            notice.install(seconds)
            try:
                run_script(arguments[0], arguments[1:], use_alias)
            except SystemExit as end:
                if end.code:
                    raise
            notice.leave()
        else:
            run_script(arguments[0], arguments[1:], use_alias)
    else:
        from tensorfleet.cli.command import main as command

        command()


if __name__ == "__main__":
    main()
