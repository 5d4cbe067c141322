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


def test_completions_of_independent_drives_have_no_order() -> None:
    config = {**CLOSED, "array": {"layout": "independent", "drives": 2}}
    wrong(lambda: freewheel.simulate(config, completions=True), freewheel.ConfigError, "completions=True")
