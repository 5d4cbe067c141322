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


def _installed(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is not installed: `pip install {name}`", name=name) from error
