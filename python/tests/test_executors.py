"""Sweeps and fleets on executors: the same bytes as here, and nothing run twice."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import freewheel
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import CLOSED, ROOT, SQLITE

OVER = {"scheduler.policy": ["fcfs", "sptf"], "workload.outstanding": [1, 4, 16]}


class Counting(Executor):
    """Runs everything at once, in this process, and counts the configurations of each chunk."""

    def __init__(self) -> None:
        self.chunks: list[int] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.chunks.append(len(json.loads(args[1])["configurations"]))
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of Dask with two workers of one thread."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, protocol="tcp"
    ) as local:
        yield local


@pytest.fixture
def fleet_folder(tmp_path: Path) -> Path:
    """Traces of four drives in two servers, and a file that is none."""
    requests = freewheel.Trace.open(SQLITE).to_polars()
    for number in range(4):
        path = tmp_path / f"traces/web{number // 2}/{number % 2}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        requests[number * 800 : (number + 1) * 800].write_parquet(path)
    (tmp_path / "traces/web1/broken.csv").write_text("no trace at all\n")
    return tmp_path / "traces"


def test_a_sweep_on_processes_has_the_bytes_of_one_on_threads(tmp_path: Path) -> None:
    files = [tmp_path / "threads.parquet", tmp_path / "processes.parquet"]
    freewheel.sweep(CLOSED, over=OVER, output=files[0])
    with ProcessPoolExecutor(2) as pool:
        sweep = freewheel.sweep(CLOSED, over=OVER, output=files[1], executor=pool)
    assert sweep.configurations == 6 and sweep.resumed == 0
    assert files[0].read_bytes() == files[1].read_bytes()


def test_chunks_grow_and_a_trace_is_replayed(tmp_path: Path) -> None:
    config = {"workload": {"kind": "trace", "file": SQLITE, "fit": "wrap"}, "drive": "atlas10k"}
    over = {"scheduler.policy": ["fcfs", "sptf"]}
    executor = Counting()
    swept = freewheel.sweep(config, over=over, executor=executor)
    assert swept.to_polars().equals(freewheel.sweep(config, over=over).to_polars())
    assert executor.chunks == [1, 1]
    many = Counting()
    tiny = {**CLOSED, "workload": {"kind": "closed", "requests": 20}}
    freewheel.sweep(tiny, over={"seed": list(range(300))}, executor=many, jobs=1)
    assert many.chunks[0] == 1 and max(many.chunks) > 20 and sum(many.chunks) == 300


def test_what_a_killed_sweep_had_done_is_not_run_again(tmp_path: Path) -> None:
    output = tmp_path / "sweep.parquet"

    class Dying(Counting):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            if len(self.chunks) == 2:
                future: Future[Any] = Future()
                future.set_exception(ConnectionError("the worker has gone"))
                return future
            return super().submit(fn, *args, **kwargs)

    with pytest.raises(freewheel.Error, match="2 of 6 are done") as raised:
        freewheel.sweep(CLOSED, over=OVER, output=output, executor=Dying(), jobs=1)
    assert raised.value.help and "not run again" in raised.value.help
    rest = Counting()
    sweep = freewheel.sweep(CLOSED, over=OVER, output=output, executor=rest)
    assert sweep.resumed == 2 and sum(rest.chunks) == 4
    freewheel.sweep(CLOSED, over=OVER, output=tmp_path / "whole.parquet")
    assert output.read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_errors_of_workers_come_back_as_they_are() -> None:
    with pytest.raises(freewheel.UsageError, match="has no method submit"):
        freewheel.sweep(CLOSED, over=OVER, executor=4)  # type: ignore[arg-type]
    import pickle

    error = freewheel.TraceError("x.csv: no trace", "NoTrace", "give another")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is freewheel.TraceError
    assert (again.message, again.kind, again.help) == (error.message, error.kind, error.help)


def test_a_worker_with_another_version_or_another_file_is_refused(tmp_path: Path) -> None:
    from freewheel import _freewheel

    drive = tmp_path / "mine.toml"
    drive.write_text(freewheel.Drive.load("atlas10k").to_toml())
    config = tmp_path / "experiment.toml"
    config.write_text(freewheel.SimConfig(**{**CLOSED, "drive": str(drive)}).to_toml())
    plan = _freewheel.sweep_plan(config, ["workload.outstanding=1,2"], [], None, tmp_path / "s.parquet")
    chunk = plan.chunk([0])
    assert len(_freewheel.run_sweep_chunk(chunk).splitlines()) == 1
    with pytest.raises(freewheel.Error, match="this worker has Freewheel"):
        _freewheel.run_sweep_chunk(chunk.replace(freewheel.__version__, "0.0.1", 1))
    drive.write_text(drive.read_text() + "\n# another line\n")
    with pytest.raises(freewheel.Error, match="is not the file"):
        _freewheel.run_sweep_chunk(chunk)


def test_a_fleet_is_a_row_a_drive_and_the_same_on_processes(fleet_folder: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / "threads", tmp_path / "processes"]
    options: dict[str, Any] = {"drive": "atlas10k", "fit": "wrap", "reports": 1, "hot": 0.01}
    fleet = freewheel.fleet(fleet_folder, output=outputs[0], **options)
    with ProcessPoolExecutor(2) as pool:
        freewheel.fleet(fleet_folder, output=outputs[1], executor=pool, **options)
    table = fleet.to_polars()
    assert fleet.drives == 5 and table["name"].to_list()[:2] == ["web0/0", "web0/1"]
    assert table["server"].to_list() == ["web0"] * 2 + ["web1"] * 3
    assert "no trace" in table.filter(pl.col("name") == "web1/broken")["fault"][0]
    assert table.equals(pl.read_parquet(outputs[0] / "fleet.parquet"))
    # The file of this drive has no queue, so FCFS is what it does today.
    alone = freewheel.study(fleet_folder / "web0/0.parquet", drive="atlas10k", fit="wrap", policies=[], scrub=False)
    assert alone.to_polars()["policy"].to_list() == ["fcfs"]
    assert table["response_ns_mean"][0] == alone.to_polars()["response_ns_mean"][0]
    for name in ["fleet.parquet", "fleet.html", "fleet.json"]:
        assert (outputs[0] / name).read_bytes() == (outputs[1] / name).read_bytes(), name
    [report] = re.findall(r'href="(drives/[^"]+)"', (outputs[0] / "fleet.html").read_text())[:1]
    assert "<!DOCTYPE html>" in (outputs[0] / report).read_text()
    assert fleet.worth_a_look(1)[0].replace("/", "-") in report


def test_a_fleet_shows_what_it_has_and_is_drawn(fleet_folder: Path) -> None:
    fleet = freewheel.fleet(fleet_folder, drive="atlas10k", fit="wrap", changes=False, reports=0)
    assert repr(fleet).startswith("<FleetReport 4 of 5 drives: ") and "\n" not in repr(fleet)
    shown = fleet._repr_html_()
    assert shown and shown.startswith("<iframe srcdoc=")
    pytest.importorskip("matplotlib").use("agg")
    axes = fleet.plot()
    busy = [share for share in fleet.to_polars()["utilisation"] if share is not None]
    assert list(axes.lines[0].get_ydata()) == sorted(busy, reverse=True) and len(busy) == 4


def after_another_call(call: Callable[[], freewheel.FleetReport]) -> freewheel.FleetReport:
    """Calls as soon as a run that was given up has left its journal."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return call()
        except freewheel.Error as error:
            if "another call" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_reports_that_a_killed_call_has_written_are_not_written_again(
    fleet_folder: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"drive": "atlas10k", "fit": "wrap", "changes": False, "reports": 2, "hot": 0.01}
    output, reports = tmp_path / "killed", tmp_path / "killed/drives"

    def stop(done: int, total: int) -> None:
        if reports.is_dir() and any(path.suffix == ".html" for path in reports.iterdir()):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        freewheel.fleet(fleet_folder, output=output, progress=stop, **options)
    [first] = reports.glob("*.html")
    before = first.stat()
    fleet = after_another_call(lambda: freewheel.fleet(fleet_folder, output=output, **options))
    after = first.stat()
    assert fleet.resumed == 5 and (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    whole = tmp_path / "whole"
    freewheel.fleet(fleet_folder, output=whole, **options)
    files = [path.relative_to(whole) for path in sorted(whole.rglob("*")) if path.is_file()]
    assert files == [path.relative_to(output) for path in sorted(output.rglob("*")) if path.is_file()]
    assert sum(file.parts[0] == "drives" for file in files) == 2
    for file in files:
        assert (output / file).read_bytes() == (whole / file).read_bytes(), file


def test_the_second_look_at_advice_has_columns(fleet_folder: Path) -> None:
    options: dict[str, Any] = {"drive": "atlas10k", "fit": "wrap", "reports": 0}
    added = {"advice_checks", "advice_check_best_change", "advice_check_worst_change",
             "turned_advice", "turned_advice_where"}
    once = freewheel.fleet(fleet_folder, **options)
    assert not added & set(once.frame.columns)
    checked = freewheel.fleet(fleet_folder, checks=True, **options)
    table = checked.to_polars()
    assert set(table.columns) - set(once.frame.columns) == added
    looked = table.filter(pl.col("advice_checks").is_not_null())
    assert len(looked) > 0 and looked["advice_checks"].min() > 0
    assert (looked["advice_check_best_change"] <= looked["advice_check_worst_change"]).all()
    assert [set(row) for row in checked.to_dict()["drives"]] == [set(table.columns)] * 5


def test_the_devices_of_a_trace_are_a_fleet_with_places(tmp_path: Path) -> None:
    requests = freewheel.Trace.open(SQLITE).to_polars()[:1600]
    devices = requests.with_columns(device=pl.int_range(pl.len(), dtype=pl.UInt32) % 2)
    places = {"0": {"server": "db", "bay": 7, "drive": "tr96"}}
    fleet = freewheel.fleet(devices, drive="atlas10k", places=places, fit="wrap", changes=False)
    table = fleet.to_polars()
    assert table.select("name", "server", "bay", "drive").rows() == [
        ("0", "db", "7", "tr96"),
        ("1", "", "1", "atlas10k"),
    ]
    moved = devices.filter(pl.col("op").is_in(["read", "write"])).group_by("device").len().sort("device")
    assert table["requests"].to_list() == moved["len"].to_list()
    for frame in [pl.DataFrame, pa.table, pd.DataFrame]:
        given = frame({"trace": ["0"], "server": ["db"], "bay": [7], "drive": ["tr96"]})
        of_table = freewheel.fleet(devices, drive="atlas10k", places=given, fit="wrap", changes=False)
        assert of_table.to_polars().equals(table)
    with pytest.raises(freewheel.UsageError, match="`rack` is not known"):
        freewheel.fleet(devices, places=pl.DataFrame({"trace": ["0"], "rack": [1]}), changes=False)
    with pytest.raises(freewheel.UsageError, match="no column `trace`"):
        freewheel.fleet(devices, places=pl.DataFrame({"bay": [1]}), changes=False)
    with pytest.raises(freewheel.Error, match="no trace is called `9`"):
        freewheel.fleet(devices, places={"9": {"bay": 1}}, changes=False)


def test_a_worker_of_dask_that_dies_costs_its_chunk_only(cluster: Any, tmp_path: Path) -> None:
    from distributed import Client

    tiny = {**CLOSED, "workload": {"kind": "closed", "requests": 4000}}
    over, output = {"seed": list(range(120))}, tmp_path / "dask.parquet"
    with Client(cluster) as client:
        pids = client.run(os.getpid)
        killed = False

        def kill(done: int, total: int) -> None:
            nonlocal killed
            if not killed and done >= 4:
                killed = True
                os.kill(next(iter(pids.values())), signal.SIGKILL)

        sweep = freewheel.sweep(tiny, over=over, output=output, executor=client.get_executor(), progress=kill)
    assert killed and sweep.configurations == 120
    here = freewheel.sweep(tiny, over=over, output=tmp_path / "here.parquet")
    assert here.configurations == 120
    assert output.read_bytes() == (tmp_path / "here.parquet").read_bytes()


def test_the_command_takes_a_cluster_and_goes_on_after_a_kill(cluster: Any, tmp_path: Path) -> None:
    output, journal = tmp_path / "sweep.parquet", tmp_path / "sweep.parquet.journal"
    seeds = ",".join(map(str, range(200)))
    line = [sys.executable, "-m", "freewheel", "sweep", "examples/oltp.toml", "--over", f"seed={seeds}",
            "--set", "workload.requests=4000", "-o", str(output)]
    process = subprocess.Popen([*line, "--dask", cluster.scheduler_address], cwd=ROOT)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not journal.exists() or journal.read_bytes().count(b"\n") < 8):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    # The helper that spoke with the cluster may keep a few rows more before it notices.
    time.sleep(1)
    known = journal.read_bytes().count(b"\n") - 1
    assert 5 <= known
    done = subprocess.run([*line, "--dask", cluster.scheduler_address, "--json"], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["configurations"] == 200 and known <= said["resumed"] < 200
    assert pl.read_parquet(output)["seed"].to_list() == list(range(200))
    subprocess.run([*line[:-1], str(tmp_path / "here.parquet")], cwd=ROOT, check=True, capture_output=True)
    assert output.read_bytes() == (tmp_path / "here.parquet").read_bytes()
