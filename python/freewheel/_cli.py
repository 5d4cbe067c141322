"""The command `freewheel`: the same program as the binary."""

import signal
import sys

from ._freewheel import run_command_line


def main() -> int:
    """Runs the command line of this process, and gives the exit code."""
    # What a shell ignores for this program, as nohup does, stays ignored. SIGPIPE is ignored by Python as by
    # programs in Rust: a reader that has gone away is no error.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return run_command_line(["freewheel", *sys.argv[1:]], [sys.executable, "-m", "freewheel"])
