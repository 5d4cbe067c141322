"""Frames as tables of other libraries, and pages in a notebook."""

from html import escape
from typing import Any


def to_polars(frame: Any) -> Any:
    """As a DataFrame of polars, without a copy."""
    return _installed("polars").DataFrame(frame)


def to_pyarrow(frame: Any) -> Any:
    """As a Table of pyarrow, without a copy."""
    return _installed("pyarrow").table(frame)


def to_pandas(frame: Any) -> Any:
    """As a DataFrame of pandas, by way of pyarrow."""
    _installed("pandas")
    return to_pyarrow(frame).to_pandas()


def iframe(page: str) -> str:
    """A page for a notebook's cell."""
    height = "width:100%;height:640px;border:0"
    return f'<iframe srcdoc="{escape(page, quote=True)}" style="{height}"></iframe>'


GRID_ROWS = 10


def grid(frame: Any) -> str:
    """The first rows for a notebook's cell, without any library."""
    table: dict[str, list[Any]] = frame.to_pydict()
    heads = "".join(f"<th>{escape(name)}</th>" for name in table)
    rows = zip(*(values[:GRID_ROWS] for values in table.values()))
    cells = ("".join(f"<td>{escape(_shown(value))}</td>" for value in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    more = f"<p>{len(frame):,} rows, of which these are the first {GRID_ROWS}</p>" if len(frame) > GRID_ROWS else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{more}"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _installed(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is not installed: `pip install {name}`", name=name) from error
