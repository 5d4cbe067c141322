"""The guide's snippets run, one after the other, in a folder with the repository's data."""

import re
from pathlib import Path

import pytest
from conftest import ROOT

GUIDE = ROOT / "docs/guide/python.md"


def test_every_snippet_of_the_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib").use("agg")
    for name in ["data", "examples"]:
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    # A line before a snippet says why it is not run.
    found = re.findall(r"(<!-- not run: [^\n]*-->\n)?^```python\n(.*?)^```", GUIDE.read_text(), re.M | re.S)
    snippets = [snippet for why, snippet in found if not why]
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(compile(snippet, str(GUIDE), "exec"), names)
    assert len(snippets) == 10
    said = capsys.readouterr().out
    assert "UnknownDrive freewheel.drives() has them" in said
    assert {"report.html", "trace.parquet", "faster.toml"} <= {path.name for path in tmp_path.iterdir()}
