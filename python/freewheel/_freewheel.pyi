"""The package in Rust: names, keywords and types."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from os import PathLike
from typing import Any, Literal, Unpack, final

from typing_extensions import disjoint_base

from ._config import ExperimentKeys
from ._types import (
    AnyConfig,
    AnyDrive,
    AnyTrace,
    ArrowTable,
    CoarseTimes,
    ConfigValue,
    Fit,
    MakeCachePolicy,
    MakePolicy,
    Places,
    Progress,
    Replay,
    Size,
    StrPath,
    Time,
)

__all__ = [
    "CacheReport",
    "ClaimsReport",
    "Drive",
    "Extraction",
    "FleetReport",
    "Frame",
    "JobPlan",
    "Moment",
    "ObjectReport",
    "PlaceReport",
    "Report",
    "Request",
    "SimConfig",
    "SimReport",
    "StripeReport",
    "StudyReport",
    "SweepReport",
    "Trace",
    "Validation",
    "__version__",
    "cache_curves",
    "claims",
    "drives",
    "extract",
    "fleet",
    "fleet_plan",
    "formats",
    "object_curves",
    "plan_placement",
    "plan_stripe",
    "reproduce",
    "run_command_line",
    "run_fleet_chunk",
    "run_sweep_chunk",
    "schema",
    "simulate",
    "study",
    "sweep",
    "sweep_plan",
    "validate",
]

__version__: str

@final
class Frame:
    """A table by the Arrow PyCapsule interface. Columns are named with their units."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    @property
    def columns(self) -> list[str]:
        """Names of the columns, with their units."""
    @property
    def nbytes(self) -> int:
        """Bytes of the table in memory."""
    def __len__(self) -> int: ...
    def to_pydict(self) -> dict[str, list[Any]]:
        """The columns as lists, for programs without such a library."""
    def to_polars(self) -> Any:
        """As a DataFrame of polars, without a copy."""
    def to_pandas(self) -> Any:
        """As a DataFrame of pandas."""
    def to_pyarrow(self) -> Any:
        """As a Table of pyarrow, without a copy."""

@disjoint_base
class Report:
    """A result: a document, a page, a text, and where there is one a table."""

    def to_json(self) -> str:
        """The document that the command line prints with `--json`, byte by byte."""
    def to_dict(self) -> dict[str, Any]:
        """The same document as a dict."""
    def html(self) -> str:
        """The page: one HTML file without references to anything outside it."""
    def text(self) -> str:
        """Text of the result for a terminal."""
    def save(self, path: StrPath) -> None:
        """Writes the page, or the document if the name ends in .json. The file appears when it is complete."""
    @property
    def frame(self) -> Frame:
        """The table of the result."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_polars(self) -> Any:
        """The table as a DataFrame of polars, without a copy."""
    def to_pandas(self) -> Any:
        """The table as a DataFrame of pandas."""
    def to_pyarrow(self) -> Any:
        """The table as a Table of pyarrow, without a copy."""
    def plot(self, ax: Any = None) -> Any:
        """Draws the result with matplotlib, into `ax` if it is given, and returns the axes."""
    def _repr_html_(self) -> str | None: ...

@final
class SimConfig:
    """A simulation: everything that determines its result, except the bytes of a trace.

    Its keys are those of `schema()`, and of the TOML that `freewheel sim` reads.
    """

    def __new__(cls, **keys: Unpack[ExperimentKeys]) -> SimConfig: ...
    @staticmethod
    def load(path: StrPath, *, overrides: Mapping[str, ConfigValue] | None = None) -> SimConfig:
        """Reads an experiment from a file of TOML. Paths in it count from its folder."""
    @staticmethod
    def parse(text: str, *, overrides: Mapping[str, ConfigValue] | None = None) -> SimConfig:
        """Reads an experiment from a text of TOML."""
    def replace(self, overrides: Mapping[str, ConfigValue]) -> SimConfig:
        """The same experiment with other values, as `{"workload.outstanding": 20}`. None removes a key."""
    def to_toml(self) -> str:
        """The experiment as TOML, for `freewheel sim`."""
    def to_dict(self) -> dict[str, Any]:
        """The experiment as a dict, with every default."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class SimReport(Report):
    """The result of an experiment.

    Its table has a row a completion, where they were kept.
    """

    @property
    def requests(self) -> int:
        """Reads, writes, flushes and trims, without the warm-up."""
    @property
    def elapsed_ns(self) -> int:
        """Virtual time from the start, or the end of the warm-up, to the last completion."""
    @property
    def requests_per_second(self) -> float:
        """Reads and writes a second."""
    @property
    def bytes_per_second(self) -> float:
        """Bytes a second."""
    @property
    def utilisation(self) -> float:
        """Share of time in which the drive had a command inside."""
    @property
    def response_ns_mean(self) -> float:
        """Mean response time of reads and writes."""
    @property
    def response_ns_p50(self) -> int:
        """Median response time of reads and writes."""
    @property
    def response_ns_p99(self) -> int:
        """99 % of the response times of reads and writes are no longer."""
    @property
    def read_response(self) -> dict[str, float]:
        """Response times of reads: count, mean_ns, p50_ns and so on."""
    @property
    def write_response(self) -> dict[str, float]:
        """Response times of writes, likewise."""
    @property
    def result_hash(self) -> str:
        """Hash over every completion: equal runs have equal hashes."""
    @property
    def config(self) -> SimConfig:
        """The experiment that ran, with every default."""

