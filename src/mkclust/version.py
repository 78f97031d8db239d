"""The version of the library, in one place, and those of what it computes with."""

__version__ = "0.4.0"


def versions() -> dict[str, str]:
    """Return the versions on which results depend, by the names of the packages."""
    # What takes long to import, and --help does not need.
    import platform
    from importlib import metadata

    others = {
        name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")
    }
    return {"mkclust": __version__, **others, "python": platform.python_version()}
