"""Reads the stream of `freewheel scan --exec 'python3 examples/blocks.py'` and says how much of it is zeros."""
import sys


def records(stream):
    """(first block, bytes) as they come; None for the bytes of blocks that cannot be read."""
    if stream.readline() != b"freewheel-blocks 1\n":
        raise SystemExit("this is no stream of blocks")
    while line := stream.readline():
        kind, *numbers = line.decode().split()
        if kind == "end":
            if numbers != ["done"]:
                raise SystemExit(f"the scan was {numbers[0]}")
            return
        first, blocks = int(numbers[0]), int(numbers[1])
        yield first, stream.read(512 * blocks) if kind == "data" else None
    raise SystemExit("the stream was cut off")


seen = zeros = unreadable = 0
for first, data in records(sys.stdin.buffer):
    if data is None:
        unreadable += 1
        continue
    seen += len(data)
    zeros += data.count(0)
print(f"{seen} bytes, {100 * zeros / max(seen, 1):.1f} % zeros, {unreadable} runs of blocks unreadable")
