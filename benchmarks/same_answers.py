"""Did a change of the code change an answer? Every method on every kind of input, before and after.

    OMP_NUM_THREADS=1 python benchmarks/same_answers.py --store before.npz
    OMP_NUM_THREADS=1 python benchmarks/same_answers.py --against before.npz
    OMP_NUM_THREADS=1 python benchmarks/same_answers.py --walk

Labels and predictions must be identical, weights and objectives agree to 1e-10; what was refused
must be refused with the same first line. Answers of other machines, library versions or numbers of
threads may differ by rounding: compare only within one of each. MKCLUST_DATA adds UCI Digit.

`--walk` counts the files and functions of the library that one fit and one predict go through. A
file is entered by every call that comes into it from another file of the library, or from outside.
"""

import argparse
import contextlib
import inspect
import os
import platform
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import scipy
import scipy.sparse
import sklearn
from scipy.spatial.distance import cdist

import mkclust
from mkclust import METHODS, SimpleMKKM
from mkclust.kernels import Nystroem
from mkclust.stack import as_stack
from paper.datasets import load

TOLERANCE = 1e-10
N_CLUSTERS = 10
N_TRAINING, N_NEW = 300, 20
TOO_SLOW_FOR_2000 = ("lmkkm", "onkc")
EXACT = ("labels", "predictions", "refusal")
PARSERS = "named_parts,as_views"
SOURCE = Path(mkclust.__file__).parent
MANY_RETURNS = 3

Answer = dict[str, np.ndarray]


@dataclass(frozen=True)
class Input:
    """One kind of input: what to fit on, what to predict, with which parameters and methods."""

    name: str
    training: Any
    new: Any
    parameters: dict[str, Any] = field(default_factory=dict)
    methods: tuple[str, ...] = tuple(METHODS)


@dataclass(frozen=True)
class MapRows:
    """Kernels in a memory map that are read some rows at a time."""

    kernels: np.memmap

    @property
    def n_kernels(self) -> int:
        return self.kernels.shape[0]

    @property
    def n_samples(self) -> int:
        return self.kernels.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.kernels.dtype

    def rows(self, start: int, stop: int) -> np.ndarray:
        return np.asarray(self.kernels[:, start:stop])


def inductive_methods() -> tuple[str, ...]:
    """Return the names of the methods that place new samples."""
    return tuple(name for name, method in METHODS.items() if hasattr(method, "predict"))


def gaussian_kernels(training: Mapping, new: Mapping) -> tuple[np.ndarray, np.ndarray]:
    """Return a Gaussian kernel of each view, and that of new samples with the training samples."""
    kernels, cross_kernels = [], []
    for name, view in training.items():
        squares = cdist(view, view, "sqeuclidean")
        width = np.median(squares)
        kernels.append(np.exp(-squares / width))
        cross_kernels.append(np.exp(-cdist(new[name], view, "sqeuclidean") / width))
    return np.stack(kernels), np.stack(cross_kernels)


def sparse_kernels(training: Mapping, new: Mapping) -> tuple[list, list]:
    """Return for each view the number of landmarks that are near to both of two samples."""
    kernels, cross_kernels = [], []
    for name, view in training.items():
        landmarks = view[::3]
        near, near_new = (_nearest(samples, landmarks) for samples in (view, new[name]))
        kernels.append((near @ near.T).tocsr())
        cross_kernels.append((near_new @ near.T).tocsr())
    return kernels, cross_kernels


def _nearest(samples: np.ndarray, landmarks: np.ndarray, count: int = 5) -> Any:
    """Return the incidence of samples and the landmarks nearest to them, sparse."""
    nearest = np.argsort(cdist(samples, landmarks), axis=1, kind="stable")[:, :count]
    rows = np.repeat(np.arange(len(samples)), count)
    shape = len(samples), len(landmarks)
    return scipy.sparse.csr_matrix((np.ones(nearest.size), (rows, nearest.ravel())), shape=shape)


