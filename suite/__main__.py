"""`python -m suite` is `lanecheck`."""

import sys

from suite.cli import main

if __name__ == "__main__":
    sys.exit(main())
