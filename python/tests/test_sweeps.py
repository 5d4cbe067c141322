"""Sweeps: all combinations, the same bytes as the command line, killed and resumed."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import freewheel
import polars as pl
import pytest
from conftest import CLOSED, ROOT, SQLITE, Command

OVER = {"scheduler.policy": ["fcfs", "sptf"], "workload.outstanding": [1, 4, 16]}


def test_rows_are_those_of_single_runs(tmp_path: Path) -> None:
    sweep = freewheel.sweep(CLOSED, over=OVER, output=tmp_path / "sweep.parquet")
    table = sweep.to_polars()
    assert table.equals(pl.read_parquet(tmp_path / "sweep.parquet"))
    assert sweep.configurations == 6 and table["workload.outstanding"].to_list() == [1, 4, 16] * 2
    for row in table.iter_rows(named=True):
        alone = freewheel.simulate(CLOSED, overrides={key: row[key] for key in OVER})
        assert alone.result_hash == row["result_hash"]
        assert alone.response_ns_mean == row["response_ns_mean"]


def test_the_command_writes_the_same_bytes_on_any_number_of_threads(
    command: Command, tmp_path: Path
) -> None:
    config = tmp_path / "experiment.toml"
    config.write_text(freewheel.SimConfig(**CLOSED).to_toml())
    files = [tmp_path / f"{name}.parquet" for name in ["python", "one", "three"]]
    sweep = freewheel.sweep(config, over=OVER, output=files[0])
    over = ["--over", "scheduler.policy=fcfs,sptf", "--over", "workload.outstanding=1,4,16"]
    for jobs, file in zip(["1", "3"], files[1:]):
        command("sweep", config, *over, "--jobs", jobs, "-o", file)
    assert len({file.read_bytes() for file in files}) == 1
    said = command("sweep", config, *over, "-o", tmp_path / "again.parquet", "--json")
    assert said.replace("again", "python") == sweep.to_json()


def test_a_sweep_shows_what_it_has_and_is_drawn() -> None:
    sweep = freewheel.sweep(CLOSED, over={**OVER, "seed": [1, 2]})
    assert sweep.keys == [*OVER, "seed"]
    assert repr(sweep) == "<SweepReport 12 configurations, 0 of them run before>"
    shown = sweep._repr_html_()
    assert shown and "<th>workload.outstanding</th>" in shown and "12 rows" in shown
    assert shown.count("<tr>") == 11
    pytest.importorskip("matplotlib").use("agg")
    axes = freewheel.sweep(CLOSED, over=OVER).plot()
    assert axes.get_xlabel() == "workload.outstanding" and axes.get_ylabel() == "mean response time, ms"
    assert [line.get_label() for line in axes.lines] == ["fcfs", "sptf"]
    assert list(axes.lines[0].get_xdata()) == [1, 4, 16]
    bars = freewheel.sweep(CLOSED, over={"scheduler.policy": ["fcfs", "sptf"]}).plot()
    assert [label.get_text() for label in bars.get_yticklabels()] == ["fcfs", "sptf"]


def test_a_trace_is_swept_over_policies_and_drives() -> None:
    config = {"workload": {"kind": "trace", "file": SQLITE}}
    over = {"scheduler.policy": ["fcfs", "sptf"], "workload.replay": ["arrivals", "dependent"]}
    table = freewheel.sweep(config, over=over).to_polars()
    for row in table.iter_rows(named=True):
        alone = freewheel.simulate(config, overrides={key: row[key] for key in over})
        assert alone.result_hash == row["result_hash"]


def test_a_sweep_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    output, journal = tmp_path / "sweep.parquet", tmp_path / "sweep.parquet.journal"
    over = ["--over", f"seed={','.join(map(str, range(400)))}", "--set", "workload.requests=20000"]
    line = [sys.executable, "-m", "freewheel", "sweep", "examples/oltp.toml", *over, "-o", str(output)]
    process = subprocess.Popen(line, cwd=ROOT)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not journal.exists() or journal.read_bytes().count(b"\n") < 8):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not output.exists()
    known = journal.read_text().count("\n") - 1
    assert 5 <= known < 400
    done = subprocess.run([*line, "--json"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert f'"resumed": {known}' in done.stdout or f'"resumed": {known + 1}' in done.stdout
    assert not journal.exists()
    seeds = pl.read_parquet(output)["seed"].to_list()
    assert seeds == list(range(400))


def test_a_journal_of_another_sweep_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "sweep.parquet.journal").write_text("freewheel sweep of another kind\n")
    with pytest.raises(freewheel.Error, match="belongs to another"):
        freewheel.sweep(CLOSED, over=OVER, output=tmp_path / "sweep.parquet")
    assert not (tmp_path / "sweep.parquet").exists()


def test_wrong_values_are_known_before_anything_runs() -> None:
    with pytest.raises(freewheel.ConfigError, match="`outstanding` is 0"):
        freewheel.sweep(CLOSED, over={"workload.outstanding": [1, 0]})
    for wrong in [4, "fcfs", []]:
        with pytest.raises(freewheel.UsageError, match="a list of values"):
            freewheel.sweep(CLOSED, over={"workload.outstanding": wrong})
    with pytest.raises(freewheel.UsageError, match="a dict of lists"):
        freewheel.sweep(CLOSED, over={})
    with pytest.raises(freewheel.ConfigError, match="polcy"):
        freewheel.sweep(CLOSED, over={"scheduler.polcy": ["fcfs"]})