def split_digits() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the bundled views of the training samples, and of new ones."""
    views = load("digits").views
    training = {name: view[:N_TRAINING].copy() for name, view in views.items()}
    new = {name: view[N_TRAINING : N_TRAINING + N_NEW].copy() for name, view in views.items()}
    return training, new


def digits_inputs(folder: Path, cleanup: contextlib.ExitStack) -> Iterator[Input]:
    """Yield the bundled digits as every kind of input that needs no optional library."""
    training, new = split_digits()
    K, cross = gaussian_kernels(training, new)
    precomputed = {"kernels": "precomputed"}
    inductive = inductive_methods()
    yield Input("array of kernels", K, cross)
    yield Input("list of kernels", list(K), list(cross), precomputed)
    yield Input("float32 kernels", K.astype(np.float32), cross.astype(np.float32))
    yield Input("sparse kernels", *sparse_kernels(training, new), precomputed)
    yield Input("dict of views", training, new)
    yield Input("list of views", list(training.values()), list(new.values()))
    yield Input("table", training["pixels"], new["pixels"])
    yield Input("on the fly", training, new, {"kernels": "on-the-fly"}, inductive)
    landmarks = {"approximation": Nystroem(50)}
    yield Input("Nystroem", training, new, landmarks, inductive)
    yield Input("Nystroem of a table", training["pixels"], new["pixels"], landmarks, inductive)
    mapped = store_map(K, folder / "fit.npy")
    yield Input("memory map", mapped, cross)
    yield Input("rows of a memory map", MapRows(mapped), cross, methods=inductive)


def optional_inputs(folder: Path, cleanup: contextlib.ExitStack) -> Iterator[Input]:
    """Yield the bundled digits as the kinds of input of those optional libraries that are there."""
    training, new = split_digits()
    K, cross = gaussian_kernels(training, new)
    if is_installed("h5py"):
        import h5py

        file = cleanup.enter_context(h5py.File(folder / "kernels.h5", "w"))
        yield Input("HDF5", file.create_dataset("K", data=K), cross)
    if is_installed("torch"):
        import torch

        yield Input("torch kernels", torch.from_numpy(K), torch.from_numpy(cross))
        tensors = [{k: torch.from_numpy(v) for k, v in part.items()} for part in (training, new)]
        yield Input("torch views", *tensors)
    if is_installed("dask"):
        import dask
        import dask.array as da

        cleanup.enter_context(dask.config.set(scheduler="threads"))
        chunks = [{k: da.from_array(v, (100, -1)) for k, v in p.items()} for p in (training, new)]
        yield Input("dask", *chunks, {"approximation": Nystroem(50)}, ("simplemkkm",))


def is_installed(library: str) -> bool:
    """Return whether an optional library is there, and say so where it is not."""
    if find_spec(library) is None:
        print(f"skipped: {library} is not installed")
        return False
    return True


def large_inputs(folder: Path, cleanup: contextlib.ExitStack) -> Iterator[Input]:
    """Yield UCI Digit, 2000 samples, as views and as kernels."""
    if "MKCLUST_DATA" not in os.environ:
        print("skipped: UCI Digit, as MKCLUST_DATA is not set")
        return
    views = load("digit").views
    new = {name: view[:N_NEW] for name, view in views.items()}
    methods = tuple(name for name in METHODS if name not in TOO_SLOW_FOR_2000)
    yield Input("UCI Digit, views", views, new, methods=methods)
    yield Input("UCI Digit, kernels", *gaussian_kernels(views, new), methods=methods)


def store_map(K: np.ndarray, path: Path) -> np.memmap:
    """Write kernels into a file and return its memory map."""
    np.save(path, K)
    return np.load(path, mmap_mode="r")


def answer_of_method(name: str, data: Input) -> Answer:
    """Fit a method and return what it learned and predicts."""
    model = METHODS[name](N_CLUSTERS, random_state=0, **data.parameters).fit(data.training)
    answer = {
        "weights": np.asarray(model.weights_),
        "labels": np.asarray(model.labels_),
        "objective": np.asarray(model.objective_),
    }
    if hasattr(model, "predict"):
        answer["predictions"] = np.asarray(model.predict(data.new))
    return answer


def answer_of_stack(kernels: Any, streamed: bool) -> Answer:
    """Return traces and products of kernels in a stack."""
    stack = as_stack(kernels, streamed=streamed)
    H = np.random.default_rng(0).normal(size=(stack.n_samples, 3))
    return {"traces": np.asarray(stack.traces()), "products": np.asarray(stack.apply(H))}


def cases(folder: Path, cleanup: contextlib.ExitStack) -> Iterator[tuple[str, Callable]]:
    """Yield the name of every case, and the function that answers it."""
    for source in (digits_inputs, optional_inputs, large_inputs):
        for data in source(folder, cleanup):
            for name in data.methods:
                yield (
                    f"{data.name}: {name}",
                    lambda name=name, data=data: answer_of_method(name, data),
                )
    mapped = store_map(gaussian_kernels(*split_digits())[0], folder / "stack.npy")
    for streamed in (True, False):
        yield (
            f"as_stack of a memory map: streamed={streamed}",
            lambda streamed=streamed: answer_of_stack(mapped, streamed),
        )


def all_answers() -> dict[str, Answer]:
    """Return the answer of every case; a refusal is one, too."""
    answers = {}
    with contextlib.ExitStack() as cleanup:
        folder = cleanup.enter_context(tempfile.TemporaryDirectory())
        for name, answer in cases(Path(folder), cleanup):
            try:
                answers[name] = answer()
            except Exception as error:
                answers[name] = {"refusal": np.array(first_line(error).replace(folder, ""))}
    return answers


def first_line(error: Exception) -> str:
    """Return the type of an exception and the first line of its message."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def environment() -> str:
    """Return what answers depend on beside the code of the library."""
    versions = f"NumPy {np.__version__}, SciPy {scipy.__version__}, sklearn {sklearn.__version__}"
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    return (
        f"{platform.machine()}, Python {platform.python_version()}, {versions}, {threads} threads"
    )


