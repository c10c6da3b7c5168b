import sys
import threading

import pytest

from tensorfleet.base import index


@pytest.fixture
def entries(monkeypatch, tmp_path):
    """An empty index, and a folder for modules."""
    monkeypatch.setattr(index, "_MODULES", {"name": {}, "place": {}, "op": {}, "collection": {}})
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("registers_slowly", "registers_never"):
        sys.modules.pop(name, None)


def test_a_module_is_imported_for_the_first_of_its_keys_only(entries):
    (entries / "registers_slowly.py").write_text("")
    index.attach("registers_slowly\n name train Saver\n name . Saver\n op Save Restore\n")
    assert set(index.listed("name")) == {"train.Saver", "Saver"}
    assert index.load("op", "Save") and "registers_slowly" in sys.modules
    assert not index.load("op", "Save") and not index.load("op", "Unknown")


def test_a_thread_waits_for_a_module_that_another_thread_imports(entries, monkeypatch):
    (entries / "registers_slowly.py").write_text(
        "from tests_of_index import begun, go_on, done\nbegun.set()\nassert go_on.wait(60)\ndone.append(1)\n"
    )
    shared = type(sys)("tests_of_index")
    shared.begun, shared.go_on, shared.done = threading.Event(), threading.Event(), []
    monkeypatch.setitem(sys.modules, "tests_of_index", shared)
    index.attach("registers_slowly\n op Save\n")
    seen = []

    def use() -> None:
        index.load("op", "Save")
        seen.append(list(shared.done))

    threads = [threading.Thread(target=use, daemon=True) for _ in range(2)]
    threads[0].start()
    assert shared.begun.wait(60)
    threads[1].start()
    threads[1].join(0.5)  # it ends here only if it does not wait for the import
    shared.go_on.set()
    for thread in threads:
        thread.join(60)
    assert seen == [[1], [1]]


def test_a_module_that_cannot_be_imported_is_reported_at_every_use(entries):
    (entries / "registers_never.py").write_text("import a_package_that_nobody_has\n")
    index.attach("registers_never\n op Save\n")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="a_package_that_nobody_has"):
            index.load("op", "Save")
