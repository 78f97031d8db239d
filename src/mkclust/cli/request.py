"""What ``mkclust cluster`` and the commands like it are asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkclust.cli.approximation import LandmarkOptions
from mkclust.cli.method import parse_kernels
from mkclust.cli.options import AUTO
from mkclust.cli.table_request import TableRequest

LABELS = "labels.csv"
RECORD = "run.json"


@dataclass(frozen=True)
class Request:
    """What was asked for: the options of the command, by their names."""

    inputs: list[str]
    n_clusters: Any
    method: str
    kernels: list[str] | None
    id: list[str] | None
    samples_in: list[str] | None
    join: str
    impute: str | None
    missing_views: str | None
    drop: list[str] | None
    approximation: str
    landmarks: int | None
    address: str | None
    solver: str | None
    anchor: Any
    labels: Path
    annotate: str | None
    run: Path | None
    plot: Path | None
    report: Path | None
    save: Path | None
    seed: int
    n_init: int | None
    tol: float | None
    max_iter: int | None
    psd: str | None
    settings: list[str] | None
    center: bool | None
    normalize: bool | None
    as_json: bool
    quiet: bool
    verbose: bool

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the method that have options; None leaves the estimator's default."""
        return {
            "n_clusters": None if self.n_clusters == AUTO else self.n_clusters,
            "random_state": self.seed,
            "n_init": self.n_init,
            "solver": self.solver,
            "anchor": self.anchor,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "psd": self.psd,
            "center": self.center,
            "normalize": self.normalize,
        }

    @property
    def kernels_asked_for(self) -> str | dict[str, str]:
        """The kernels of all views by one name, or those of some by their names."""
        return parse_kernels(self.kernels or [])

    @property
    def tables(self) -> TableRequest:
        """The options about tables."""
        return TableRequest.of(self.id, self.samples_in, self.drop, self.join, self.impute)

    @property
    def landmark_options(self) -> LandmarkOptions:
        """The options about landmarks; kernels that are computed on the fly are exact."""
        exact = self.kernels_asked_for == "on-the-fly" and self.approximation == "auto"
        choice = "none" if exact else self.approximation
        return LandmarkOptions(choice, self.landmarks, on_workers=self.address is not None)

    @property
    def record(self) -> Path:
        """Where the record of the run goes: beside the labels, unless ``--run`` names a file."""
        if self.run is not None:
            return self.run
        name = RECORD if self.labels.name == LABELS else f"{self.labels.stem}.{RECORD}"
        return self.labels.parent / name

    @property
    def outputs(self) -> list[Path]:
        """All files that are to be written."""
        paths = (self.labels, self.record, self.plot, self.report, self.save)
        return [path for path in paths if path is not None]
