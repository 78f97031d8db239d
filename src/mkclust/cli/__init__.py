"""The command line: ``cluster`` and what goes with it, ``bench``, ``report``, ``demo``.

Results go to standard output and to files; progress, warnings and errors go to standard
error. An expected failure is one line, exit code 2, and no file left behind; only the
labels and the record of a finished fit stay if its picture or its page fails.
"""

import sys

try:
    from mkclust.cli.app import app, main
except ModuleNotFoundError as error:
    if error.name not in ("typer", "rich"):
        raise
    sys.stderr.write(
        'mkclust: the command line needs typer: pip install "mkclust[cli]"\n'
    )
    raise SystemExit(2) from None

__all__ = ["app", "main"]
