"""The package as a whole: counterparts of the facade, types, pictures, drives."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import freewheel
import pytest
from conftest import CLOSED, ROOT, SQLITE

# Items of the facade's root whose name in Python is another one, and why.
COUNTERPARTS = {
    "DriveSheet": "Drive.sheet",
    "DriveSpec": "Drive.to_toml",
    "ErrorKind": "Error.kind",  # the name of the kind, as a text
    "Experiment": "simulate",
    "PolicySpec": "study",  # a text, as "sptf"
    "RunResult": "SimReport",  # its main numbers, and to_dict()
    "Scaling": "Drive.scale",
    "StudyOptions": "study",  # its keywords
    "TraceInfo": "Trace.info",
    "TraceReader": "Trace",
    "convert_trace": "Trace.convert",
    # Errors speak the words of Python here.
    "Surface": "Error",
    # Modules.
    "caches": "cache_curves",
    "claims": "reproduce",
    "drives": "Drive",
    "experiments": "simulate",
    "extraction": "extract",
    "files": "Trace",
    "fleets": "fleet",
    "measures": "SimReport.read_response",
    "plans": "plan_stripe",
    "sweeps": "sweep",
    "traces": "Trace",
}
# What real devices and servers need is the command line's.
COMMAND_ONLY = {"control", "emulation", "serving"}


def facade() -> set[str]:
    text = (ROOT / "crates/freewheel/src/lib.rs").read_text()
    modules = re.findall(r"^pub mod (\w+);", text, re.M)
    uses = re.findall(r"^pub use ([^;]+);", text, re.M)
    items = [name for use in uses for name in re.findall(r"\w+", use.rsplit("::", 1)[1])]
    return {*modules, *items}


def test_every_item_of_the_facade_has_its_counterpart() -> None:
    names = facade()
    assert len(names) > 30 and {"study", "Drive", "SimConfig"} <= names
    for name in sorted(names - COMMAND_ONLY):
        at: object = freewheel
        if name == "ErrorKind":
            assert freewheel.Error("", kind="Other").kind == "Other"
            continue
        for part in COUNTERPARTS.get(name, name).split("."):
            assert hasattr(at, part), f"{name} has no counterpart: {part}"
            at = getattr(at, part)
    assert not set(COUNTERPARTS) - names, "of the facade no more"


def first_sentence(text: str) -> str:
    return " ".join(text.split()).split(". ")[0].rstrip(".")


def test_functions_of_the_facade_say_the_same_in_python() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "crates/freewheel/src").glob("*.rs"))
    for name in ["study", "cache_curves", "extract", "validate"]:
        found = re.search(rf"((?:^///[^\n]*\n)+)(?:^#\[[^\n]*\n)*^pub fn {name}\b", source, re.M)
        assert found, name
        rust = first_sentence(found.group(1).replace("///", ""))
        assert first_sentence(inspect.getdoc(getattr(freewheel, name)) or "") == rust, name
        stub = re.search(rf'^def {name}\(.*?"""(.*?)"""', Path("python/freewheel/_freewheel.pyi").read_text(),
                         re.M | re.S)
        assert stub and first_sentence(stub.group(1)) == rust, name


def test_everything_that_is_exported_is_documented() -> None:
    for name in set(freewheel.__all__) - {"__version__"}:
        assert inspect.getdoc(getattr(freewheel, name)), name


def test_types_of_experiments_are_those_of_the_schema() -> None:
    made = subprocess.run(
        [sys.executable, "python/config_types.py"], capture_output=True, text=True, check=True
    ).stdout
    assert made == Path("python/freewheel/_config.py").read_text()


def test_a_scaled_drive_goes_wherever_a_drive_goes(tmp_path: Path) -> None:
    drive = freewheel.Drive.load("atlas10k")
    faster = drive.scale(rpm=1.5, name="faster")
    assert faster.rotation_rpm == pytest.approx(1.5 * drive.rotation_rpm, rel=1e-4)
    before, after = (freewheel.simulate({**CLOSED, "drive": of}) for of in (drive, faster))
    assert after.response_ns_mean < before.response_ns_mean
    faster.save(tmp_path / "faster.toml")
    again = freewheel.Drive.load(tmp_path / "faster.toml")
    assert again.to_toml() == faster.to_toml()
    study = freewheel.study(SQLITE, drive=[drive, faster], policies="sptf", scrub=False,
                            changes=False, fit="scale")
    assert study.drive == "atlas10k"


def test_an_extracted_drive_is_the_emulated_one() -> None:
    found = freewheel.extract("emulated:tr96", name="found")
    assert found.drive.name == "found"
    assert found.drive.rotation_rpm == pytest.approx(freewheel.Drive.load("tr96").rotation_rpm, rel=1e-3)
    assert {"rotation_period"} <= set(found.frame.to_pydict()["key"])


def test_results_show_their_page_in_a_notebook(tmp_path: Path) -> None:
    result = freewheel.simulate(CLOSED)
    shown = result._repr_html_()
    assert shown and shown.startswith("<iframe srcdoc=") and "&lt;!DOCTYPE html&gt;" in shown
    result.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == result.html()
    result.save(tmp_path / "document.json")
    assert (tmp_path / "document.json").read_text() == result.to_json()


def test_results_are_drawn() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    curves = freewheel.cache_curves(SQLITE, policies=["lru", "arc"], responses="none")
    assert curves.plot().get_xlabel() == "size of the cache, MiB"
    assert "ms" in freewheel.simulate(CLOSED).plot().get_xlabel()
    study = freewheel.study(SQLITE, policies="sptf", scrub=False, changes=False)
    assert study.plot().get_xlabel().startswith("mean response")
    with pytest.raises(TypeError, match="no picture"):
        freewheel.Drive.load("atlas10k").sheet().plot()
