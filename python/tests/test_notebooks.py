"""The notebooks of the book: each runs, prints the numbers that are stored, and says no others."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
sys.path.append(str(ROOT / "python"))
import notebooks  # noqa: E402

NAMES = sorted(path.stem for path in notebooks.FOLDER.glob("*.ipynb"))
NEEDS = {"fleet-on-dask": ["matplotlib", "distributed"]}
DATA = Path(os.environ.get("FREEWHEEL_DATA", ROOT.parent / "shared/data")).resolve()
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
SENTENCE_WORDS_MAX = 25


def read(name: str) -> Any:
    return nbformat.read(notebooks.FOLDER / f"{name}.ipynb", as_version=4)


def printed(cell: Any) -> str:
    """What a cell prints as text."""
    outputs = [output for output in cell.get("outputs", []) if output.get("name") != "stderr"]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


def numbers(text: str) -> list[str]:
    """Numbers of a text, without the commas and zeros of their writing."""
    plain = [found.replace(",", "") for found in NUMBER.findall(text)]
    return [found.rstrip("0").rstrip(".") if "." in found else found for found in plain]


def prose(cell: Any) -> str:
    """The words of a cell, without the code in it."""
    return re.sub(r"```.*?```|`[^`]*`", "", cell.source, flags=re.S)


def unsupported(notebook: Any) -> list[str]:
    """Numbers of the text that neither a cell's code nor its output has."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    known = {number for cell in code for number in numbers(cell.source + "\n" + printed(cell))}
    words = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    return [number for cell in words for number in numbers(prose(cell)) if number not in known]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder like that of the notebooks, in a repository of its own."""
    for name in ["data", "examples"]:
        (tmp_path / name).symlink_to(ROOT / name)
    folder = tmp_path / "docs/notebooks"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_prints_the_stored_numbers(
    name: str, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ["ipykernel", "polars", *NEEDS.get(name, ["matplotlib"])]:
        pytest.importorskip(module)
    if name == "disksim-drive" and "FREEWHEEL_DATA" not in os.environ and not DATA.is_dir():
        pytest.skip("FREEWHEEL_DATA names no folder, and ../shared/data is not there")
    monkeypatch.setenv("FREEWHEEL_DATA", str(DATA))
    stored = read(name)
    ran = notebooks.clean(notebooks.run(read(name), copy))
    for before, after in zip(stored.cells, ran.cells, strict=True):
        same = numbers(printed(after)) == numbers(printed(before))
        assert same, f"prints {printed(after)}\n`make notebooks` stores what is new"


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_stored_whole_and_clean(name: str) -> None:
    text = (notebooks.FOLDER / f"{name}.ipynb").read_text()
    notebook = read(name)
    assert text == nbformat.writes(notebooks.clean(read(name))) + "\n"
    assert len(text.encode()) <= notebooks.LARGEST_BYTES
    assert notebooks.local_words(text) == []
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_asks_first_answers_last_and_supports_its_numbers(name: str) -> None:
    notebook = read(name)
    assert notebook.cells[0].source.splitlines()[0].endswith("?")
    assert notebook.cells[-1].source.startswith("**Answer.** ")
    assert unsupported(notebook) == []
    words = "\n\n".join(prose(cell) for cell in notebook.cells if cell.cell_type == "markdown")
    for sentence in re.split(r"(?<=[.?!:])\s+|\n\n|^#.*\n", words, flags=re.M):
        assert len(sentence.split()) <= SENTENCE_WORDS_MAX, sentence


def test_a_number_that_nothing_prints_is_found() -> None:
    notebook = read("striping")
    notebook.cells[-1].source += " It takes 123.45 ms."
    assert unsupported(notebook) == ["123.45"]


def test_the_page_lists_every_notebook_with_its_question() -> None:
    page = (notebooks.FOLDER / "README.md").read_text()
    for name in NAMES:
        question = read(name).cells[0].source.splitlines()[0].removeprefix("# ")
        assert f"| [{name}]({name}.ipynb) | {question} |" in page


def test_the_disksim_notebook_says_in_a_line_what_is_missing(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("FREEWHEEL_DATA", str(tmp_path))
    says = "missing in the folder validate of FREEWHEEL_DATA: atlas10k"
    with pytest.raises(notebooks.CellExecutionError, match=says):
        notebooks.run(read("disksim-drive"), copy)
