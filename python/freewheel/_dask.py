"""What `--dask` of the command runs: the pending parts of a job on a cluster.

The job comes as JSON on standard input. Standard output has a line for each progress, and `error` with its words.
The rows go into the job's journal, which the command reads afterwards.
"""

import json
import sys
from typing import Any

from ._distribute import fill
from ._freewheel import JobPlan, __version__, fleet_plan, sweep_plan


def main() -> int:
    """Runs the job, and gives the exit code."""
    job = json.load(sys.stdin)
    if job["version"] != __version__:
        return failed(f"the Python package is Freewheel {__version__}, and the command {job['version']}")
    try:
        from distributed import Client
    except ImportError:
        return failed("Dask is not installed: pip install 'freewheel[dask]'")
    try:
        connect: Any = Client
        with connect(job["address"], timeout=20) as client:
            fill(plan(job), client.get_executor(), None, show)
    except Exception as error:
        return failed(str(error) or type(error).__name__)
    return 0


def plan(job: dict[str, Any]) -> JobPlan:
    """The parts of a job."""
    if "fleet" in job:
        return fleet_plan(json.dumps(job["fleet"]), job["table"])
    return sweep_plan(job["config"], job["over"], job["overrides"], job["seed"], job["output"])


def show(done: int, total: int) -> None:
    """A line of progress."""
    print(done, total, flush=True)


def failed(says: str) -> int:
    """The end of a job that failed."""
    print("error", says.replace("\n", " "), flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
