"""Runs the notebooks and stores them with their outputs: `python python/notebooks.py [NAME ...]`.

What differs from run to run, or names this machine, is not stored.
"""

import getpass
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

__all__ = ["CellExecutionError", "FOLDER", "LARGEST_BYTES", "clean", "local_words", "run"]

FOLDER = Path(__file__).parents[1] / "docs/notebooks"
LARGEST_BYTES = 250_000
# A longer page is shown where the notebook runs, and not stored.
LARGEST_PAGE = 20_000
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def run(notebook: Any, folder: Path) -> Any:
    """Runs every cell in a new kernel, in `folder`. An error of a cell is raised."""
    client = NotebookClient(
        notebook, kernel_name="python3", timeout=600, record_timing=False, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return notebook


def clean(notebook: Any) -> Any:
    """Leaves out pages, warnings, and what the kernel says about itself."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [stored(output) for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def stored(output: Any) -> Any:
    """An output without its metadata, and without a long page."""
    if "data" in output:
        output.metadata = {}
        page = output.data.get("text/html", "")
        if len(page) > LARGEST_PAGE:
            output.data = {"text/plain": "The page stands here when this cell runs."}
    return output


def local_words(text: str) -> list[str]:
    """Names of this machine's folders and user in a text."""
    words = [str(Path.cwd()), str(FOLDER.parents[1]), str(Path.home()) + "/", "/tmp/", f"/{getpass.getuser()}/"]
    return sorted({word for word in words if word in text})


def store(path: Path) -> None:
    """Runs a notebook and writes it back."""
    notebook = clean(run(nbformat.read(path, as_version=4), path.parent))
    text = nbformat.writes(notebook) + "\n"
    if found := local_words(text):
        raise SystemExit(f"{path.name} would name {', '.join(found)}: print a name without its folder")
    if len(text.encode()) > LARGEST_BYTES:
        raise SystemExit(f"{path.name} has {len(text.encode())} bytes, more than {LARGEST_BYTES}: draw less")
    path.write_text(text)
    print(f"{path.name}: {len(text.encode())} bytes")


if __name__ == "__main__":
    names = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    for name in names:
        store(FOLDER / f"{name}.ipynb")
