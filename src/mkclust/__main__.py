"""The command line as ``python -m mkclust``, for where the command itself is on no path."""

from mkclust.cli import main

if __name__ == "__main__":
    main()
