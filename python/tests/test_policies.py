"""Policies written in Python against the same ones in Rust, and what wrong ones end by."""

import os
import signal
import threading
import time
from collections import OrderedDict
from typing import Any

import freewheel
import pytest
from conftest import CLOSED, SQLITE
from freewheel import Moment, Request


class Waiting:
    """What all of them share: the requests that wait, by number."""

    def __init__(self) -> None:
        self.requests: dict[int, Request] = {}

    def push(self, request: Request) -> None:
        self.requests[request.sequence] = request

    def take(self, sequence: int) -> None:
        del self.requests[sequence]

    def cost(self, request: Request, moment: Moment) -> int:
        raise NotImplementedError

    def pick(self, moment: Moment) -> Request | int | None:
        best = min(self.requests.values(), key=lambda r: (self.cost(r, moment), r.sequence), default=None)
        return self.requests.pop(best.sequence) if best else None


class Sptf(Waiting):
    def cost(self, request: Request, moment: Moment) -> int:
        return moment.positioning_ns(request)


class Sstf(Waiting):
    def cost(self, request: Request, moment: Moment) -> int:
        return moment.seek_ns(request)


class Fcfs(Waiting):
    def pick(self, moment: Moment) -> int:
        return self.requests.pop(min(self.requests)).sequence

    def cost(self, request: Request, moment: Moment) -> int:
        return 0


SETTINGS: list[dict[str, Any]] = [
    CLOSED,
    {**CLOSED, "electronics": False},
    {**CLOSED, "array": {"drives": 2, "stripe_unit": "64KiB"}},
    {**CLOSED, "array": {"layout": "independent", "drives": 2}},
    {**CLOSED, "cache": {"size": "4MiB", "write_buffer": {"size": "1MiB"}}},
    {**CLOSED, "freeblock": {"tasks": [{"kind": "scan"}]}},
    {**CLOSED, "drive": "exos-2x18-18tb"},
]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("policy", "name"), [(Sptf, "sptf"), (Sstf, "sstf"), (Fcfs, "fcfs")])
def test_a_scheduler_in_python_runs_as_the_same_one_in_rust(
    setting: dict[str, Any], policy: type[Waiting], name: str
) -> None:
    config = {**setting, "workload": {**setting["workload"], "requests": 600}}
    in_rust = freewheel.simulate({**config, "scheduler": {"policy": name}})
    in_python = freewheel.simulate(config, policy=policy)
    assert in_python.result_hash == in_rust.result_hash
    assert in_python.to_dict()["own_policy"] == policy.__name__
    assert f"under {policy.__name__}" in in_python.html()
    assert "own_policy" not in in_rust.to_dict()


def test_one_policy_is_made_for_each_arm() -> None:
    made: list[Fcfs] = []

    def make() -> Fcfs:
        made.append(Fcfs())
        return made[-1]

    config = {**CLOSED, "array": {"drives": 3, "stripe_unit": "64KiB"}}
    freewheel.simulate(config, policy=make)
    assert len(made) == 3


def test_a_request_and_a_moment_say_what_they_are() -> None:
    seen: list[tuple[Request, Moment]] = []

    class Looks(Fcfs):
        def pick(self, moment: Moment) -> int:
            request = self.requests[min(self.requests)]
            seen.append((request, moment))
            return super().pick(moment)

    result = freewheel.simulate(CLOSED, policy=Looks, completions=True)
    request, moment = seen[-1]
    rows = result.frame.to_pydict()
    # Under FCFS completions come in the order of decisions.
    at = len(seen) - 1
    assert rows["blocks"][at] == request.blocks and rows["op"][at] == request.op
    assert 0 < moment.seek_ns(request) <= moment.positioning_ns(request)
    assert request.arrival_ns <= moment.now_ns
    assert 0 <= request.cylinder < 20_000 and 0 <= request.head < 20 and not request.fua
    assert f"{request.sequence}: {request.op} of {request.blocks} blocks" in repr(request)
    assert str(moment.cylinder) in repr(moment)
    with pytest.raises(AttributeError):
        request.blocks = 1  # type: ignore[misc]


def test_an_exception_comes_out_as_it_is() -> None:
    class Own(Exception):
        pass

    class Raises(Fcfs):
        def pick(self, moment: Moment) -> int:
            if moment.now_ns > 10**8:
                raise Own("after a tenth of a second")
            return super().pick(moment)

    for config in [CLOSED, {**CLOSED, "array": {"layout": "independent", "drives": 2}}]:
        with pytest.raises(Own, match="after a tenth") as caught:
            freewheel.simulate(config, policy=Raises)
        assert any(frame.name == "pick" for frame in caught.traceback)


