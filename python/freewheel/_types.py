"""Types of arguments."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from ._freewheel import Drive, Moment, Request, SimConfig, Trace


class ArrowTable(Protocol):
    """Whatever has the Arrow PyCapsule interface: a table of polars, pyarrow, pandas, DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Policy(Protocol):
    """A foreground scheduling policy with its waiting requests."""

    def push(self, request: "Request", /) -> object:
        """A request has arrived."""

    def pick(self, moment: "Moment", /) -> "Request | int | None":
        """Takes the request to serve next, and gives it or its sequence; None when none waits."""

    def take(self, sequence: int, /) -> object:
        """A request is taken out of turn, and waits no more."""

class CachePolicy(Protocol):
    """A policy of eviction over keys: for trying an idea without the slots that policies here share.

    Keys are numbers of blocks of 4 KiB. The cache looks them up itself.
    """

    def hit(self, key: int, /) -> object:
        """A key in the cache is used."""

    def admit(self, key: int, /) -> int | None:
        """A key comes into the cache. Gives the key that leaves for it, which a full cache needs."""

    def remove(self, key: int, /) -> object:
        """A key leaves the cache, as if it had never been there."""

MakePolicy: TypeAlias = Callable[[], Policy]
"""A class of scheduling policies; one is made for each arm."""
MakeCachePolicy: TypeAlias = Callable[[int], CachePolicy]
"""A class of cache policies; one is made for each cache, with its capacity in blocks."""
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
Places: TypeAlias = "StrPath | ArrowTable | Mapping[str, Mapping[str, Any]]"
"""Drive, server and bay by the names of traces: a CSV, a table, or a dict of dicts."""
Replay: TypeAlias = Literal["auto", "arrivals", "dependent"]
Fit: TypeAlias = Literal["as-is", "wrap", "scale"]
CoarseTimes: TypeAlias = Literal["spread", "bunched"]
