"""`python -m tracker`: the command where no script of it is installed."""

import sys

from tracker.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
