"""Install the wheel and the source archive into empty environments and use them there.

Run by `make dist`, away from the source tree: what works here works for whoever
installs the library. Prints what each choice of extras takes on disk.
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSUMER = ROOT / "tests" / "typing" / "consumer.py"
README = ROOT / "README.md"
# In bytes, twice what 0.4.0 has: a larger wheel holds more than code.
LARGEST_WHEEL = 1_200_000
# What is no Python and has to be in both archives.
PAGE = "explain/report/page"
DATA = ("py.typed", f"{PAGE}.html.j2", f"{PAGE}.css", f"{PAGE}.js")
# Packages that the extras a user has not asked for would bring.
NOT_OF_CLI = ("dask", "pyarrow", "jinja2", "matplotlib", "h5py", "anndata", "skops")
FIT_AND_PREDICT = """
import pathlib, sys
import mkclust
from mkclust.datasets import load

assert "site-packages" in mkclust.__file__, mkclust.__file__
folder = pathlib.Path(mkclust.__file__).parent
missing = [name for name in sys.argv[1:] if not (folder / name).is_file()]
assert not missing, missing
views = {name: view[:300] for name, view in load("digits").views.items()}
for name in ("simplemkkm", "agreement-kkm"):
    model = mkclust.METHODS[name](10, random_state=0).fit(views)
    assert (model.predict(views) == model.labels_).all()
print("mkclust", mkclust.__version__, "fits and predicts")
"""
WRITE_INPUTS = """
import numpy as np

rng = np.random.default_rng(0)
X = 5 * rng.normal(size=(3, 4))[np.arange(60) % 3] + rng.normal(size=(60, 4))
np.save("table.npy", X)
np.savetxt("table.csv", X, delimiter=",", header="a,b,c,d", comments="")
"""


def main() -> None:
    """Check every archive in a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the archives are")
    folder = parser.parse_args().folder.resolve()
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    check_contents(wheel, archive)
    check_size(wheel)
    check_readme(wheel)
    with tempfile.TemporaryDirectory() as scratch:
        check_wheel(Environment(Path(scratch, "wheel")), wheel)
        check_archive(Environment(Path(scratch, "archive")), archive)
    say(f"{wheel.name} and {archive.name} work")


class Environment:
    """A virtual environment with nothing in it, and a folder to work in."""

    def __init__(self, root: Path):
        self.folder = root / "work"
        self.folder.mkdir(parents=True)
        self.venv = root / "venv"
        subprocess.run([sys.executable, "-m", "venv", self.venv], check=True)
        self.python = self.venv / "bin" / "python"
        self.empty = self.megabytes()

    def install(self, what: str) -> None:
        """Install a package."""
        self.run(self.python, "-m", "pip", "install", "--quiet", what)

    def run(self, *command: object, fails_with: str = "") -> str:
        """Return what a command prints, which succeeds, or fails with a sentence."""
        hidden = ("PYTHONPATH", "PYTHONHOME")
        variables = {
            name: value for name, value in os.environ.items() if name not in hidden
        }
        variables["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
        )
        output = done.stdout + done.stderr
        shown = f"{' '.join(str(part) for part in command)}\n{output}"
        if not fails_with:
            if done.returncode:
                raise SystemExit(f"failed: {shown}")
        elif (
            done.returncode != 2
            or fails_with not in output
            or len(output.splitlines()) != 1
        ):
            raise SystemExit(
                f"should have failed with one line with {fails_with!r}: {shown}"
            )
        return output

    def mkclust(self, *arguments: object, fails_with: str = "") -> str:
        """Run the command line."""
        return self.run(
            self.venv / "bin" / "mkclust", *arguments, fails_with=fails_with
        )

    def fit_and_predict(self) -> None:
        """Use the library, with all that its package has to hold."""
        say(self.run(self.python, "-c", FIT_AND_PREDICT, *DATA).strip())

    def run_readme(self) -> None:
        """Run the examples of the README, as whoever copies them does."""
        options = ("-o", "NORMALIZE_WHITESPACE", "-o", "ELLIPSIS")
        self.run(self.python, "-m", "doctest", *options, README)
        say("the examples of README.md work")

    def packages(self) -> set[str]:
        """Return the names of what is installed."""
        lines = self.run(
            self.python, "-m", "pip", "list", "--format=freeze"
        ).splitlines()
        return {line.partition("==")[0].lower() for line in lines}

    def megabytes(self) -> float:
        """Return what the environment takes on disk, without what Python compiles."""
        files = (path for path in self.venv.rglob("*") if path.suffix != ".pyc")
        return sum(path.stat().st_size for path in files if path.is_file()) / 1e6

    def tell_size(self, extras: str) -> None:
        """Print what an installation takes."""
        n_packages = len(self.packages() - {"pip", "setuptools"})
        say(
            f"size of {extras}: {self.megabytes() - self.empty:.0f} MB, {n_packages} "
            "packages"
        )


