"""`python -m mire`: the command line."""

from mire.cli.main import main

main()