@final
class StudyReport(Report):
    """The document of a study.

    Its table has a row a policy.
    """

    @property
    def findings(self) -> list[str]:
        """Sentences of the report: what follows from the study, most important first."""
    @property
    def drive(self) -> str:
        """Name of the drive."""

@final
class SweepReport(Report):
    """The result of a sweep.

    Its table has a row a configuration, in order.
    """

    @property
    def configurations(self) -> int:
        """The number of configurations."""
    @property
    def keys(self) -> list[str]:
        """The keys that were swept, in order."""
    @property
    def resumed(self) -> int:
        """Those that an earlier call had run."""

@final
class FleetReport(Report):
    """The studies of a fleet with what follows from them.

    Its table has a row a drive, and its page is `fleet.html`.
    """

    @property
    def drives(self) -> int:
        """The number of drives."""
    @property
    def resumed(self) -> int:
        """Those that an earlier call had studied."""
    def worth_a_look(self, most: int | None = None) -> list[str]:
        """Names of the drives that are worth a look, the first of them most; 10 at most unless said otherwise."""

@final
class JobPlan:
    """A job whose parts run in other processes."""

    @property
    def worker(self) -> str:
        """Name of the function that runs a chunk."""
    def __len__(self) -> int: ...
    def pending(self) -> list[int]:
        """Numbers of the parts that are not done."""
    def chunk(self, numbers: Sequence[int]) -> str:
        """These parts, for the function `worker` in another process."""
    def keep(self, lines: str) -> None:
        """Keeps the rows that a worker gave."""

def sweep_plan(
    config: AnyConfig, over: Sequence[str], overrides: Sequence[str], seed: int | None, output: StrPath
) -> JobPlan:
    """Plans a sweep in the words of the command line, for workers in other processes."""

def fleet_plan(fleet: str, table: StrPath) -> JobPlan:
    """Plans a fleet out of the document that the command line writes, for workers in other processes."""

def run_sweep_chunk(chunk: str) -> str:
    """Runs a chunk of `sweep_plan` on this thread, and gives its rows."""

def run_fleet_chunk(chunk: str) -> str:
    """Studies the drives of a chunk of `fleet_plan` on this thread, and gives their rows."""

@final
class CacheReport(Report):
    """The document of `freewheel cache`.

    Its table has a row a policy and size.
    """

    @property
    def sizes_bytes(self) -> list[int]:
        """Sizes of the caches, ascending."""

@final
class StripeReport(Report):
    """The document of `freewheel plan stripe`.

    Its table has a row a stripe unit.
    """

    @property
    def headline(self) -> str:
        """The result in a sentence."""
    @property
    def best_bytes(self) -> int | None:
        """The unit with the shortest response in the simulation; None where the disks cannot serve the load."""

@final
class PlaceReport(Report):
    """The document of `freewheel plan place`.

    Its table has a row a move, in order.
    """

    @property
    def headline(self) -> str:
        """The result in a sentence."""
    def commands(self) -> str | None:
        """A script of the shell that does the moves; None where the disks have no paths."""

@final
class ClaimsReport(Report):
    """The claims that were run.

    The table has a row a number.
    """

    @property
    def passes(self) -> bool:
        """Whether no number fails."""

@final
class Extraction(Report):
    """Cost and results of an extraction.

    Its table has a row a value.
    """

    @property
    def drive(self) -> Drive:
        """The drive that was found."""
    @property
    def commands(self) -> int:
        """Commands sent to the drive."""
    @property
    def drive_ns(self) -> int:
        """Time on the drive."""