def store(path: Path, answers: dict[str, Answer]) -> None:
    """Write all answers into one file."""
    arrays = {f"{case}|{key}": value for case, a in answers.items() for key, value in a.items()}
    with path.open("wb") as file:
        np.savez_compressed(file, environment=np.array(environment()), **arrays)


def read(path: Path) -> tuple[str, dict[str, Answer]]:
    """Return what answers were stored under, and the answers."""
    answers: dict[str, Answer] = {}
    with np.load(path) as file:
        for name in file.files:
            case, _, key = name.partition("|")
            if key:
                answers.setdefault(case, {})[key] = file[name]
        return str(file["environment"]), answers


def difference(key: str, before: np.ndarray, after: np.ndarray) -> str:
    """Say how two arrays differ; nothing where they agree as they should."""
    if before.shape != after.shape:
        return f"{key} of shape {after.shape}, was {before.shape}"
    if key in EXACT:
        changed = int(np.sum(before != after))
        if key == "refusal" and changed:
            return f"refused with {str(after)!r}, was {str(before)!r}"
        return f"{changed} of {before.size} {key} differ" if changed else ""
    if not np.array_equal(np.isfinite(before), np.isfinite(after)):
        return f"{key} finite in other places"
    sound = np.isfinite(before)
    largest = np.max(np.abs(before[sound]), initial=0.0)
    apart = np.max(np.abs(before[sound] - after[sound]), initial=0.0)
    return f"{key} differ by {apart / (largest or 1):.1e}" if apart > TOLERANCE * largest else ""


