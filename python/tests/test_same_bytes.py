"""The same bytes as the command line for the same question."""

import json
from pathlib import Path

import freewheel
import pytest
from conftest import CLOSED, SQLITE, Command


def test_an_experiment_has_the_document_of_the_command_line(command: Command) -> None:
    result = freewheel.simulate("examples/oltp.toml")
    assert result.to_json() == command("sim", "examples/oltp.toml", "--json")
    assert result.to_dict()["result"]["response"]["mean_ns"] == result.response_ns_mean


def test_every_form_of_an_experiment_gives_the_same(tmp_path: Path) -> None:
    config = freewheel.SimConfig(
        drive="atlas10k",
        scheduler={"policy": "sptf"},
        workload={"kind": "closed", "outstanding": 20, "requests": 2000},
    )
    path = tmp_path / "experiment.toml"
    path.write_text(config.to_toml())
    forms = [CLOSED, config, config.to_toml(), path, str(path), freewheel.SimConfig.load(path)]
    results = [freewheel.simulate(form).to_json() for form in forms]
    assert results == [results[0]] * len(forms)
    assert freewheel.simulate(config, completions=True).to_json() == results[0]


def test_overrides_are_those_of_the_command_line(command: Command) -> None:
    overrides = {"workload.outstanding": 4, "scheduler.policy": "sstf", "warm_up": 0.1, "seed": None}
    result = freewheel.simulate("examples/oltp.toml", overrides=overrides, seed=9)
    words = ["workload.outstanding=4", "scheduler.policy=sstf", "warm_up=0.1", "seed="]
    sets = [part for word in words for part in ("--set", word)]
    assert result.to_json() == command("sim", "examples/oltp.toml", "--json", "--seed", "9", *sets)
    config = freewheel.SimConfig.load("examples/oltp.toml").replace(overrides)
    assert freewheel.simulate(config, seed=9).result_hash == result.result_hash


def test_a_study_has_the_document_of_the_command_line(command: Command, tmp_path: Path) -> None:
    study = freewheel.study(SQLITE, policies=["sptf"], scrub=False, changes=False)
    words = ["--policy", "sptf", "--no-scrub", "--no-changes", "--json", "--out", tmp_path]
    assert study.to_json() == command("study", SQLITE, *words)
    assert study.html() == (tmp_path / "report.html").read_text()


def test_curves_of_caches_have_the_document_of_the_command_line(
    command: Command, tmp_path: Path
) -> None:
    curves = freewheel.cache_curves(SQLITE, policies=["lru", "arc"], sizes=["8MiB", 0.01, 1 << 20])
    words = ["--policy", "lru,arc", "--size", "8MiB,1%,1MiB", "--json", "--out", tmp_path]
    assert curves.to_json() == command("cache", SQLITE, *words)


def test_traces_have_the_documents_of_the_command_line(command: Command) -> None:
    trace = freewheel.Trace.open(SQLITE)
    assert trace.info() == json.loads(command("trace", "info", SQLITE, "--json"))
    assert trace.characterize() == json.loads(command("trace", "characterize", SQLITE, "--json"))


def test_a_plan_of_stripes_has_the_document_of_the_command_line(
    command: Command, tmp_path: Path
) -> None:
    plan = freewheel.plan_stripe("examples/jbod.toml", disks=8, drive="exos-x24-24tb", requests=2000)
    words = ["--disks", "8", "--drive", "exos-x24-24tb", "--requests", "2000", "--json"]
    assert plan.to_json() == command("plan", "stripe", "examples/jbod.toml", *words, "--out", tmp_path)
    assert plan.best_bytes in plan.frame.to_pydict()["unit_bytes"]


def test_a_plan_of_places_has_the_document_of_the_command_line(
    command: Command, tmp_path: Path
) -> None:
    plan = freewheel.plan_placement("examples/jbod.toml", requests=2000)
    words = ["--requests", "2000", "--json", "--out", tmp_path]
    assert plan.to_json() == command("plan", "place", "examples/jbod.toml", *words)
    assert len(plan.frame) > 0 and plan.headline


def test_a_claim_has_the_document_of_the_command_line(command: Command) -> None:
    claim = freewheel.reproduce("fast02.fig4", quick=True, seeds=1)
    words = ["fast02.fig4", "--quick", "--seed", "1", "--json"]
    assert claim.to_json() == command("reproduce", *words)
    assert claim.passes and "fast02.fig4" in freewheel.claims()


def test_a_data_sheet_has_the_document_of_the_command_line(command: Command) -> None:
    sheet = freewheel.Drive.load("atlas10k").sheet()
    assert sheet.to_json() == command("drive", "show", "atlas10k", "--json")


def test_the_schema_is_the_published_one() -> None:
    assert freewheel.schema() == json.loads(Path("schemas/sim.schema.json").read_text())
    assert freewheel.schema("drive") == json.loads(Path("schemas/drive.schema.json").read_text())


@pytest.mark.parametrize("words", [["sim", "no.toml"], ["simm"], ["study"], ["--help"], ["sim", "--help"]])
def test_exit_codes_and_texts_are_those_of_the_program(words: list[str]) -> None:
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-m", "freewheel", *words], capture_output=True, text=True)
    codes = {"no.toml": 1, "--help": 0}
    assert done.returncode == codes.get(words[-1], 2), done.stderr
    assert "freewheel" in done.stdout + done.stderr
