"""Run the command line as ``python -m mkclust.cli``."""

from mkclust.cli import main

if __name__ == "__main__":
    main()
