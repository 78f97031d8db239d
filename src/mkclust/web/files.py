"""Files of a report: written completely, or not at all."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path


def write_whole(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder so that each appears whole, and none before all are written.

    Parameters
    ----------
    folder : Path
        Created where it is missing; files of the same names are replaced.
    contents : mapping of str to bytes
        From name to content.

    Returns
    -------
    list of Path
        The files, in the order given.

    Raises
    ------
    ValueError
        If the folder is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is a file; name a folder for the report, or a new one")
    folder.mkdir(parents=True, exist_ok=True)
    drafts: list[tuple[Path, Path]] = []
    try:
        for name, content in contents.items():
            draft = folder / f".{secrets.token_hex(4)}.{name}"
            drafts.append((draft, folder / name))
            draft.write_bytes(content)
        for draft, target in drafts:
            os.replace(draft, target)
    finally:
        for draft, _ in drafts:
            draft.unlink(missing_ok=True)
    return [target for _, target in drafts]