@pytest.mark.parametrize(
    ("picks", "says"),
    [
        (lambda self: 10**6, "gave request 1000000, which does not wait, while 20 wait"),
        (lambda self: None, "gave None, while 20 wait"),
        (lambda self: "first", "gave 'first', while 20 wait"),
        (lambda self: -1, "gave -1, while 20 wait"),
    ],
)
def test_a_wrong_pick_is_an_error_that_says_so(picks: Any, says: str) -> None:
    class Wrong(Fcfs):
        def pick(self, moment: Moment) -> int:
            return picks(self)  # type: ignore[no-any-return]

    with pytest.raises(freewheel.Error, match="policy: pick") as caught:
        freewheel.simulate(CLOSED, policy=Wrong)
    assert says in str(caught.value) and "neither picked nor taken" in str(caught.value)


def test_a_request_that_was_served_does_not_wait() -> None:
    class Twice(Fcfs):
        first: Request | None = None

        def pick(self, moment: Moment) -> Request:  # type: ignore[override]
            self.first = self.first or self.requests[min(self.requests)]
            return self.first

    with pytest.raises(freewheel.Error, match="request 0, which does not wait"):
        freewheel.simulate(CLOSED, policy=Twice)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: freewheel.simulate(CLOSED, policy="sptf"), ["policy is a str", "give the class"]),
        (lambda: freewheel.simulate(CLOSED, policy=Fcfs()), ["policy is a Fcfs", "give the class"]),
        (lambda: freewheel.simulate(CLOSED, policy=dict), ["dict has no method `push`"]),
        (lambda: freewheel.simulate(CLOSED, cache_policy=Lru), ["Lru", "no cache", "table `cache`"]),
        (
            lambda: freewheel.simulate({**CLOSED, "scheduler": {"policy": "mq-deadline"}}, policy=Fcfs),
            ["Fcfs would have no effect", "mq-deadline", "fcfs"],
        ),
        (
            lambda: freewheel.simulate({**CLOSED, "electronics": True, "host": {}}, policy=Fcfs),
            ["Fcfs would have no effect", "leave `host` out"],
        ),
        (lambda: freewheel.cache_curves(SQLITE, policies=["lru", 5]), ["cache policy is a int"]),
        (
            lambda: freewheel.cache_curves(SQLITE, policies=["lru", lambda capacity: capacity]),
            ["int has no method `hit`"],
        ),
        (lambda: freewheel.cache_curves(SQLITE, policies=[Lru]), ["no cache policy that ships", "lru"]),
        (lambda: freewheel.cache_curves(SQLITE, policies="belady"), ["no cache policy that ships"]),
        (lambda: freewheel.cache_curves(SQLITE, policies="beladi"), ["did you mean `belady`"]),
    ],
)
def test_what_cannot_be_a_policy_is_said(call: Any, words: list[str]) -> None:
    with pytest.raises((freewheel.Error, TypeError)) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_ctrl_c_ends_a_run_whose_policy_is_in_python() -> None:
    config = {**CLOSED, "workload": {"kind": "closed", "outstanding": 20, "requests": 10**10}}
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.5, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        freewheel.simulate(config, policy=Sptf)
    assert time.perf_counter() - sent[-1] < 0.3


class Lru:
    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.keys: OrderedDict[int, None] = OrderedDict()

    def hit(self, key: int) -> None:
        self.keys.move_to_end(key)

    def admit(self, key: int) -> int | None:
        evicted = self.keys.popitem(last=False)[0] if len(self.keys) == self.capacity else None
        self.keys[key] = None
        return evicted

    def remove(self, key: int) -> None:
        del self.keys[key]


