"""What `--dask` of the command runs: the pending parts of a job on a cluster.

The job comes as JSON on standard input. Standard output has a line for each progress, and `error` with its words.
The rows go into the job's journal, which the command reads afterwards.
"""

import json
import sys
from typing import Any

from ._distribute import fill
from ._errors import Error
from ._freewheel import FleetPlan, SweepPlan


def main() -> int:
    """Runs the job, and gives the exit code."""
    job = json.load(sys.stdin)
    try:
        from distributed import Client
    except ImportError:
        return failed("Dask is not installed: pip install 'freewheel[dask]'")
    try:
        connect: Any = Client
        with connect(job["address"], timeout=20) as client:
            fill(plan(job), client.get_executor(), None, show)
    except (Error, OSError) as error:
        return failed(str(error))
    return 0


def plan(job: dict[str, Any]) -> FleetPlan | SweepPlan:
    """The parts of a job."""
    if "fleet" in job:
        return FleetPlan(json.dumps(job["fleet"]), job["table"])
    return SweepPlan(job["config"], job["over"], job["overrides"], job["seed"], job["output"])


def show(done: int, total: int) -> None:
    """A line of progress."""
    print(done, total, flush=True)


def failed(says: str) -> int:
    """The end of a job that failed."""
    print("error", says.replace("\n", " "), flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
