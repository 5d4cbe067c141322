"""Wrong calls: the class, the key, the value and the way out."""

from pathlib import Path
from typing import Any

import freewheel
import pytest
from conftest import CLOSED, SQLITE


def wrong(call: Any, kind: type[Exception], *words: str) -> freewheel.Error:
    with pytest.raises(freewheel.Error) as caught:
        call()
    assert isinstance(caught.value, kind)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    return caught.value


def test_a_drive_that_does_not_exist() -> None:
    error = wrong(
        lambda: freewheel.simulate({**CLOSED, "drive": "atlas11k"}),
        ValueError,
        "drive: ",
        "atlas11k",
        "did you mean `atlas10k`",
        "freewheel.drives()",
    )
    assert error.kind == "UnknownDrive" and error.help and type(error) is freewheel.UsageError


def test_a_key_that_does_not_exist() -> None:
    wrong(
        lambda: freewheel.simulate({**CLOSED, "sheduler": {}}),
        freewheel.ConfigError,
        "`sheduler`",
        "did you mean `scheduler`",
        "freewheel.schema()",
        "the keys: there is no",
    )


def test_a_value_out_of_its_range() -> None:
    wrong(
        lambda: freewheel.simulate(CLOSED, overrides={"workload.outstanding": 0}),
        freewheel.ConfigError,
        "`outstanding` is 0",
        "1 to 1000000",
    )


def test_a_file_that_is_not_there() -> None:
    wrong(lambda: freewheel.Trace.open("no.csv"), FileNotFoundError, "no.csv", "give the path")
    wrong(lambda: freewheel.simulate("no.toml"), freewheel.MissingFileError, "no.toml")
    wrong(lambda: freewheel.Drive.import_disksim("no.parv"), freewheel.MissingFileError, "no.parv")


def test_a_damaged_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    head = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n"
    path.write_text(head + "0,R,0,4096,0,\n5,X,0,4096,0,\n")
    wrong(
        lambda: freewheel.Trace.open(path).info(), freewheel.TraceError, "line 3", "lenient=True"
    )
    assert freewheel.Trace.open(path, lenient=True).info()["skipped"] == 1


def test_a_table_without_a_column_and_one_with_a_wrong_value() -> None:
    import pyarrow as pa

    columns = {"arrival_ns": [0], "op": ["read"], "start_block": [8], "blocks": [8]}
    assert freewheel.Trace.open(pa.table(columns)).info()["requests"] == 1
    for change, word in [
        ({"op": ["red"]}, "`op` is red"),
        ({"arrival_ns": [-1]}, "`arrival_ns` is -1"),
        ({"blocks": ["8"]}, "`blocks` is a column of"),
        ({"start_block": [None]}, "`start_block` is"),
    ]:
        wrong(lambda: freewheel.Trace.open(pa.table({**columns, **change})), freewheel.TraceError, word)
    del columns["blocks"]
    wrong(
        lambda: freewheel.Trace.open(pa.table(columns)), freewheel.TraceError, "no column `blocks`"
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: freewheel.study(SQLITE, policies="sttf"), ["sttf", "sptf"]),
        (lambda: freewheel.study(SQLITE, goal="median"), ["goal", "median", "p99-reads"]),
        (lambda: freewheel.cache_curves(SQLITE, sizes=[1.5]), ["1.5", "0.01"]),
        (lambda: freewheel.cache_curves(SQLITE, sizes="64"), ["64", "unit"]),
        (lambda: freewheel.reproduce("osdi00.fig99"), ["osdi00.fig99", "freewheel.claims()"]),
        (lambda: freewheel.Drive.load("atlas10k").scale(), ["nothing", "years=5"]),
        (lambda: freewheel.simulate(5), ["int", "dict"]),
        (lambda: freewheel.simulate({**CLOSED, "seed": object()}), ["object"]),
        (lambda: freewheel.simulate({**CLOSED, "seed": 2**64}), ["18446744073709551616"]),
        (lambda: freewheel.Trace.open(SQLITE, format="mrs"), ["mrs", "freewheel.formats()"]),
    ],
)
def test_wrong_arguments_say_what_is_wanted(call: Any, words: list[str]) -> None:
    wrong(call, freewheel.UsageError, *words)


