"""What the tests share."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SQLITE = ROOT / "data/recorded/sqlite-ext4.csv.zst"
CLOSED = {
    "drive": "atlas10k",
    "scheduler": {"policy": "sptf"},
    "workload": {"kind": "closed", "outstanding": 20, "requests": 2000},
}

Command = Callable[..., str]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs the command line, and gives what it prints. Its folder `out` is not the repository's."""

    def run(*words: str | os.PathLike[str]) -> str:
        line = [sys.executable, "-m", "freewheel", *map(os.fspath, words)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
