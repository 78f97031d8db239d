"""The command line as ``python -m mkclust``."""

from mkclust.cli import main

if __name__ == "__main__":
    main()
