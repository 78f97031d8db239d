"""The command line as ``python -m mkclust``, if the command itself is not on the path."""

from mkclust.cli import main

if __name__ == "__main__":
    main()