@final
class Validation(Report):
    """Results of a validation. Times in milliseconds.

    Its table has a row a part of the trace.
    """

    @property
    def demerit_ms(self) -> float:
        """Root mean square of the horizontal distance between the two distributions."""
    @property
    def demerit_share(self) -> float:
        """The same as a share of the measured mean."""
    @property
    def requests(self) -> int:
        """Number of requests that were compared."""

@final
class Drive:
    """A drive: one that ships, one of a drive file, or a scaled one."""

    @staticmethod
    def load(name_or_path: AnyDrive) -> Drive:
        """Takes the drive of this name, or of the drive file at this path."""
    @staticmethod
    def import_disksim(*files: StrPath) -> Drive:
        """Reads a drive out of DiskSim's parameter files.

        Files that they name are looked for beside them.
        """
    def scale(
        self,
        *,
        years: float | None = None,
        seek: float | None = None,
        rpm: float | None = None,
        linear_density: float | None = None,
        track_density: float | None = None,
        surfaces: float | None = None,
        capacity: Size | None = None,
        name: str | None = None,
    ) -> Drive:
        """The same drive with other technology: factors, or years of change at historical rates."""
    def validate(
        self, trace: AnyTrace, *, delays: Literal["before", "after"] | None = None
    ) -> Validation:
        """Holds the drive against a trace that was measured on the real one."""
    def sheet(self) -> Report:
        """The data sheet: advertised and modelled values, zones, seek curve, and the source of each value."""
    def to_toml(self) -> str:
        """The drive file."""
    def save(self, path: StrPath) -> None:
        """Writes the drive file. It appears when it is complete."""
    @property
    def name(self) -> str:
        """Name in its file."""
    @property
    def model(self) -> str:
        """The maker's name of the model."""
    @property
    def year(self) -> int | None:
        """Year in which it was sold first, where its file says it."""
    @property
    def capacity_bytes(self) -> int:
        """Capacity of all actuators together."""
    @property
    def blocks(self) -> int:
        """Blocks of 512 bytes."""
    @property
    def rotation_rpm(self) -> float:
        """Turns a minute."""
    @property
    def surfaces(self) -> int:
        """Surfaces with data."""
    @property
    def cylinders(self) -> int:
        """Cylinders."""

@final
class Trace:
    """A trace of block I/O: a file of any format, or a table.

    A table has the columns `arrival_ns`, `op` (read, write, flush or trim), `start_block` and `blocks` (of
    512 bytes), and may have `device`, `completion_ns` and `fua`.
    """

    @staticmethod
    def open(
        source: StrPath | ArrowTable,
        *,
        format: str | None = None,
        lenient: bool = False,
        time_unit: Literal["s", "ms", "us", "ns"] | None = None,
        clock: Literal["from-start", "absolute"] | None = None,
        numbers: Literal["objects", "addresses"] | None = None,
        layer: Literal["auto", "queued", "issued"] = "auto",
        name: str = "table",
    ) -> Trace:
        """Opens a trace.

        `name` is what results call a table; the other keywords are those of the command line.
        """
    def info(self, *, progress: Progress = None) -> dict[str, Any]:
        """Counts, span, bytes, footprint and devices: the document of `freewheel trace info --json`."""
    def characterize(self, *, progress: Progress = None) -> dict[str, Any]:
        """How the load behaves: the document of `freewheel trace characterize --json`."""
    def convert(
        self, output: StrPath, *, device: int | None = None, progress: Progress = None
    ) -> dict[str, Any]:
        """Writes a trace to a file whose name ends in `.parquet`, `.csv`, `.csv.zst` or `.csv.gz`."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def to_polars(self) -> Any:
        """The requests as a DataFrame of polars."""
    def to_pandas(self) -> Any:
        """The requests as a DataFrame of pandas."""
    def to_pyarrow(self) -> Any:
        """The requests as a Table of pyarrow."""
    @property
    def format(self) -> str:
        """The format that it is read as."""
    @property
    def name(self) -> PathLike[str]:
        """What results call it: its path, or the name of its table."""

@final
class Request:
    """A request that waits for the head."""

    @property
    def sequence(self) -> int:
        """Unique and ascending in order of arrival."""

    @property
    def op(self) -> Literal["read", "write"]:
        """`"read"` or `"write"`."""

    @property
    def start_block(self) -> int:
        """First block of 512 bytes on the arm."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""

    @property
    def arrival_ns(self) -> int:
        """Time of arrival."""

    @property
    def cylinder(self) -> int:
        """Cylinder of the first block, counted from the outermost."""

    @property
    def head(self) -> int:
        """Head of the first block."""

    @property
    def fua(self) -> bool:
        """True if the data must be on the media before the request is done."""