def check_contents(wheel: Path, archive: Path) -> None:
    """Refuse archives that lack a file of the package, or hold what is not of it."""
    with zipfile.ZipFile(wheel) as file:
        in_wheel = {name for name in file.namelist() if ".dist-info/" not in name}
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    in_archive = {
        name.removeprefix("src/") for name in names if name.startswith("src/mkclust/")
    }
    # Folders are entries of some archives.
    in_archive = {name for name in in_archive if Path(name).suffix}
    if in_wheel != in_archive:
        raise SystemExit(
            f"only in one of both archives: {sorted(in_wheel ^ in_archive)}"
        )
    if strange := sorted(name for name in in_wheel if not name.startswith("mkclust/")):
        raise SystemExit(f"no part of the package, but in the wheel: {strange}")
    if lost := {f"mkclust/{name}" for name in DATA} - in_wheel:
        raise SystemExit(f"missing from the archives: {sorted(lost)}")
    if "tests/helpers/views.py" not in names or "docs/guides/tables.md" not in names:
        raise SystemExit("the source archive lacks its tests, or what they read")


def check_size(wheel: Path) -> None:
    """Print the size of the wheel, and refuse one that holds more than code."""
    size = wheel.stat().st_size
    say(f"size of {wheel.name}: {size / 1e3:.0f} kB")
    if size > LARGEST_WHEEL:
        raise SystemExit(f"the wheel has more than {LARGEST_WHEEL / 1e3:.0f} kB")


def check_readme(wheel: Path) -> None:
    """Refuse a README with links that lead nowhere on an index of packages."""
    with zipfile.ZipFile(wheel) as file:
        (metadata,) = (n for n in file.namelist() if n.endswith(".dist-info/METADATA"))
        readme = file.read(metadata).decode("utf-8").partition("\n\n")[2]
    if not readme.startswith(README.read_text(encoding="utf-8").splitlines()[0]):
        raise SystemExit(f"the metadata lacks the README: {readme[:80]!r}")
    links = r"\]\((?!https:|#)([^)]*)\)|^\[.+?\]: (?!https:)(.*)$"
    if relative := re.findall(links, readme, re.MULTILINE):
        raise SystemExit(f"relative links in the metadata's README: {relative}")


def check_wheel(here: Environment, wheel: Path) -> None:
    """Install a wheel without extras, with the command line, and with everything."""
    here.install(str(wheel))
    here.fit_and_predict()
    here.run_readme()
    here.mkclust("--version", fails_with='pip install "mkclust[cli]"')
    here.tell_size("the library alone")

    here.install(f"{wheel}[cli]")
    if unasked := here.packages() & set(NOT_OF_CLI):
        raise SystemExit(f"mkclust[cli] brings {sorted(unasked)}")
    say(here.mkclust("--version").strip())
    here.run(here.python, "-c", WRITE_INPUTS)
    for name in ("table.npy", "table.csv"):
        here.mkclust("cluster", name, "-k", 3)
    for arguments, extra in (
        (("cluster", "table.npy", "-k", 3, "--plot", "fit.png"), "plot"),
        (("cluster", "table.npy", "-k", 3, "--report", "fit.html"), "report"),
        (("cluster", "table.npy", "-k", 3, "--save", "model.skops"), "save"),
        (("demo",), ""),
    ):
        here.mkclust(
            *arguments, fails_with=f'pip install "mkclust[{extra}' if extra else "pip"
        )
    here.tell_size("[cli]")

    here.install(f"{wheel}[all]")
    here.fit_and_predict()
    here.mkclust("demo")
    here.mkclust(
        "cluster", "table.csv", "-k", 3, "--save", "model.skops", "--report", "fit.html"
    )
    here.mkclust("predict", "model.skops", "table.csv", "--labels", "new.csv")
    here.tell_size("[all]")
    strict = (
        "--strict",
        "--config-file=",
        "--python-executable",
        here.python,
        CONSUMER,
    )
    say("types: " + here.run(sys.executable, "-m", "mypy", *strict).strip())


def check_archive(here: Environment, archive: Path) -> None:
    """Install a source archive, with the command line."""
    here.install(f"{archive}[cli]")
    here.fit_and_predict()
    say(here.mkclust("--version").strip())


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
