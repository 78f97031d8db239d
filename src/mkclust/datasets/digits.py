"""The bundled data set: four views of handwritten digits."""

import numpy as np

from mkclust.datasets.base import Dataset


def read_digits() -> Dataset:
    """Return four views of scikit-learn's handwritten digits."""
    from sklearn.datasets import load_digits  # not worth the wait where only kernels are clustered

    pixels, y = load_digits(return_X_y=True)
    images = pixels.reshape(-1, 8, 8) / 16
    views = {
        "pixels": images.reshape(len(images), -1),
        "fourier": np.abs(np.fft.rfft2(images)).reshape(len(images), -1),
        "gradients": _gradient_histograms(images),
        "projections": _projections(images),
    }
    description = "Four views of the 8 x 8 images of handwritten digits in scikit-learn."
    return Dataset("digits", views, None, y, tuple(views), description)


def _gradient_histograms(images: np.ndarray, bins: int = 8) -> np.ndarray:
    """Return the histograms of gradient directions of 2 x 2 cells, weighted by magnitude."""
    down, right = np.gradient(images, axis=(1, 2))
    # Multiples of 45 degrees are frequent between pixels: they lie in the middle of a bin,
    # for on a border rounding errors would decide.
    bin_of = np.rint(np.arctan2(down, right) * bins / (2 * np.pi)) % bins
    votes = np.hypot(down, right)[..., None] * (bin_of[..., None] == np.arange(bins))
    return votes.reshape(-1, 2, 4, 2, 4, bins).sum(axis=(2, 4)).reshape(len(images), -1)


def _projections(images: np.ndarray) -> np.ndarray:
    """Return the sums along rows, columns and both diagonals."""
    diagonals = [
        turned.trace(offset, axis1=1, axis2=2)
        for turned in (images, images[:, ::-1])
        for offset in range(-7, 8)
    ]
    return np.column_stack([images.sum(axis=2), images.sum(axis=1), *diagonals])