@final
class Moment:
    """State at a decision that a policy may use."""

    @property
    def now_ns(self) -> int:
        """Time at which the head becomes free."""

    @property
    def cylinder(self) -> int:
        """Cylinder of the head at that time."""

    @property
    def head(self) -> int:
        """Head that was used last."""

    def positioning_ns(self, request: Request) -> int:
        """Seek time and rotational latency of a request, if it is served now."""

    def seek_ns(self, request: Request) -> int:
        """Seek time of a request, if it is served now."""

def simulate(
    config: AnyConfig,
    *,
    overrides: Mapping[str, ConfigValue] | None = None,
    seed: int | None = None,
    policy: MakePolicy | None = None,
    cache_policy: MakeCachePolicy | None = None,
    completions: bool = False,
    progress: Progress = None,
) -> SimReport:
    """Runs an experiment.

    `completions` keeps every completion, 106 bytes each, as the table of the result. Those of the warm-up, which
    other results are without, are marked by `is_warm_up`. `policy` is a class of `Policy`, in place of the configured
    scheduler; `cache_policy` one of `CachePolicy`, for the read cache of `cache`. Each decision is then a call of
    Python, which makes the run slower.
    """

def sweep(
    config: AnyConfig,
    *,
    over: Mapping[str, Sequence[ConfigValue]],
    output: StrPath | None = None,
    overrides: Mapping[str, ConfigValue] | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress = None,
) -> SweepReport:
    """Runs an experiment with all combinations of some values of its keys, into one table.

    They run on all cores. `output` is a Parquet file. A sweep with one that was killed goes on where it was when it is called again.
    Rows are the same with any number of `jobs`. `executor` runs them elsewhere: it is one of `concurrent.futures`,
    or `client.get_executor()` of Dask. Workers need the same version of Freewheel, and read traces and drive files
    from the same paths; both are checked.
    """

def fleet(
    traces: AnyTrace,
    *,
    drive: AnyDrive | None = None,
    places: Places | None = None,
    output: StrPath | None = None,
    gaps: bool = False,
    changes: bool = True,
    checks: bool = False,
    goal: Literal["mean", "p99-reads", "throughput"] = "mean",
    hot: float | None = None,
    reports: int | None = None,
    replay: Replay = "auto",
    fit: Fit = "as-is",
    coarse_times: CoarseTimes = "spread",
    seed: int = 1,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress = None,
) -> FleetReport:
    """Studies many drives, each with its own trace, into one table and one page.

    `traces` is a folder of traces, or one trace with several devices. A trace in a folder of the folder has its
    name as server; else its name is cut at the last `-` or `_` into server and bay. `places` says more: a CSV or
    a table with the columns trace and drive, server or bay, or a dict of such dicts. `output` is a folder: it gets `fleet.html`,
    `fleet.json`, `fleet.parquet`, and the reports of the first `reports` drives that are worth a look, 10 unless
    said otherwise. `hot` is the share of the time in which a hot drive works at least: 0.5 unless said otherwise. A
    study with an output that was killed goes on where it was. `executor` as for `sweep`.
    """

def study(
    trace: AnyTrace,
    *,
    drive: AnyDrive | Sequence[AnyDrive] | None = None,
    policies: str | Sequence[str] | None = None,
    scrub: bool = True,
    scrub_effort: Time | None = None,
    changes: bool = True,
    goal: Literal["mean", "p99-reads", "throughput"] = "mean",
    fit_drive: bool = False,
    cache_depth: int | None = None,
    electronics: bool = True,
    replay: Replay = "auto",
    fit: Fit = "as-is",
    coarse_times: CoarseTimes = "spread",
    device: int | None = None,
    seed: int = 1,
    progress: Progress = None,
) -> StudyReport:
    """Studies a trace on a drive: each scheduling policy, what would help, and a scrub in the rotational gaps.

    Several drives stand beside each other in the report. `fit_drive` fits the drive to the recorded responses
    first.
    """

def cache_curves(
    trace: AnyTrace,
    *,
    drive: AnyDrive | None = None,
    policies: str | MakeCachePolicy | Sequence[str | MakeCachePolicy] | None = None,
    sizes: int | float | str | Sequence[int | float | str] | None = None,
    sample: float | None = None,
    warm_up: float | None = None,
    responses: Literal["best", "all", "none"] = "best",
    cache_depth: int | None = None,
    electronics: bool = True,
    replay: Replay = "auto",
    fit: Fit = "as-is",
    coarse_times: CoarseTimes = "spread",
    device: int | None = None,
    seed: int = 1,
    progress: Progress = None,
) -> CacheReport:
    """Works out what caches of each policy and size would do for a trace, with a drive behind them where the
    trace's times permit that.

    A size is a number of bytes, a text as `"64MiB"`, or a share of the footprint as 0.01. A policy is a name, or a
    class of `CachePolicy`, which is slower and has no responses; `"belady"` knows the future, and is a bound.
    """

