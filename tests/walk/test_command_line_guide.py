"""Every command of the guide to the command line, on files such as it names."""

import os

import numpy as np
import pytest
import scipy.io

from helpers.cli import invoke
from helpers.docs import commands

pytestmark = pytest.mark.slow

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytest.importorskip("skops")

# Other machines are not at hand.
COMMANDS = [
    each for each in commands("docs/guides/command_line.md") if "--cluster" not in each
]
WRITTEN = ("--report", "--plot", "--labels", "--save")


def clusters(rng, n, k, width=6, spread=5):
    """Return one view of n samples in k clear clusters."""
    return spread * rng.normal(size=(k, width))[np.arange(n) % k] + rng.normal(
        size=(n, width)
    )


def write_files():
    """Write what the guide calls its inputs, in their formats."""
    rng = np.random.default_rng(0)
    for name, n in (("views.mat", 60), ("new.mat", 6)):
        same = np.random.default_rng(1)
        scipy.io.savemat(name, {"X1": clusters(same, n, 3), "X2": clusters(same, n, 3)})
    for name in ("rna", "methylation"):
        np.save(f"{name}.npy", clusters(rng, 60, 4))
    X = clusters(rng, 60, 5)
    np.savez("kernels.npz", K=np.stack([X @ X.T, (1 + X @ X.T) ** 2]))
    for name in ("a", "b"):
        frame = pd.DataFrame(clusters(rng, 240, 20)).add_prefix("x")
        frame.to_parquet(f"{name}.parquet", index=False)
    ids = pd.Index([f"P{i:02}" for i in range(60)], name="sample")
    mrna, mirna, clinical = (
        pd.DataFrame(clusters(rng, 60, 4), ids).add_prefix("g") for _ in "abc"
    )
    mrna.sample(frac=1, random_state=0).to_csv("mrna.tsv", sep="\t")
    mirna[:55].T.to_csv("mirna.csv.gz")
    clinical.loc["P03", "g1"] = np.nan
    clinical["sex"] = np.where(rng.random(60) < 0.5, "f", "m")
    clinical.to_parquet("clinical.parquet")
    clinic = pd.DataFrame(
        {"age": rng.integers(30, 80, size=60), "stage": np.arange(60) % 4}
    )
    clinic.to_parquet("clinic.parquet")
    mrna.to_csv("rna.csv")
    mrna.add_prefix("p").to_csv("protein.csv")
    survival = {
        "months": rng.exponential(20, size=60),
        "died": np.arange(60) % 2,
    }
    clinic.assign(**survival).set_index(ids).to_csv("clinic.csv")


@pytest.fixture
def scheduler():
    """Return the address of a small cluster of dask."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        yield cluster.scheduler_address


def test_every_command_of_the_guide_runs_and_writes_what_it_says(
    tmp_path, monkeypatch, scheduler
):
    monkeypatch.chdir(tmp_path)
    write_files()
    for words in COMMANDS:
        command = [scheduler if word.startswith("tcp://") else word for word in words]
        result = invoke(*command)
        assert result.exit_code == 0, (command, result.output)
        files = {command[i + 1] for i, word in enumerate(command) if word in WRITTEN}
        assert files <= set(os.listdir()), command
    assert {"labels.csv", "run.json", "out.run.json"} <= set(os.listdir())
