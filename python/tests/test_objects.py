"""Caches of whole objects against libCacheSim, use by use."""

from pathlib import Path
from typing import Any

import freewheel
import libcachesim
import numpy as np
import pytest
from conftest import SQLITE

USES, OBJECTS, SEED = 40_000, 5_000, 5
SIZES = [1 << 20, 3_333_333, 10_000_000, 60_000_000]
THEIRS = {
    "lru": libcachesim.LRU,
    "fifo": libcachesim.FIFO,
    "clock": libcachesim.Clock,
    "lfu": libcachesim.LFU,
    "sieve": libcachesim.Sieve,
    "s3-fifo": libcachesim.S3FIFO,
    "belady": libcachesim.Belady,
}


def oracle_general(path: Path, ids: Any, sizes: Any) -> Path:
    """A trace of libCacheSim with these objects and the size of each use."""
    record = [("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")]
    rows = np.zeros(len(ids), np.dtype(record))
    rows["time"], rows["id"], rows["size"] = np.arange(len(ids)) // 100, ids, sizes
    later: dict[int, int] = {}
    for at in range(len(ids) - 1, -1, -1):
        rows["next"][at] = later.get(int(ids[at]), -1)
        later[int(ids[at])] = at
    rows.tofile(path)
    return path


@pytest.fixture(scope="module")
def zipf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Objects by a power law, with hashes for numbers and sizes by a lognormal law."""
    random = np.random.default_rng(SEED)
    weights = 1 / np.arange(1, OBJECTS + 1) ** 0.9
    ranks = random.choice(OBJECTS, USES, p=weights / weights.sum())
    sizes = np.exp(random.normal(9, 1.5, OBJECTS)).astype(np.int64).clip(1, 2_000_000)
    # Some fit into the largest caches alone, and one into none.
    sizes[::400], sizes[1000] = 15_000_000, 100_000_000
    names = random.permutation(OBJECTS).astype(np.uint64) * np.uint64(3_000_000_000_003)
    path = tmp_path_factory.mktemp("objects") / "zipf.oracleGeneral.bin"
    return oracle_general(path, names[ranks], sizes[ranks])


def theirs(path: Path, policy: str, size: int) -> tuple[int, float]:
    """Misses, and the share of the bytes that missed."""
    reader = libcachesim.TraceReader(str(path), libcachesim.TraceType.ORACLE_GENERAL_TRACE)
    by_use, by_byte = THEIRS[policy](cache_size=size).process_trace(reader)
    return round(by_use * reader.get_num_of_req()), by_byte


def ours(report: freewheel.ObjectReport) -> dict[tuple[str, int], tuple[int, float]]:
    rows = report.frame.to_pydict()
    keys = zip(rows["policy"], rows["size_bytes"], strict=True)
    values = zip(rows["misses"], rows["byte_miss_ratio"], strict=True)
    return dict(zip(keys, values, strict=True))


def test_every_policy_misses_as_in_libcachesim_to_the_last_use(zipf: Path) -> None:
    report = freewheel.object_curves(zipf, sizes=SIZES)
    found = ours(report)
    assert len(found) == len(THEIRS) * len(SIZES) and report.uses == USES
    for (policy, size), (misses, by_byte) in found.items():
        expected, expected_by_byte = theirs(zipf, policy, size)
        assert misses == expected, (policy, size)
        assert by_byte == pytest.approx(expected_by_byte, abs=1e-12), (policy, size)


def test_objects_of_one_size_are_counted_as_keys(tmp_path: Path) -> None:
    ids = np.random.default_rng(SEED).zipf(1.3, 20_000) % 3_000
    path = oracle_general(tmp_path / "keys.oracleGeneral.bin", ids, np.full(len(ids), 100))
    found = ours(freewheel.object_curves(path, sizes=[10_000]))
    for policy in THEIRS:
        assert found[policy, 10_000][0] == theirs(path, policy, 10_000)[0], policy
    best = found["belady", 10_000][0]
    assert all(best <= misses for misses, _ in found.values())


def test_a_share_is_of_the_bytes_of_all_objects(zipf: Path) -> None:
    report = freewheel.object_curves(zipf, policies="lru", sizes=[1.0, 0.1])
    assert report.sizes_bytes == [int(report.footprint_bytes * 0.1), report.footprint_bytes]
    assert ours(report)["lru", report.footprint_bytes][0] == report.objects, "each is fetched once"
    assert "MIN" not in report.text() and f"{report.objects:,}" in report.text()
    document = report.to_dict()
    assert document["uses"] == USES and document["curves"][0]["points"][1]["misses"] == report.objects


def test_requests_to_a_disk_are_objects_too() -> None:
    report = freewheel.object_curves(SQLITE, policies=["lru", "belady"], sizes=0.1)
    assert 0 < report.objects < report.uses


def test_a_policy_that_does_not_know_sizes_is_refused(zipf: Path) -> None:
    with pytest.raises(freewheel.UsageError, match="arc is not defined for objects of unlike sizes"):
        freewheel.object_curves(zipf, policies="arc")
    with pytest.raises(freewheel.UsageError, match="MyFifo: a policy in Python") as caught:
        freewheel.object_curves(zipf, policies=["lru", type("MyFifo", (), {})])  # type: ignore[list-item]
    assert caught.value.help and "cache_curves takes a class" in caught.value.help
    with pytest.raises(freewheel.Error, match="of device 7"):
        freewheel.object_curves(zipf, device=7)
