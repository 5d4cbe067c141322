"""The package as a whole: counterparts of the facade, types, pictures, drives."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import freewheel
import pytest
from conftest import CLOSED, ROOT, SQLITE
from freewheel import _freewheel, _plot

# Items of the facade that have another name here, with the same documentation.
RENAMED = {
    "Drive.import_disksim": "import_disksim",
    "Drive.load": "load",
    "CachePolicy": "KeyPolicy",
    "Request": "Waiting",
    "SweepReport": "SweepDone",
    "Trace.convert": "convert_trace",
    "drives": "names",
    "plan_placement": "plan_place",
}
# Items of the facade's root that have another form here, and so a documentation of their own.
OTHER_FORM = {
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
# Names that the facade has, too, for something else: its drive is the model alone, without file and name, and its
# errors are one type.
OTHER_THING = {"ConfigError", "Drive"}
STUB = ROOT / "python/freewheel/_freewheel.pyi"


def facade() -> set[str]:
    text = (ROOT / "crates/freewheel/src/lib.rs").read_text()
    modules = re.findall(r"^pub mod (\w+);", text, re.M)
    uses = re.findall(r"^pub use ([^;]+);", text, re.M)
    items = [name for use in uses for name in re.findall(r"\w+", use.rsplit("::", 1)[1])]
    return {*modules, *items}


def counterpart(name: str) -> object:
    at: object = freewheel
    for part in name.split("."):
        assert hasattr(at, part), f"{name} is not there: {part}"
        at = getattr(at, part)
    return at


def test_every_item_of_the_facade_has_its_counterpart() -> None:
    names = facade()
    assert len(names) > 30 and {"study", "Drive", "SimConfig"} <= names
    here = {name: python for python, name in RENAMED.items()} | OTHER_FORM
    for name in sorted(names - COMMAND_ONLY - {"ErrorKind"}):
        counterpart(here.get(name, name))
    assert freewheel.Error("", kind="Other").kind == "Other"
    assert not set(OTHER_FORM) - names, "of the facade no more"


def first_paragraph(text: str) -> str:
    """The first paragraph on one line, with the names that links of Rust lead to."""
    paragraph = inspect.cleandoc(text).split("\n\n")[0]
    return re.sub(r"\[(`[^`]+`)\](\([^)]*\))?", r"\1", " ".join(paragraph.split()))


def rust_documentation() -> dict[str, list[str]]:
    """First paragraphs of the items that the facade offers, by name: its own, or those of other crates."""
    modules = "\n".join(path.read_text() for path in (ROOT / "crates/freewheel/src").glob("*.rs"))
    uses = re.findall(r"^pub use ([^;]+);", modules, re.M)
    offered = {name for use in uses for name in re.findall(r"\w+", use)}
    offered |= set(re.findall(r"^pub (?:fn|struct|enum|trait) (\w+)", modules, re.M))
    own: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        if path.is_relative_to(ROOT / "crates/python"):
            continue
        found = own if path.is_relative_to(ROOT / "crates/freewheel") else others
        lines: list[str] = []
        for line in path.read_text().splitlines():
            if line.startswith("///"):
                lines.append(line[3:].removeprefix(" "))
            elif item := re.match(r"pub (?:fn|struct|enum|trait) (\w+)", line):
                if lines and item[1] in offered:
                    found.setdefault(item[1], []).append(first_paragraph("\n".join(lines)))
                lines = []
            elif not line.startswith("#["):
                lines = []
    return others | own


def test_counterparts_say_what_the_facade_says() -> None:
    rust = rust_documentation()
    same = {name: RENAMED.get(name, name) for name in {*freewheel.__all__, *RENAMED} - OTHER_THING}
    held = {name: rust[of] for name, of in sorted(same.items()) if of in rust}
    assert len(held) == 31, sorted(held)
    for name, says in held.items():
        assert first_paragraph(inspect.getdoc(counterpart(name)) or "") in says, (name, says)


def test_stubs_say_what_help_says() -> None:
    module = ast.parse(STUB.read_text())
    for item in module.body:
        if not isinstance(item, ast.ClassDef | ast.FunctionDef):
            continue
        members = [part for part in item.body if isinstance(part, ast.FunctionDef)]
        for part in [item, *(members if isinstance(item, ast.ClassDef) else [])]:
            stub = ast.get_docstring(part)
            path = [item.name] if part is item else [item.name, part.name]
            at: object = _freewheel
            for name in path:
                at = getattr(at, name)
            if stub is not None and path[-1] != "__new__":
                assert first_paragraph(inspect.getdoc(at) or "") == first_paragraph(stub), path


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
    axes = curves.plot()
    assert axes.get_xlabel() == "size of the cache"
    axes.figure.canvas.draw()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels and all(re.fullmatch(r"[\d.]+ (B|[KMGT]iB)", label) for label in labels), labels
    assert "ms" in freewheel.simulate(CLOSED).plot().get_xlabel()
    study = freewheel.study(SQLITE, policies="sptf", scrub=False, changes=False)
    assert study.plot().get_xlabel().startswith("mean response")
    objects = freewheel.object_curves(SQLITE, policies=["lru", "belady"], sizes=[0.01, 0.1])
    assert objects.plot().get_ylabel() == "miss ratio"
    with pytest.raises(TypeError, match="no picture"):
        freewheel.Drive.load("atlas10k").sheet().plot()


def test_sizes_are_written_as_people_write_them() -> None:
    sizes = [512, 1 << 16, 3 << 19, 1 << 40, 1 << 60]
    assert [_plot.size_text(size) for size in sizes] == ["512 B", "64 KiB", "1.5 MiB", "1 TiB", "1024 PiB"]


def test_a_picture_without_matplotlib_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        freewheel.simulate(CLOSED).plot()


def test_a_result_says_in_a_line_what_it_is() -> None:
    result = freewheel.simulate(CLOSED)
    assert repr(result) == f"<SimReport {result}>" and "2000 requests" in repr(result)
    sheet = freewheel.Drive.load("atlas10k").sheet()
    assert repr(sheet).startswith("<Report atlas10k: ") and "\n" not in repr(sheet)