def differences(before: Answer, after: Answer) -> list[str]:
    """Say in what two answers to one case differ."""
    if "refusal" in after and "refusal" not in before:
        return [f"now refused with {str(after['refusal'])!r}"]
    if "refusal" in before and "refusal" not in after:
        return [f"no longer refused with {str(before['refusal'])!r}"]
    if before.keys() != after.keys():
        return [f"has {sorted(after)}, had {sorted(before)}"]
    return [said for key in before if (said := difference(key, before[key], after[key]))]


def compare(path: Path, answers: dict[str, Answer]) -> int:
    """Print what differs from the stored answers, and return the number of such cases."""
    where, stored = read(path)
    if where != environment():
        print(f"stored under: {where}\nnow:          {environment()}")
    n_different = 0
    for case, before in stored.items():
        said = differences(before, answers[case]) if case in answers else ["not answered any more"]
        if said:
            n_different += 1
            print(f"{case}: {'; '.join(said)}")
    for case in answers.keys() - stored.keys():
        print(f"{case}: new, not compared")
    print(f"{n_different} of {len(stored)} cases differ")
    return n_different


class Walk:
    """The calls into the library under `sys.setprofile`: which functions, and from where."""

    def __init__(self) -> None:
        self.functions: Counter[tuple[str, str]] = Counter()
        self.entries: Counter[str] = Counter()
        self._generators: set[FrameType] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        file = library_file(frame)
        if event != "call" or file is None or frame.f_code.co_name.startswith("<"):
            return
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            # Each value that is asked of a generator is a call event of the same frame.
            if frame in self._generators:
                return
            self._generators.add(frame)
        self.functions[file, frame.f_code.co_qualname] += 1
        caller = frame.f_back
        while caller is not None and library_file(caller) is None:
            caller = caller.f_back
        if caller is None or library_file(caller) != file:
            self.entries[file] += 1

    def of(self, function: Callable, *arguments: Any) -> "Walk":
        """Record the calls that a function makes."""
        sys.setprofile(self)
        try:
            function(*arguments)
        finally:
            sys.setprofile(None)
        return self


def library_file(frame: FrameType) -> str | None:
    """Return the file of a frame, relative to the library; None outside it."""
    path = frame.f_code.co_filename
    return path[len(str(SOURCE)) + 1 :] if path.startswith(f"{SOURCE}{os.sep}") else None


def print_walk(parsers: list[str]) -> None:
    """Print through how much of the library one fit and one predict go."""
    views = load("digits").views
    model = SimpleMKKM(N_CLUSTERS, random_state=0)
    for name in ("fit", "predict"):
        walk = Walk().of(getattr(model, name), views)
        files = {file for file, _ in walk.functions}
        print(f"{name}: {len(files)} files, {len(walk.functions)} pairs of file and function")
        counts = {
            parser: sum(n for (_, f), n in walk.functions.items() if f.split(".")[-1] == parser)
            for parser in parsers
        }
        each = ", ".join(f"{parser} {count}" for parser, count in counts.items())
        print(f"{name}: the input is parsed {sum(counts.values())} times ({each})")
        # The first entry is no return.
        often = [(file, n - 1) for file, n in walk.entries.most_common() if n - 1 > MANY_RETURNS]
        print(f"{name}: {len(often)} files are entered again more than {MANY_RETURNS} times")
        for file, count in often:
            print(f"    {file} {count}")


def main() -> int:
    """Store, compare or walk; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--store", type=Path, metavar="FILE.npz")
    task.add_argument("--against", type=Path, metavar="FILE.npz")
    task.add_argument("--walk", action="store_true")
    parser.add_argument("--parsers", default=PARSERS, help="functions that parse the input")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.walk:
        print_walk(options.parsers.split(","))
        return 0
    started, cpu = time.perf_counter(), time.process_time()
    answers = all_answers()
    n_refused = sum("refusal" in answer for answer in answers.values())
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    print(f"{len(answers)} cases, {n_refused} of them refused, {wall:.0f} s ({cpu:.0f} s of CPU)")
    if options.store:
        store(options.store, answers)
        return 0
    return int(compare(options.against, answers) > 0)


if __name__ == "__main__":
    sys.exit(main())
