"""The bundled data set: four views of handwritten digits, and tables of the demo."""

import numpy as np
import pandas as pd

from mkclust.datasets.dataset import Dataset

# The images have no names of their own.
IDS = [f"image{number:04d}" for number in range(1797)]


def read_digits() -> Dataset:
    """Return four views of scikit-learn's handwritten digits."""
    images, y = _images()
    diagonals = [
        turned.trace(offset, axis1=1, axis2=2)
        for turned in (images, images[:, ::-1])
        for offset in range(-7, 8)
    ]
    views = {
        "pixels": images.reshape(len(images), -1),
        "fourier": _frequencies(images),
        "gradients": _gradient_histograms(images),
        "projections": np.column_stack(
            [images.sum(axis=2), images.sum(axis=1), *diagonals]
        ),
    }
    return Dataset(
        "digits",
        views,
        None,
        y,
        tuple(views),
        "Four views of the 8 x 8 images of handwritten digits in scikit-learn.",
    )


def digit_tables() -> tuple[dict[str, pd.DataFrame], pd.Series]:
    """Return four tables of the digits in different orders, and the digits by id."""
    images, y = _images()
    frequencies = [
        f"frequency {down}/{right}" for down in range(8) for right in range(5)
    ]
    corners = ("upper left", "upper right", "lower left", "lower right")
    # The gradient points to darker pixels: 0 degrees is ink to the right, 90 degrees
    # ink below.
    directions = [
        f"{corner} {45 * turn} degrees" for corner in corners for turn in range(8)
    ]
    views = {
        "rows": ([f"row {i}" for i in range(1, 9)], images.sum(axis=2)),
        "columns": ([f"column {i}" for i in range(1, 9)], images.sum(axis=1)),
        "fourier": (frequencies, _frequencies(images)),
        "gradients": (directions, _gradient_histograms(images)),
    }
    rng = np.random.default_rng(0)
    tables = {}
    for name, (columns, values) in views.items():
        tables[name] = pd.DataFrame(values, IDS, columns).iloc[
            rng.permutation(len(IDS))
        ]
    return tables, pd.Series(y, IDS)


def digit_images() -> pd.Series:
    """Return the 8 x 8 images of the digits by id."""
    images, _ = _images()
    return pd.Series(list(images), IDS)


def _images() -> tuple[np.ndarray, np.ndarray]:
    """Return the digits as images of 8 x 8 pixels, between 0 and 1."""
    # Slow, and not needed if only kernels are clustered.
    from sklearn.datasets import load_digits

    pixels, y = load_digits(return_X_y=True)
    return pixels.reshape(-1, 8, 8) / 16, y


def _frequencies(images: np.ndarray) -> np.ndarray:
    """Return how strong the frequencies of each image are."""
    return np.abs(np.fft.rfft2(images)).reshape(len(images), -1)


def _gradient_histograms(images: np.ndarray, bins: int = 8) -> np.ndarray:
    """Return histograms of gradient directions in 2 x 2 cells."""
    down, right = np.gradient(images, axis=(1, 2))
    # Multiples of 45 degrees are frequent between pixels: they lie in the middle of a
    # bin, for on a border rounding errors would decide.
    bin_of = np.rint(np.arctan2(down, right) * bins / (2 * np.pi)) % bins
    votes = np.hypot(down, right)[..., None] * (bin_of[..., None] == np.arange(bins))
    return votes.reshape(-1, 2, 4, 2, 4, bins).sum(axis=(2, 4)).reshape(len(images), -1)
