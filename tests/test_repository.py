"""What a host of the repository runs and shows: workflows, hooks and templates."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from mkclust import __version__

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
SYSTEMS = {"ubuntu-latest", "macos-latest", "windows-latest"}


def read(path):
    """Return a file of YAML."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs():
    """Return all jobs of all workflows, by their names."""
    return {
        f"{path.stem}: {name}": job
        for path in WORKFLOWS
        for name, job in read(path)["jobs"].items()
    }


def commands():
    """Return all shell commands of all workflows."""
    return [
        step["run"] for job in jobs().values() for step in job["steps"] if "run" in step
    ]


def make_targets():
    """Return the targets of the Makefile, with their recipes."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w-]+):[^=\n]*\n((?:\t.*\n)*)", text, re.MULTILINE))


@pytest.fixture
def release(monkeypatch):
    """Let tests import the scripts of a release."""
    monkeypatch.syspath_prepend(str(ROOT / "release"))


def test_every_job_runs_steps_of_pinned_actions_with_few_rights():
    for name, job in jobs().items():
        runners = {job["runs-on"]} - {"${{ matrix.system }}"}
        assert runners <= SYSTEMS, name
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), (name, step)
            assert re.fullmatch(r"[\w./-]+@[\w./]+", step.get("uses", "a@1")), step
    for path in WORKFLOWS:
        assert read(path)["permissions"] == {"contents": "read"}


def test_jobs_need_jobs_of_their_workflow():
    for path in WORKFLOWS:
        names = read(path)["jobs"]
        for job in names.values():
            assert {job.get("needs")} - {None} <= set(names)


def test_tests_run_with_every_supported_python_on_three_systems():
    matrix = jobs()["tests: unit"]["strategy"]["matrix"]
    supported = {
        line.rpartition(" ")[2]
        for line in PROJECT["classifiers"]
        if re.search(r":: 3\.\d+$", line)
    }
    assert set(matrix["python"]) == supported
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"
    assert set(matrix["system"]) == SYSTEMS


def test_commands_of_workflows_are_shell_and_name_targets_extras_and_files():
    targets = make_targets()
    extras = PROJECT["optional-dependencies"]
    for command in commands():
        if os.name == "posix":
            done = subprocess.run(["bash", "-n", "-c", command], capture_output=True)
            assert not done.returncode, done.stderr
        words = shlex.split(command)
        if words[0] == "make":
            asked = {word for word in words[1:] if "=" not in word}
            assert asked <= set(targets), command
        for extra in re.findall(r"\.\[([\w,]+)\]", command):
            assert set(extra.split(",")) <= set(extras), command
        for path in re.findall(r"\b(?:release|tests|docs)/[\w./]+\.py", command):
            assert (ROOT / path).is_file(), path


def test_variables_given_to_make_are_used_by_the_makefile():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in commands():
        for variable in re.findall(r"\bmake\b.*?\b([A-Z]+)=", command):
            assert f"$({variable})" in text, command


def test_the_tests_of_a_workflow_are_those_of_make():
    recipe = make_targets()["unit"]
    selected = '-m "not slow" tests src README.md'
    (command,) = (line for line in commands() if "pytest" in line)
    assert recipe.rstrip().endswith(selected)
    assert command.endswith(selected)


def test_hooks_before_a_commit_are_the_checks_of_make():
    (local,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    targets = make_targets()
    checks = targets["lint"] + targets["types"] + targets["imports"]
    for hook in local["hooks"]:
        program = hook["entry"].removesuffix(" --fix")
        assert f"$(BIN)/{program}" in checks, program
    assert len(local["hooks"]) == checks.count("$(BIN)/")


def test_only_what_publishes_may_sign():
    may_sign = {
        name
        for name, job in jobs().items()
        if "id-token" in (job.get("permissions") or {})
    }
    assert may_sign == {"docs: publish", "release: publish"}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_of_issues_have_fields_of_different_names(path):
    form = read(path)
    if path.stem == "config":
        assert all({"name", "url", "about"} <= set(x) for x in form["contact_links"])
        return
    assert {"name", "description", "body"} <= set(form)
    names = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(set(names)) == len(names) > 0


def test_addresses_in_pages_of_the_repository_are_those_of_the_project():
    repository = PROJECT["urls"]["Repository"]
    pages = [*GITHUB.rglob("*.yml"), *ROOT.glob("*.md"), ROOT / "CITATION.cff"]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        for address in re.findall(r"https://github\.com/\w+/mkclust\w*", text):
            assert address == repository, path


def test_the_notes_of_a_release_are_a_section_of_the_changelog():
    script = str(ROOT / "release" / "notes.py")
    tag = f"v{__version__}"
    done = subprocess.run([sys.executable, script, tag], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    wrong = subprocess.run(
        [sys.executable, script, "v0.0.1"], capture_output=True, text=True
    )
    assert "the tag is v0.0.1, but" in wrong.stderr


def test_the_recipe_has_the_dependencies_of_the_library(release, tmp_path):
    from recipe import recipe

    archive = tmp_path / "mkclust-1.2.3.tar.gz"
    archive.write_bytes(b"source")
    made = yaml.safe_load(recipe(PYPROJECT, archive))

    assert made["context"] == {"version": "1.2.3", "python_min": "3.11"}
    run = {line.split()[0] for line in made["requirements"]["run"]}
    assert {"python", "numpy", "scikit-learn", "typer"} <= run
    optional = {line.split()[0] for line in made["requirements"]["run_constraints"]}
    assert {"dask-core", "anndata"} <= optional
    assert not run & optional
