"""Makes the traces of a fleet out of recorded ones: `python examples/fleet.py FOLDER [DRIVES [REQUESTS [SEED]]]`.

Every drive gets a stretch of one of the recorded traces, faster or slower, at another place of the disk. Needs
polars.
"""

import random
import sys
from pathlib import Path

import freewheel
import polars as pl

BAYS = 24


def main(folder: str, drives: str = "500", requests: str = "20000", seed: str = "1") -> None:
    recorded = [
        freewheel.Trace.open(path).to_polars().sort("arrival_ns", maintain_order=True)
        for path in sorted(Path("data/recorded").glob("*.csv.zst"))
    ]
    for number in range(int(drives)):
        chance = random.Random(f"{seed} {number}")
        trace = chance.choice(recorded)
        count = min(int(requests), len(trace))
        stretch = trace[chance.randrange(len(trace) - count + 1) :][:count]
        # From an eighth of the recorded pace to eight times as fast.
        slower, moved = 2 ** chance.uniform(-3, 3), chance.randrange(1 << 28)
        begun = stretch["arrival_ns"].min()
        own = stretch.with_columns(
            ((pl.col("arrival_ns") - begun) * slower).cast(pl.Int64),
            ((pl.col("completion_ns") - pl.col("arrival_ns")) + (pl.col("arrival_ns") - begun) * slower)
            .cast(pl.Int64)
            .alias("completion_ns"),
            pl.when(pl.col("blocks") > 0).then(pl.col("start_block") + moved * 8).otherwise(0).alias("start_block"),
        )
        path = Path(folder) / f"server{number // BAYS:02}" / f"{number % BAYS:02}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        own.write_parquet(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
