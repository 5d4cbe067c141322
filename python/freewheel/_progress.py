"""What `progress=` shows."""

from collections.abc import Callable
from typing import Any

Shown = Callable[[int, int], object]


def shown(progress: Any) -> Shown | None:
    """What is called with done and total: a bar of tqdm for True, if tqdm is installed."""
    if progress is None or progress is False:
        return None
    if progress is not True:
        if not callable(progress):
            raise TypeError(f"progress={progress!r}: give True, or what is called with done and total")
        call: Shown = progress
        return call
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return _bar(tqdm)


def _bar(tqdm: Any) -> Shown:
    bar = tqdm(total=None, leave=False, bar_format="{percentage:3.0f}%|{bar}| {elapsed}<{remaining}")

    def show(done: int, total: int) -> None:
        # Another part of the work counts in a unit of its own.
        if bar.total != total or done < bar.n:
            bar.reset(total=total)
        bar.update(done - bar.n)
        if done >= total:
            bar.refresh()

    return show