@final
class ObjectReport(Report):
    """The document of `freewheel cache --by-object`.

    Its table has a row a policy and size.
    """

    @property
    def uses(self) -> int:
        """Uses of objects."""

    @property
    def objects(self) -> int:
        """Distinct objects."""

    @property
    def footprint_bytes(self) -> int:
        """Bytes of these, each with the size of its first use."""

    @property
    def sizes_bytes(self) -> list[int]:
        """Sizes of the caches, ascending."""

def object_curves(
    trace: AnyTrace,
    *,
    policies: str | Sequence[str] | None = None,
    sizes: int | float | str | Sequence[int | float | str] | None = None,
    device: int | None = None,
    progress: Progress = None,
) -> ObjectReport:
    """Counts the misses of caches whose objects have sizes of their own, as a cache simulator does.

    Every read or write is a use, in the order of the file. A size is one of `cache_curves`; a share is one of the
    bytes of all objects.
    """

def plan_stripe(
    source: AnyTrace,
    *,
    drive: AnyDrive | None = None,
    disks: int | None = None,
    load: float = 1.0,
    headroom: float = 2.0,
    requests: int | None = None,
    electronics: bool = True,
    replay: Replay = "auto",
    fit: Fit = "as-is",
    coarse_times: CoarseTimes = "spread",
    device: int | None = None,
    seed: int = 1,
    progress: Progress = None,
) -> StripeReport:
    """Works out how finely to stripe files or a volume over equal disks, and simulates their requests with each
    stripe unit that is tried.

    The source is a trace, the snapshot of a JBOD, or the log of a web server.
    """

def plan_placement(
    source: AnyTrace,
    *,
    drive: AnyDrive | None = None,
    disks: int | None = None,
    fragment: Size | None = None,
    load_time: Literal["common", "own", "whole"] = "common",
    device: int | None = None,
    load: float = 1.0,
    horizon: Time | None = None,
    min_gain: float = 0.01,
    keep_free: float = 0.05,
    copy_rate: Size | None = None,
    max_moves: int = 100,
    add_disk: AnyDrive | Sequence[AnyDrive] | None = None,
    replace: Mapping[str, AnyDrive] | None = None,
    requests: int | None = None,
    seed: int = 1,
    progress: Progress = None,
) -> PlaceReport:
    """Works out which files of a JBOD to move so that clients wait less, and simulates their requests before and
    after. It moves nothing.

    `horizon` is the time within which a move has to pay back what its copy cost, 30 days if none is given.
    """

def extract(
    target: AnyDrive,
    *,
    name: str = "extracted",
    seed: int = 1,
    surfaces: bool = False,
    progress: Progress = None,
) -> Extraction:
    """Finds the parameters of a drive by timing reads of it.

    The target is a `Drive` or `"emulated:NAME"` in virtual time, or the path of a block device. `surfaces` goes
    track by track where tracks make no zones of heads or bands.
    """

def validate(
    drive: AnyDrive, trace: AnyTrace, *, delays: Literal["before", "after"] | None = None
) -> Validation:
    """Sends the requests of a measured trace to a drive, each as long after the completion of the one before as in
    the trace, and compares the response times."""

def reproduce(
    ids: str | Sequence[str] | None = None,
    *,
    quick: bool = False,
    seeds: int | Sequence[int] | None = None,
    recordings: StrPath | None = None,
    progress: Progress = None,
) -> ClaimsReport:
    """Runs the experiment behind a claim, and compares its numbers with the paper's.

    `ids` are one or several of `claims()`, all if none is given.
    """

def claims() -> dict[str, str]:
    """The claims there are: id and title."""

def drives() -> list[str]:
    """Names of the shipped drives, sorted."""

def formats() -> dict[str, str]:
    """The formats of traces that are read: name and description."""

def schema(of: Literal["experiment", "drive"] = "experiment") -> dict[str, Any]:
    """The JSON Schema of an experiment, or of a drive file, as a dict."""

def run_command_line(words: Sequence[str], itself: Sequence[str]) -> int:
    """Runs a command line, whose first word is the program's name, and gives the exit code."""
