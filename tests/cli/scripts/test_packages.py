"""Scripts that are modules of a package."""

import pytest

from tensorfleet.cli.scripts.flags import flags_of
from tensorfleet.cli.scripts.packages import file_of, home_of, places_of
from tests.support import launching

pytestmark = pytest.mark.slow  # left out by `make quick`

BY_DOTS = "from .model import SIZE\nfrom . import model\nprint('size', SIZE, model.SIZE, __name__)\n"
BY_NAME = "import trainer.model\nimport model\nprint('size', trainer.model.SIZE, model.SIZE, __name__)\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "__init__.py").touch()
    (tmp_path / "trainer" / "model.py").write_text("SIZE = 7\n")
    return tmp_path


@pytest.mark.parametrize("source", [BY_DOTS, BY_NAME])
@pytest.mark.parametrize("given", [["trainer/task.py"], ["-m", "trainer.task"]])
def test_a_module_of_a_package_is_run_by_its_name_and_by_its_path(package, source, given):
    (package / "trainer" / "task.py").write_text(source)
    done = launching.run(package, "run", *given)
    assert done.code == 0 and "size 7 7 __main__" in done.stdout, done.stdout + done.stderr


def test_a_module_that_is_not_there_is_said_so(package):
    done = launching.run(package, "run", "-m", "trainer.tusk")
    assert done.code == 2 and "No module trainer.tusk" in done.stderr


def test_modules_and_packages_have_files(package):
    (package / "trainer" / "__main__.py").touch()
    assert str(file_of("trainer.model")) == "trainer/model.py"
    assert str(file_of("trainer")) == "trainer/__main__.py"
    assert file_of("tensor") is None


def test_where_a_script_imports_from(package):
    task = package / "trainer" / "task.py"
    assert home_of(task) == ("trainer", package)
    assert places_of(task, "import model") == ("", [str(package / "trainer"), str(package)])
    assert places_of(task, "  from ..trainer import model") == ("trainer", [str(package)])
    assert places_of(package / "task.py", "import model") == ("", [str(package)])
    other = package / "other" / "task.py"
    assert places_of(other, "from .model import net") == ("other", [str(package)])  # a package without a file


def test_flags_are_found_in_modules_of_the_package(package):
    (package / "trainer" / "model.py").write_text("flags.DEFINE_string('job_name', '', '')\n")
    (package / "trainer" / "task.py").write_text("import trainer.model\n")
    assert list(flags_of(package / "trainer" / "task.py")) == ["job_name"]
