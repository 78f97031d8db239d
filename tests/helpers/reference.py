"""Data and numbers that lie outside the repository."""

import os
from pathlib import Path

import pytest


def reference_folder(variable):
    """Return the folder that a variable of the environment names, or skip the test."""
    folder = os.environ.get(variable)
    if not folder or not Path(folder).is_dir():
        pytest.skip(f"{variable} is not set")
    return Path(folder)
