"""Pictures by matplotlib."""

from typing import Any

from . import _freewheel

STAGES = ["queue_ns", "overhead_ns", "seek_ns", "rotate_ns", "transfer_ns", "bus_ns"]


def plot(result: Any, ax: Any = None) -> Any:
    """Draws a result into `ax`, or into axes of its own, which it returns."""
    ways = [
        (_freewheel.SimReport, _experiment),
        (_freewheel.StudyReport, _policies),
        (_freewheel.CacheReport, _caches),
        (_freewheel.ObjectReport, _caches),
        (_freewheel.SweepReport, _sweep),
        (_freewheel.FleetReport, _fleet),
        (_freewheel.StripeReport, _stripes),
        (_freewheel.ClaimsReport, _claims),
    ]
    draw = next((draw for kind, draw in ways if isinstance(result, kind)), None)
    if draw is None:
        raise TypeError(f"a {type(result).__name__} has no picture: to_polars() has its table")
    if ax is None:
        ax = _axes()
    draw(result, ax)
    return ax


def _axes() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "matplotlib is not installed: `pip install matplotlib`, or this package with [plot]",
            name="matplotlib",
        ) from error
    return pyplot.subplots(layout="constrained")[1]


def _columns(result: Any) -> dict[str, list[Any]]:
    """The table as lists, without any library."""
    table: dict[str, list[Any]] = result.frame.to_pydict()
    return table


def _sizes(ax: Any) -> None:
    """Sizes along the axis: each step is twice as large."""
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda size, _: size_text(size))
    ax.xaxis.set_minor_formatter(lambda size, _: "")


def size_text(size: float) -> str:
    """A size as people write it: 65536 is 64 KiB."""
    units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.4g} {units[0]}"


def _experiment(result: Any, ax: Any) -> None:
    """Mean time of each stage of reads and writes."""
    document = result.to_dict()["result"]
    requests = max(document["response"]["count"], 1)
    times = [document["stages"][stage] / requests / 1e6 for stage in STAGES]
    names = [stage.removesuffix("_ns") for stage in STAGES]
    ax.barh(names, times)
    ax.invert_yaxis()
    ax.set_xlabel("mean time of a request, ms")
    ax.set_title(f"{document['response']['mean_ns'] / 1e6:.2f} ms on average")


def _policies(result: Any, ax: Any) -> None:
    """Mean response time of each policy."""
    table = _columns(result)
    ax.barh(table["title"], [ns / 1e6 for ns in table["response_ns_mean"]])
    ax.invert_yaxis()
    ax.set_xlabel("mean response time, ms")
    ax.set_title(f"policies on {result.drive}")


def _caches(result: Any, ax: Any) -> None:
    """Miss ratio of each policy against the size."""
    table = _columns(result)
    for policy in dict.fromkeys(table["policy"]):
        rows = [row for row, name in enumerate(table["policy"]) if name == policy]
        sizes = [table["size_bytes"][row] for row in rows]
        ax.plot(sizes, [table["miss_ratio"][row] for row in rows], marker=".", label=policy)
    _sizes(ax)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("size of the cache")
    ax.set_ylabel("miss ratio")
    ax.legend()


def _sweep(result: Any, ax: Any) -> None:
    """Mean response time against the last key of numbers, a line for each combination of the others."""
    table = _columns(result)
    swept = [name for name in result.keys if len(set(table[name])) > 1]
    times = [ns / 1e6 for ns in table["response_ns_mean"]]
    numbers = [name for name in swept if all(type(value) in (int, float) for value in table[name])]
    if not numbers:
        names = [", ".join(str(table[name][row]) for name in swept) for row in range(len(times))]
        ax.barh(names, times)
        ax.invert_yaxis()
        ax.set_xlabel("mean response time, ms")
        return
    along = numbers[-1]
    lines: dict[str, list[int]] = {}
    for row in range(len(times)):
        others = [str(table[name][row]) for name in swept if name != along]
        lines.setdefault(", ".join(others), []).append(row)
    for label, rows in lines.items():
        rows = sorted(rows, key=lambda row: table[along][row])
        ax.plot([table[along][row] for row in rows], [times[row] for row in rows], marker=".", label=label)
    ax.set_xlabel(along)
    ax.set_ylabel("mean response time, ms")
    if len(lines) > 1:
        ax.legend()


def _fleet(result: Any, ax: Any) -> None:
    """Share of the time in which each drive works, the busiest first."""
    busy = [share for share in _columns(result)["utilisation"] if share is not None]
    ax.plot(range(1, len(busy) + 1), sorted(busy, reverse=True), marker=".")
    ax.axhline(result.to_dict()["hot_share"], color="grey", linewidth=0.8)
    ax.set_ylim(0, 1)
    ax.set_xlabel("drives, the busiest first")
    ax.set_ylabel("share of the time in which the drive works")


def _stripes(result: Any, ax: Any) -> None:
    """Mean response time against the stripe unit."""
    table = _columns(result)
    for column, label in [("response_s", "simulated"), ("model_response_s", "model")]:
        times = [float("nan") if time is None else 1e3 * time for time in table[column]]
        ax.plot(table["unit_bytes"], times, marker=".", label=label)
    _sizes(ax)
    ax.set_xlabel("stripe unit")
    ax.set_ylabel("mean response time, ms")
    ax.legend()


def _claims(result: Any, ax: Any) -> None:
    """Each of our numbers as a multiple of the paper's."""
    table = _columns(result)
    pairs = zip(table["quantity"], table["paper"], table["ours"])
    rows = [(quantity, ours / paper) for quantity, paper, ours in pairs if paper and ours is not None]
    ax.scatter([ratio for _, ratio in rows], range(len(rows)), marker="o")
    ax.set_yticks(range(len(rows)), [quantity for quantity, _ in rows])
    ax.invert_yaxis()
    ax.axvline(1, color="grey", linewidth=0.8)
    ax.set_xlabel("ours / paper's")