class Sieve:
    """Algorithm 1 of the paper, over a list: the oldest key comes first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.keys: list[int] = []
        self.used: set[int] = set()
        self.hand = 0

    def hit(self, key: int) -> None:
        self.used.add(key)

    def admit(self, key: int) -> int | None:
        evicted = None
        if len(self.keys) == self.capacity:
            while self.keys[self.hand] in self.used:
                self.used.remove(self.keys[self.hand])
                self.hand = (self.hand + 1) % len(self.keys)
            evicted = self.keys.pop(self.hand)
        if self.hand == len(self.keys):
            self.hand = 0
        self.keys.append(key)
        return evicted

    def remove(self, key: int) -> None:
        at = self.keys.index(key)
        self.keys.pop(at)
        self.used.discard(key)
        self.hand -= at < self.hand
        if self.hand == len(self.keys):
            self.hand = 0


def misses(report: freewheel.CacheReport) -> dict[str, list[tuple[float, float]]]:
    rows = report.frame.to_pydict()
    found: dict[str, list[tuple[float, float]]] = {}
    for name, by_read, by_byte in zip(rows["policy"], rows["miss_ratio"], rows["byte_miss_ratio"], strict=True):
        found.setdefault(name, []).append((by_read, by_byte))
    return found


def test_cache_policies_in_python_miss_as_often_as_the_same_ones_in_rust() -> None:
    report = freewheel.cache_curves(
        SQLITE, policies=["lru", "sieve", Sieve, Lru], sizes=["1MiB", "16MiB"], responses="none"
    )
    found = misses(report)
    assert list(found) == ["lru", "sieve", "Sieve", "Lru"]
    assert found["Sieve"] == found["sieve"]
    # LRU in Rust uses the blocks of a read one after the other, and caches of other policies use them all first.
    for (mine, _), (theirs, _) in zip(found["Lru"], found["lru"], strict=True):
        assert mine == pytest.approx(theirs, abs=5e-4)
    document = report.to_dict()
    assert [curve["policy"] for curve in document["curves"]][2:] == ["Sieve", "Lru"]
    assert document["options"]["policies"] == ["lru", "sieve", "Sieve", "Lru"]
    assert "a policy of the caller" in report.html() and "Sieve" in report.text()


def test_a_sample_goes_through_a_cache_policy_in_python_too() -> None:
    report = freewheel.cache_curves(
        SQLITE, policies=["lru", "sieve", Sieve], sizes=["16MiB"], sample=0.1, responses="none"
    )
    found = misses(report)
    assert found["Sieve"] == found["sieve"]


def test_a_cache_policy_in_python_stands_before_a_drive() -> None:
    config = {
        "drive": "atlas10k",
        "cache": {"size": "1MiB"},
        "workload": {"kind": "trace", "file": str(SQLITE), "fit": "wrap"},
    }
    for own, name in [(Lru, "lru"), (Sieve, "sieve")]:
        in_rust = freewheel.simulate(config, overrides={"cache.policy": name})
        in_python = freewheel.simulate(config, cache_policy=own)
        assert in_python.result_hash == in_rust.result_hash, name
        assert in_python.to_dict()["own_cache_policy"] == own.__name__


@pytest.mark.parametrize(
    ("answer", "says"),
    [(None, "gave None, and the cache is full"), (-1, "gave -1, which is not"), ("a", "gave 'a', which")],
)
def test_a_wrong_eviction_is_an_error_that_says_so(answer: Any, says: str) -> None:
    class Wrong(Lru):
        def admit(self, key: int) -> Any:
            return answer if len(self.keys) == self.capacity else super().admit(key)

    with pytest.raises(freewheel.Error, match="cache policy Wrong: admit") as caught:
        freewheel.cache_curves(SQLITE, policies=["lru", Wrong], sizes="1MiB", responses="none")
    assert says in str(caught.value)


def test_an_exception_of_a_cache_policy_comes_out_as_it_is() -> None:
    class Raises(Lru):
        def hit(self, key: int) -> None:
            raise ZeroDivisionError("of the policy")

    with pytest.raises(ZeroDivisionError, match="of the policy"):
        freewheel.cache_curves(SQLITE, policies=["lru", Raises], sizes="256MiB", responses="none")


def test_no_policy_misses_fewer_bytes_than_min() -> None:
    policies = ["lru", "arc", "lirs", "2q", "s3-fifo", "sieve", "w-tinylfu", "fifo", "clock", "lfu", "belady"]
    report = freewheel.cache_curves(SQLITE, policies=policies, responses="none", warm_up=0)
    found = misses(report)
    assert list(found) == policies
    best = found.pop("belady")
    for name, ratios in found.items():
        assert all(least <= own for (_, least), (_, own) in zip(best, ratios, strict=True)), name
    # The cache in the middle could serve much more.
    assert best[4][1] < 0.95 * found["lru"][4][1]
    assert "MIN" in report.text() and "which knows the future" in report.html()
    usual = misses(freewheel.cache_curves(SQLITE, responses="none"))
    assert list(usual) == policies[:7], "nothing is tried that nobody asked for"
