import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from datetime import timedelta
from itertools import chain
from types import SimpleNamespace

import pytest
from django.core.management import get_commands, load_command_class

from django_jobqueue import JobRequest, conf
from tests.pages import PAGES, ROOT, example, examples, for_this_django, table_rows

LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)[^)]*\)")


@pytest.mark.parametrize("shown", examples(), ids=str)
def test_an_example_compiles_and_imports_names_that_exist(shown):
    tree = ast.parse(for_this_django(shown.code))

    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module.partition(".")[0] not in {"django", "django_jobqueue", "django_tasks"}:
                continue
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"


def test_the_first_class_handler_runs():
    namespace = {"__name__": "an_example"}
    exec(example("first-job.md", "reports/handlers.py"), namespace)  # the page is ours
    handler = namespace["SendReport"]()
    job = SimpleNamespace(payload={"recipient": "ann"})

    assert handler.type == "reports.send"
    assert handler.process(job) == {"sent_to": "ann"}


def test_the_settings_page_lists_every_setting_with_its_default():
    rows = table_rows(ROOT / "docs" / "settings.md", "Key")
    written = {row[0]: eval(row[1], {"timedelta": timedelta}) for row in rows}

    assert written == dict(conf.DEFAULTS)


def test_the_first_job_lists_every_argument_of_enqueue():
    rows = table_rows(ROOT / "docs" / "first-job.md", "Argument")
    written = {name.strip("` ") for row in rows for name in row[0].split(",")}
    taken = set(inspect.signature(JobRequest).parameters)

    assert written == taken - {"type"}


def test_the_command_page_lists_every_option_of_the_worker():
    command = load_command_class(get_commands()["run_jobworker"], "run_jobworker")
    parser = command.create_parser("manage.py", "run_jobworker")
    django_own = {action.dest for action in type(parser)(add_help=True)._actions}
    django_own |= {
        "version",
        "verbosity",
        "settings",
        "pythonpath",
        "traceback",
        "no_color",
        "force_color",
        "skip_checks",
    }
    options = {
        option
        for action in parser._actions
        if action.dest not in django_own
        for option in action.option_strings
        if option.startswith("--")
    }
    rows = table_rows(ROOT / "docs" / "run_jobworker.md", "Option")

    assert {row[0].split()[0] for row in rows} == options


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"))],
    ids=lambda page: page.name,
)
def test_a_link_leads_to_a_file(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_dependency_is_argued_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    argued = (ROOT / "CONTRIBUTING.md").read_text()
    wanted = [
        *project["project"]["dependencies"],
        *chain(*project["project"]["optional-dependencies"].values()),
        *chain(*project["dependency-groups"].values()),
    ]
    names = {re.match(r"[\w-]+", entry)[0] for entry in wanted if isinstance(entry, str)}

    assert {name for name in names if f"`{name}`" not in argued} == set()


def test_ci_runs_the_readme_command():
    lines = [
        line
        for line in (ROOT / "README.md").read_text().splitlines()
        if line.startswith("pip install uv && ") and "pytest" in line
    ]

    assert len(lines) == 1


def test_the_pages_build_without_a_warning(tmp_path):
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "-q", "-b", "html"]
    command += ["-d", str(tmp_path / "doctrees"), str(ROOT / "docs"), str(tmp_path / "html")]

    built = subprocess.run(command, capture_output=True, text=True, check=False)

    assert built.returncode == 0, built.stderr
