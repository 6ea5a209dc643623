"""`python -m gbnn` is the command `gbnn`."""

import sys

from gbnn.cli import main

if __name__ == "__main__":
    sys.exit(main())
