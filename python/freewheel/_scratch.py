"""Files that are there until the process ends."""

import tempfile
from pathlib import Path

_folder: "tempfile.TemporaryDirectory[str] | None" = None


def file(name: str) -> str:
    """A path of this name that no other call has given."""
    global _folder
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="freewheel-")
    return str(Path(tempfile.mkdtemp(dir=_folder.name)) / name)
