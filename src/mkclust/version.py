"""The version of the library, in one place, and those of what it computes with."""

import platform
from importlib import metadata

__version__ = "0.3.0"


def versions() -> dict[str, str]:
    """Return the versions on which results depend, by the names of the packages."""
    others = {
        name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")
    }
    return {"mkclust": __version__, **others, "python": platform.python_version()}
