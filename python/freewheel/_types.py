"""Types of arguments."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from ._freewheel import Drive, SimConfig, Trace


class ArrowTable(Protocol):
    """Whatever has the Arrow PyCapsule interface: a table of polars, pyarrow, pandas, DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

StrPath: TypeAlias = str | PathLike[str]
"""A path."""
Size: TypeAlias = int | str
"""Bytes, or a text as `"64MiB"`."""
Time: TypeAlias = float | str
"""Seconds, or a text as `"30d"`."""
Progress: TypeAlias = bool | Callable[[int, int], object] | None
"""True for a bar of tqdm, or what is called with done and total."""
ConfigValue: TypeAlias = Any
"""A text, a number, a bool, a list, a dict, a path or a `Drive`."""
AnyConfig: TypeAlias = "StrPath | Mapping[str, ConfigValue] | SimConfig"
"""An experiment: a path, a text of TOML, a dict or a `SimConfig`."""
AnyTrace: TypeAlias = "StrPath | ArrowTable | Trace"
"""A trace: a path, a table with the columns of our Parquet, or a `Trace`."""
AnyDrive: TypeAlias = "StrPath | Drive"
"""A drive: the name of one that ships, the path of a drive file, or a `Drive`."""
Places: TypeAlias = "StrPath | Mapping[str, Mapping[str, Any]]"
"""Drive, server and bay by the names of traces: a CSV, or a dict of dicts."""
Replay: TypeAlias = Literal["auto", "arrivals", "dependent"]
Fit: TypeAlias = Literal["as-is", "wrap", "scale"]
CoarseTimes: TypeAlias = Literal["spread", "bunched"]
