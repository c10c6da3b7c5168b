"""`python -m tensorfleet.cli.dashboard`: the process of the page, which the launcher starts."""

from tensorfleet.cli.dashboard.page_process import main

main()