@pytest.mark.parametrize(
    ("call", "key", "words"),
    [
        (lambda: freewheel.study(5), "trace", ["5: a trace is wanted", "give the path"]),
        (lambda: freewheel.study(SQLITE, drive=5), "drive", ["5: a drive is wanted", "the name of one"]),
        (lambda: freewheel.simulate(CLOSED, overrides=["seed=1"]), "overrides", ["['seed=1']", "a dict", "overrides={"]),
        (lambda: freewheel.simulate(CLOSED, overrides={4: 4}), "overrides", ["4: a key of texts", "overrides={"]),
        (lambda: freewheel.cache_curves(SQLITE, sizes=[None]), "sizes", ["None: a size is wanted", "64MiB"]),
        (lambda: freewheel.cache_curves(SQLITE, warm_up=2.0), "warm_up", ["warm_up=2", "below 1"]),
        (lambda: freewheel.cache_curves(SQLITE, policies=5), "policies", ["policies=5", "lru"]),
        (lambda: freewheel.plan_placement("examples/jbod.toml", horizon=[30]), "horizon", ["[30]: a time", "30d"]),
        (lambda: freewheel.fleet(SQLITE, places=["x"], changes=False), "places", ["['x']", "trace and drive"]),
        (lambda: freewheel.fleet(SQLITE, places={"0": {"rack": 1}}, changes=False), "places", ["`rack`", "bay"]),
        (lambda: freewheel.study(SQLITE, scrub_effort="3 parsecs"), "scrub_effort", ["parsecs", "min, h, d"]),
        (lambda: freewheel.reproduce("fast02.fig4", seeds=[]), "seeds", ["seeds=[]", "leave it out"]),
        (lambda: freewheel.extract("nope"), "target", ["nope", "emulated:NAME"]),
        (lambda: freewheel.plan_placement("examples/jbod.toml", keep_free=5.0), "keep_free", ["5", "below 1"]),
        (lambda: freewheel.Drive.load("atlas10k").scale(capacity=1e12), "capacity", ["a size is wanted", "64MiB"]),
    ],
)
def test_values_of_a_wrong_type_or_unit_name_key_value_and_way_out(call: Any, key: str, words: list[str]) -> None:
    error = wrong(call, freewheel.UsageError, *words)
    # The name of an argument that is read first is a note of the traceback.
    assert error.help and key in f"{error} {getattr(error, '__notes__', [])}"


def test_options_of_the_command_are_keywords_here() -> None:
    error = wrong(
        lambda: freewheel.plan_placement("examples/jbod.toml", replace={"zzz": "tr96"}),
        freewheel.Error,
        "replace=zzz=tr96",
        "no disk is called `zzz`",
    )
    assert "--" not in str(error)


def test_a_file_that_cannot_be_written_is_known_before_anything_runs(tmp_path: Path) -> None:
    for output, word in [(tmp_path, "is a folder"), (tmp_path / "nowhere/s.parquet", "make it first")]:
        wrong(
            lambda: freewheel.sweep(CLOSED, over={"seed": [1]}, output=output), freewheel.FileError, word
        )
    assert not list(tmp_path.parent.glob("*.journal")) and not list(tmp_path.iterdir())


def test_an_empty_table_says_which_column_has_no_type() -> None:
    import polars as pl

    empty = pl.DataFrame({"arrival_ns": [], "op": [], "start_block": [], "blocks": []})
    wrong(lambda: freewheel.Trace.open(empty).info(), freewheel.TraceError, "`arrival_ns`", "without a type")


def test_completions_of_independent_drives_have_no_order() -> None:
    config = {**CLOSED, "array": {"layout": "independent", "drives": 2}}
    wrong(lambda: freewheel.simulate(config, completions=True), freewheel.ConfigError, "completions=True")
