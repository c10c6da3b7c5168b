"""pdb over a connection: the task runs on at full speed, whatever its user does."""

import subprocess
import sys
import textwrap

PROGRAM = """
    import os, sys, threading
    import tensorfleet
    from tensorfleet.cluster.inspection import attach, signal_report

    def never():
        pass

    calls = [0]

    def work():
        calls[0] += 1

    def client():
        number = attach.open_terminal(None, {}).content["id"]

        def talk(text):
            told = attach.talk(None, {"id": number, "text": text, "seconds": 5.0}).content
            while not (told["asks"] or told["ended"]):
                told = attach.talk(None, {"id": number, "seconds": 5.0}).content
            return told

        while not attach.talk(None, {"id": number, "seconds": 5.0}).content["asks"]:
            pass
        talk("restart")
        talk("b never")
        attach.talk(None, {"id": number, "text": "c", "seconds": 0.0})
        before = calls[0]
        while calls[0] == before:
            pass
        talk("quit")
        print("left")
        done.set()

    signal_report.install()
    done = threading.Event()
    threading.Thread(target=client, daemon=True).start()
    while not done.is_set():
        work()
    print("traced" if sys.gettrace() else "free")
"""


def test_who_leaves_between_two_breakpoints_leaves_nothing_traced_and_restart_does_not_end_the_program(
    tmp_path,
):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["left", "free"]
