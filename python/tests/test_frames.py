"""Frames go to pyarrow, polars, pandas and DuckDB, and tables come in."""

from pathlib import Path
from typing import Any

import freewheel
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import CLOSED, SQLITE, Command

STAGES = ["queue_ns", "overhead_ns", "seek_ns", "rotate_ns", "transfer_ns", "bus_ns"]


def test_completions_are_those_of_the_log(command: Command, tmp_path: Path) -> None:
    result = freewheel.simulate("examples/oltp.toml", completions=True)
    log = tmp_path / "log.parquet"
    command("sim", "examples/oltp.toml", "--log", log)
    of_log = pl.read_parquet(log)
    assert result.to_polars().equals(of_log)
    assert result.frame.columns == of_log.columns and len(result.frame) == result.requests


def test_completions_of_the_warm_up_are_marked_as_in_the_log(command: Command, tmp_path: Path) -> None:
    overrides = {"warm_up": 0.2, "workload.requests": 2000}
    result = freewheel.simulate("examples/oltp.toml", overrides=overrides, completions=True)
    log = tmp_path / "log.parquet"
    sets = ["--set", "warm_up=0.2", "--set", "workload.requests=2000"]
    command("sim", "examples/oltp.toml", *sets, "--log", log)
    completions = result.to_polars()
    assert completions.equals(pl.read_parquet(log))
    assert completions["is_warm_up"].sum() == 400
    counted = completions.filter(~pl.col("is_warm_up") & pl.col("op").is_in(["read", "write"]))
    assert counted["response_ns"].mean() == pytest.approx(result.response_ns_mean)


def test_stages_add_up_to_the_response_in_every_library() -> None:
    result = freewheel.simulate(CLOSED, completions=True)
    polars = pl.DataFrame(result)
    assert (polars.select(pl.sum_horizontal(STAGES)).to_series() == polars["response_ns"]).all()
    table = pa.table(result)
    assert table.num_rows == 2000 and pa.table(result.frame).equals(table)
    pandas = result.to_pandas()
    assert (pandas[STAGES].sum(axis=1) == pandas["response_ns"]).all()
    mean = pandas.loc[pandas["op"].isin(["read", "write"]), "response_ns"].mean()
    assert mean == pytest.approx(result.response_ns_mean)
    assert result.frame.to_pydict()["op"] == table["op"].to_pylist()


def test_duckdb_reads_a_frame() -> None:
    duckdb = pytest.importorskip("duckdb")
    completions = freewheel.simulate(CLOSED, completions=True).to_pyarrow()
    rows = duckdb.sql("select count(*), max(response_ns) from completions").fetchall()
    assert rows == [(2000, completions["response_ns"].to_numpy().max())]


def test_polars_and_pyarrow_take_the_columns_without_a_copy() -> None:
    config = {**CLOSED, "workload": {**CLOSED["workload"], "requests": 300_000}}
    frame = freewheel.simulate(config, completions=True).frame

    def addresses(chunks: pa.ChunkedArray) -> set[int]:
        return {chunk.buffers()[1].address for chunk in chunks.chunks}

    for column in ["seek_ns", "op", "refused"]:
        ours = addresses(pa.table(frame)[column])
        assert len(ours) == 3
        assert addresses(pa.table(frame)[column]) == ours
        assert addresses(pa.chunked_array(pl.DataFrame(frame)[column])) == ours, column


def test_a_frame_outlives_its_result() -> None:
    table = pa.table(freewheel.simulate(CLOSED, completions=True))
    freewheel.simulate({**CLOSED, "seed": 3}, completions=True)
    assert sum(table["response_ns"].to_pylist()) > 0


def test_a_result_without_a_table_says_how_to_get_one() -> None:
    with pytest.raises(freewheel.UsageError, match="completions=True"):
        freewheel.simulate(CLOSED).to_polars()


def trace_tables() -> dict[str, Any]:
    polars = freewheel.Trace.open(SQLITE).to_polars()
    return {
        "polars": polars,
        "categories": polars.with_columns(pl.col("op").cast(pl.Categorical)),
        "narrow": polars.with_columns(pl.col("blocks").cast(pl.UInt16), pl.col("fua").cast(pl.Int8)),
        "pyarrow": polars.to_arrow(),
        "pandas": pd.DataFrame(polars.to_dict(as_series=False)),
        "trace": freewheel.Trace.open(SQLITE),
    }


def test_a_table_is_the_same_trace_as_its_file() -> None:
    info = freewheel.Trace.open(SQLITE).info()
    counts = ["requests", "reads", "writes", "flushes", "bytes", "span_ns", "completions", "fua_writes"]
    for name, table in trace_tables().items():
        of_table = freewheel.Trace.open(table).info()
        assert {key: of_table[key] for key in counts} == {key: info[key] for key in counts}, name


def test_a_study_of_a_table_is_that_of_its_file_and_names_no_temporary_file() -> None:
    table = freewheel.Trace.open(SQLITE).to_pyarrow()
    options = {"policies": "sptf", "scrub": False, "changes": False}
    of_table = freewheel.study(table, **options)
    of_file = freewheel.study(SQLITE, **options)
    assert of_table.to_dict()["runs"] == of_file.to_dict()["runs"]
    assert "/tmp" not in of_table.to_json()
    assert of_table.to_json() == freewheel.study(table, **options).to_json()


def test_a_trace_that_is_converted_comes_back(tmp_path: Path) -> None:
    trace = freewheel.Trace.open(SQLITE)
    path = tmp_path / "trace.parquet"
    converted = trace.convert(path)
    assert converted["records"] == trace.info()["requests"]
    assert pl.read_parquet(path).shape == trace.to_polars().shape
    assert pq.read_schema(path).names == trace.to_pyarrow().column_names


def test_other_results_have_tables_with_units() -> None:
    study = freewheel.study(SQLITE, policies=["sptf"], scrub=False, changes=False)
    frame = study.to_polars()
    assert "fcfs" in frame["policy"].to_list() and frame["response_ns_mean"].min() > 0
    curves = freewheel.cache_curves(SQLITE, policies="lru", sizes=["1MiB", "8MiB"]).to_polars()
    ratios = curves["miss_ratio"].to_list()
    assert len(ratios) == 2 and ratios[0] >= ratios[1]
    assert curves["response_ns_mean"].null_count() == 0
