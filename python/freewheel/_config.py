"""The keys of an experiment as types. Made from its JSON Schema by `python/config_types.py`."""

from os import PathLike
from typing import Any, Literal, Required, TypeAlias, TypedDict

class Activity(TypedDict, total=False):
    """Maintenance that a drive performs on its own, such as thermal recalibration (fast02 section 3.1)."""

    every: "Required[SimDuration]"
    """Mean time between activities; exponentially distributed."""
    lasts: "Required[SimDuration]"
    """Duration of each; it ends with the arm at the outermost cylinder."""


class Adapt(TypedDict, total=False):
    """Rule by which a timeout adapts."""

    least: "SimDuration"
    """Smallest timeout."""
    most: "SimDuration"
    """Largest timeout."""
    step: "Step"
    """By how much it changes."""
    tolerance: "float"
    """Largest ratio of the delay of the first request to the idle time before it that is acceptable."""


class ArrayConfig(TypedDict, total=False):
    """Several drives of the same kind."""

    drives: "int | None"
    """Number of drives. Default one; for a trace on independent drives one for each of its devices, and no other number is allowed."""
    layout: "Layout"
    """Relation between the drives."""
    spindles: "Spindles"
    """Relation between the turns of a striped volume's drives."""
    stripe_unit: "Bytes"
    """Consecutive bytes on one drive of a striped volume."""


class Behaviour(TypedDict, total=False):
    """Behaviour of a drive beyond its mechanics and electronics."""

    activity: "Activity | None"
    """Interruptions by the drive's own maintenance."""
    queue_depth: "int | None"
    """Number of commands that the drive holds at once; the drive's own number when absent."""
    queue_policy: "PolicySpec | None"
    """Policy that chooses among the commands inside; the drive's own when absent."""
    reply_jitter: "SimDuration"
    """Longest delay of a reply on its way to the host; evenly distributed."""
    reply_jitter_a_block: "SimDuration"
    """Longest additional delay of a reply for each block, as the bus lags the media by a time that varies between requests."""
    sector: "SectorFormat | None"
    """Sector format; that of the drive file when absent."""
    seek_jitter: "SimDuration | None"
    """Largest error of a seek either way; the drive's own tolerance when absent."""
    seek_jitter_far: "SimDuration | None"
    """Largest error of a seek over all cylinders. Between short and full seeks it grows with the distance. Equal to that of short seeks when absent."""
    seek_jitter_inward: "SimDuration | None"
    """Largest error of a seek inward, to higher cylinders, over any distance. Equal to that of outward seeks when absent."""
    seek_jitter_shape: "JitterShape"
    """Distribution of seek errors: `even`, or `normal` with the jitter as standard deviation."""
    spindle_drift: "SpindleDrift | None"
    """Drift of the spindle's speed."""
    write_cache: "WriteCache | None"
    """Condition under which a write is done: when the buffer holds it, or when the media do; the drive's own setting when absent. A host can switch this."""


Bytes: TypeAlias = str
"""A size."""

class CacheConfig(TypedDict, total=False):
    """The cache of a storage system in front of each arm: read cache, prefetching and write buffer (tr03). The drive's own buffer is part of `electronics`; each optimisation is best modelled once."""

    block_size: "Bytes"
    """Unit of the caches and of the write buffer, at most 32 KiB."""
    opportunistic: "OpportunisticConfig"
    """Prefetching in time that is idle or lost."""
    policy: "str"
    """Eviction policy of a full read cache: lru, arc, lirs, 2q, s3-fifo, sieve, w-tinylfu, fifo, clock or lfu."""
    prefetch: "PrefetchConfig"
    """Prefetching with reads that miss."""
    prefetch_buffer: "Bytes | None"
    """Memory of a separate cache for opportunistic data, at least one block. Without it they enter the read cache."""
    preset: "CachePreset | None"
    """A system of tr03, tr03-poor or tr03-rich, whose values stand for the keys that are not given."""
    queue_depth: "int"
    """Most requests in the storage system at once; further ones wait in front of the cache."""
    size: "Bytes"
    """Memory of the read cache: at least one block, or zero for none."""
    storage_used: "Bytes | None"
    """Storage in use on the drive, of which tr03-rich takes 1 % for the read cache and 0.1 % for the write buffer. Without it, tr03-rich needs both sizes."""
    write_buffer: "WriteBufferConfig | None"
    """The write buffer. Without it, writes go to the drive at once."""


CachePreset: TypeAlias = Literal["tr03-poor", "tr03-rich"]
"""A storage system of tr03 (figure 2)."""

Clock: TypeAlias = Literal["from-start", "absolute"]
"""Origin of a trace's times."""

CoarseTimes: TypeAlias = Literal["spread", "bunched"]
"""Treatment of requests whose clock is coarser than a disk's service."""

class CommandsConfig(TypedDict, total=False):
    """NCQ priority and Command Duration Limits of commands, and a scrub by commands of the host."""

    clients: "MarksConfig"
    """Marks of the workload's commands."""
    high_priority_first: "SimDuration | None"
    """Overrides the drive's `electronics.queue.high_priority_first`: how long an ordinary command waits behind those of high priority at most."""
    limit_lead: "SimDuration | None"
    """Overrides the drive's `electronics.duration_limits.lead`."""
    read_limits: "list[DurationLimit]"
    """Overrides the drive's `electronics.duration_limits.read`, as a host writes that log of a drive."""
    scrub: "OutsideScrubConfig | None"
    """A scrub that the host sends command by command."""
    write_limits: "list[DurationLimit]"
    """Overrides the drive's `electronics.duration_limits.write`."""


Conservatism: TypeAlias = 'Literal["learned"] | SimDuration'
"""A length of time, or learned from the ends of commands."""

class CoolingConfig(TypedDict, total=False):
    """Moves extents from the hottest disk while clients use it (tr96 figure 5)."""

    accesses: "int"
    """Accesses of an extent over which its heat is averaged."""
    candidates: "int"
    """Extents of the hottest disk that a look considers, the best first."""
    copies: "CopiesConfig"
    """How moves are copied: by `requests` among those of clients, or in `gaps`."""
    copies_first: "bool"
    """True if copies go before all requests that wait for a disk, as far as those have not gone to the drive."""
    every: "CoolingEvery"
    """From one look at the disks to the next: a time, or a number of clients' requests."""
    heat: "HeatConfig"
    """Unit in which heat is counted."""
    idle_after: "SimDuration | None"
    """Idle time of a disk after which copies in gaps use it, too; they never do if absent."""
    moves: "int"
    """Moves at once, each between two disks of its own. So many of the hottest disks may be sources."""
    near_hot: "bool"
    """True if a moved extent goes near the hot ones of its target, and not into the shortest free range."""
    piece: "Bytes"
    """Bytes that a move reads and writes at once."""
    queue_veto: "bool"
    """True if requests that wait at the hottest disk forbid moves."""
    rate: "Bytes | None"
    """Bytes a second that moves copy at most; the number that the disks allow if absent."""
    rule: "CoolingRuleConfig"
    """Condition under which a move is worth it: `{ variance = "1h" }`, which also counts what the move itself costs, or tr96's `target-stays-cooler`."""
    threshold: "float"
    """Share by which the hottest disk must exceed the mean."""
    unit: "CoolingUnitConfig"
    """Parts that move, and their targets: `extents`, or `fragments` as in the traces of tr96."""
    waits: "bool"
    """True if only disks are cooled at which more requests wait or are served than at the mean disk: `waits_factor` times as many."""
    waits_arrivals: "int"
    """Arrivals at a mean disk over which `waits` averages."""
    waits_factor: "float"
    """Multiple of the mean disk's requests that `waits` asks for."""


CoolingEvery: TypeAlias = 'SimDuration | int'
"""From one look at the disks to the next."""

CoolingRuleConfig: TypeAlias = 'Literal["target-stays-cooler"] | dict[str, Any]'
"""Condition under which a move is worth it."""

CoolingUnitConfig: TypeAlias = Literal["extents", "fragments"]
"""Parts that move at once."""

CopiesConfig: TypeAlias = Literal["requests", "gaps"]
"""Way in which moves are copied."""

DestageOrderConfig: TypeAlias = Literal["lrw", "wow"]
"""Order in which blocks leave a write buffer."""

class Drift(TypedDict, total=False):
    """A hot set that moves: every so often some files of each class change places with others of it, each taking the other's share of the requests."""

    changes_max: "int"
    """Most changes between two requests: after many, nothing is left of the old order."""
    every: "Required[SimDuration]"
    """Time from one change to the next."""
    files: "Required[float]"
    """Share of each class's files that change, as 0.1."""


class DurationLimit(TypedDict, total=False):
    """A duration limit descriptor."""

    active: "SimDuration | None"
    """Longest time that the drive works on a command: its active time. No limit when absent."""
    inactive: "SimDuration | None"
    """Longest time that a command waits in the drive: its inactive time. No limit when absent."""
    policy: "LimitPolicy"
    """Action of the drive at either limit."""


class FileClass(TypedDict, total=False):
    """Files that are alike."""

    files: "Required[int]"
    """Number of files."""
    hot: "HotFiles | None"
    """Skew of the use of files; all alike if absent."""
    name: "str | None"
    """Name of the class in results; its number if absent."""
    new_files: "float"
    """Files of it that are created a second. Each takes the place of another one, which is deleted, and that one's share of the requests. Its first request writes it as a whole."""
    reads: "float"
    """Share of its requests that read."""
    request: "Bytes | None"
    """Size of a request; the whole file if absent."""
    share: "float"
    """Share of all requests, beside the shares of the other classes; 0 for files without requests."""
    size: "Required[Bytes]"
    """Mean size of a file."""
    sizes: "FileSizes"
    """Size of all files, or mean of an exponential distribution of sizes."""


FileOrder: TypeAlias = Literal["placed", "hottest-outermost"]
"""In which order the files of a disk lie on it, from its outermost track on."""

FilePlacement: TypeAlias = Literal["heat", "round-robin", "random", "equal-bytes"]
"""On which disk a file goes. No disk gets two extents of one file."""

FileSizes: TypeAlias = Literal["constant", "exponential"]
"""Sizes of the files of a class."""

FileStripes: TypeAlias = 'Literal["whole", "best"] | dict[str, Any]'
"""Over how many disks a file is spread."""

Fit: TypeAlias = Literal["as-is", "wrap", "scale"]
"""Fit of a trace whose address space is not the drive's size."""

class FreeblockConfig(TypedDict, total=False):
    """Background work in the rotational gaps of the foreground: freeblock scheduling."""

    conservatism: "SimDuration"
    """Time by which seeks to and from free work are planned to be longer than the curve says, inside the drive: the conservatism of fast02. A scheduler outside has its own, `host.scheduler.conservatism`."""
    idle: "IdleConfig | None"
    """Uses idle time as well."""
    nodes_max: "int | None"
    """Most nodes of its search that one decision looks at; then the best found so far is taken, and the decision counted as beyond its budget."""
    patience: "PatienceConfig | None"
    """Nodes, under the rule paths, until a search gives up a little more. The nearer it comes to this number, the more must still be possible. When absent, 160 on drives of more than 131,072 cylinders; on others a search ends when the best is sure, as with "endless"."""
    region_weights: "bool"
    """True if, under the rule paths, regions of the disk that lag behind count for more."""
    rule: "Rule"
    """Rule that fills a gap."""
    same_track: "SameTrack"
    """Free work on the tracks of foreground requests, inside the drive. A scheduler outside has its own, `host.scheduler.same_track`."""
    steps_max: "int | None"
    """Most wanted pieces on one cylinder among which a path over its tracks is sought, under the rule paths; where there are more, the best of its tracks is taken."""
    tasks: "list[TaskOrder]"
    """The tasks, which compete for the same gaps; when absent one scan."""


HeatConfig: TypeAlias = Literal["head-time", "blocks"]
"""Unit in which heat is counted."""

class HostConfig(TypedDict, total=False):
    """A scheduler outside the drive. It has the drive's file; of the drive itself it sees commands and the times of their ends (fast02). Each actuator has a separate scheduler and appears as a separate device, as on drives with a logical unit for each."""

    behaviour: "Behaviour"
    """Behaviour of the drive beyond its file. By default the write cache is off, as the end of a cached write says little about the media. By default the drive has room for every command of the scheduler."""
    scheduler: "PredictionSpec"
    """The scheduler."""
    server: "bool"
    """Runs the whole scheduler of `freewheel serve`, with one client. It holds a request back while it overlaps with an earlier one, has one flush at the drive at a time, and sends requests of more than 64 KiB in pieces of up to 1 MiB: their stage times are those of the last piece. Tasks are scans, scrubs and backups. How much of the gaps each used is not counted."""


class HotFiles(TypedDict, total=False):
    """That some files get most requests, Zipf-like: any share x of the files, hottest first, gets x^e of the requests, and e fits these two shares (tr96 equation 26)."""

    files: "Required[float]"
    """Share of the files, as 0.3."""
    requests: "Required[float]"
    """Share of the requests that go to them, as 0.7."""


class IdleConfig(TypedDict, total=False):
    """Use of idle time: after a while without requests, the arm reads until a request arrives. The run under way finishes first."""

    adapt: "Adapt | None"
    """Adapts `after` to the measured cost; fixed when absent."""
    after: "Required[SimDuration]"
    """Time without requests before the first run: the timeout of Golding et al., "Idleness is not sloth" (USENIX 1995)."""
    run_max: "Bytes"
    """Most bytes in a run. A request that arrives waits for the end of a run. A larger block of the task is read as a whole."""


JitterShape: TypeAlias = Literal["even", "normal"]
"""Distribution of seek errors."""

LaterRate = TypedDict("LaterRate", {
    "from": "Required[SimDuration]",
    "rate": "Required[float]",
}, total=False)
"""Another rate from a time on."""


Layer: TypeAlias = Literal["auto", "queued", "issued"]
"""Requests that are read of a trace of a block layer, which joins adjoining requests while they wait."""

Layout: TypeAlias = Literal["striped", "independent"]
"""Relation between several drives."""

LimitPolicy: TypeAlias = Literal["complete", "abort"]
"""Action of a drive on a command that has reached a limit."""

class MarksConfig(TypedDict, total=False):
    """Marks of commands by operation."""

    high_priority: "bool"
    """NCQ priority."""
    read_limit: "int"
    """Number of the duration limit that reads name, from 1 on; 0 for none."""
    write_limit: "int"
    """Number of the duration limit that writes name, from 1 on; 0 for none."""


MetadataWrites: TypeAlias = Literal["delayed", "immediate"]
"""Time at which changed inodes and directories go to the log."""

class MoreDisks(TypedDict, total=False):
    """Disks of another drive."""

    count: "Required[int]"
    """Number of files."""
    drive: "Required[str]"
    """Name of a shipped drive, or path of a drive file, from the folder of the experiment."""


NewHeatConfig: TypeAlias = Literal["class", "known", "after-accesses"]
"""Heat with which a new file counts when it is placed, and when the next ones are."""

Numbers: TypeAlias = Literal["objects", "addresses"]
"""Meaning of the numbers in a cache simulator's trace."""

class OpportunisticConfig(TypedDict, total=False):
    """Prefetching that costs no request any time."""

    free_blocks: "bool"
    """Blocks that pass the head on the track before the wanted ones enter the cache."""
    just_in_time_seek: "bool"
    """The head leaves its track as late as it can and reads on until then, where there is something to read on. Such an access has no time for `free_blocks`; others have."""
    read_ahead: "Bytes"
    """An idle drive reads on until this much was prefetched behind a read. Zero for none."""


class OutsideScrubConfig(TypedDict, total=False):
    """A scrub from outside the drive: reads in the order of addresses, some of them at the drive at all times. After the last address it begins again."""

    high_priority: "bool"
    """NCQ priority of its reads."""
    outstanding: "int"
    """Reads at the drive at once."""
    read_limit: "int"
    """Number of the duration limit that its reads name, from 1 on; 0 for none."""
    reads_max: "int | None"
    """Reads after which the workload issues no further request; no bound when absent."""
    run: "Bytes"
    """Bytes of a read."""
    start: "Bytes"
    """First byte of the scrub."""


PatienceConfig: TypeAlias = 'int | PatienceWord'
"""Nodes until a search for paths gives up a little more."""

PatienceWord: TypeAlias = Literal["endless"]
"""A patience that is no number."""

class PatternSpec(TypedDict, total=False):
    """The mix of requests of osdi00 section 3: defaults are its *random* workload."""

    align: "Bytes"
    """Starts are multiples of this, and sizes that vary."""
    fua_share: "float"
    """Share of the writes with force unit access, 0 to 1: done when they are on the media."""
    local_sd: "Bytes"
    """Standard deviation of the local ones."""
    local_share: "float"
    """Share of requests that start near the one before: normal around its start."""
    read_share: "float"
    """Share of reads, 0 to 1."""
    size: "Bytes"
    """Size of a request, or its mean."""
    size_distribution: "SizeDistribution"
    """Distribution of request sizes."""


class PolicySpec(TypedDict, total=False):
    """A policy with its parameters."""

    age_factor: "float | None"
    """Weight W of asatf."""
    fifo_batch: "int | None"
    """Requests of a batch of mq-deadline."""
    front_merges: "bool | None"
    """True if mq-deadline lets a request join the one that begins where it ends."""
    latency_weight: "float | None"
    """Weight W of sstf-lw: the seek time that a unit of rotational latency is worth."""
    max_budget: "int | None"
    """Most blocks of 512 bytes that bfq serves from a queue in a row."""
    nr_requests: "int | None"
    """Requests in scheduler and drive at once, for schedulers of Linux but none."""
    policy: "Required[str]"
    """Name of the policy: fcfs, look (or scan), clook (or c-look), sstf, sstf-lw, sptf, sptf-sw, asatf; or of a scheduler of Linux in front of a drive: none, mq-deadline, kyber, bfq."""
    read_expire: "SimDuration | None"
    """Age from which mq-deadline serves a read before the sorted order."""
    read_latency: "SimDuration | None"
    """Wanted latency of reads under kyber."""
    slice_idle: "SimDuration | None"
    """Time that bfq keeps the drive idle for the next sequential read."""
    timeout_sync: "SimDuration | None"
    """Longest time that bfq leaves a queue at the drive while others wait."""
    window: "Window | None"
    """Window of sptf-sw, as a fraction of 0 to 1 (0.4 for 40 %) or in per cent ("0%" to "1000%")."""
    write_expire: "SimDuration | None"
    """Age from which mq-deadline serves a write before the sorted order."""
    write_latency: "SimDuration | None"
    """Wanted latency of writes under kyber."""
    writes_starved: "int | None"
    """Batches of reads that mq-deadline serves before waiting writes."""


PostmarkCleaner: TypeAlias = Literal["original", "freeblock", "ideal"]
"""Cleaner of the log's segments."""

class PredictionSpec(TypedDict, total=False):
    """Settings of a scheduler in front of a drive (fast02 sections 3, 4)."""

    budget: "float"
    """For learned conservatism: the largest delay of the foreground by free work, as a share of the head's time at work. 0.000001 to 1."""
    conservatism: "Conservatism"
    """Time that a seek to or from free work may take beyond its prediction: one for all, or `learned` for each kind of seek from the ends of commands."""
    lead_time: "SimDuration"
    """Time before the drive needs its command at which the next request is chosen; requests that arrive before the choice take part in it. The choice is earlier where decisions take longer. With a time longer than any command, the choice is made as soon as the drive takes the command."""
    off_share: "float"
    """Share of slots in which free work in gaps is switched off, at random places, to measure what free work costs clients. 0 to 0.25; with 0 no cost is measured."""
    off_slot: "SimDuration"
    """Length of such a slot. Its first quarter is not measured."""
    queue_depth: "int"
    """Commands at the drive at once. With two the drive has its next command when it completes one, and cannot reorder them."""
    same_track: "SameTrack"
    """Free work on the tracks of foreground requests."""


class PrefetchConfigOff(TypedDict, total=False):
    """Nothing."""

    kind: Required[Literal["off"]]


class PrefetchConfigLargeFetchUnit(TypedDict, total=False):
    """Whole aligned units."""

    kind: Required[Literal["large-fetch-unit"]]
    unit: "Required[Bytes]"
    """Length of a unit."""


class PrefetchConfigReadAhead(TypedDict, total=False):
    """A fixed amount after the missing blocks."""

    amount: "Required[Bytes]"
    """Length of the read-ahead."""
    kind: Required[Literal["read-ahead"]]


class PrefetchConfigConditional(TypedDict, total=False):
    """An amount that grows with the sequential run that the read continues."""

    backward: "bool"
    """True if descending runs prefetch, too."""
    factor: "int"
    """Segments to prefetch for each segment of the run."""
    kind: Required[Literal["conditional"]]
    maximum: "Bytes"
    """Most of one prefetch."""
    segment: "Required[Bytes]"
    """Unit in which runs are detected."""
    trigger: "int"
    """Least run, in segments, that prefetches."""


class PrefetchConfigAmp(TypedDict, total=False):
    """An amount, and how early it is fetched, that each sequential stream learns (AMP)."""

    initial: "Bytes"
    """The first amount of a stream, at least 4 KiB."""
    kind: Required[Literal["amp"]]
    maximum: "Bytes"
    """Most of one prefetch."""
    streams: "int"
    """Streams that are known at a time."""


PrefetchConfig: TypeAlias = "PrefetchConfigOff | PrefetchConfigLargeFetchUnit | PrefetchConfigReadAhead | PrefetchConfigConditional | PrefetchConfigAmp"
"""Blocks that are prefetched with a read that misses."""

Priority: TypeAlias = Literal["low", "normal", "high"]
"""Weight of a task's blocks in a gap, by priority: each counts four times the next lower one. Idle time knows no priorities: the nearest block is done first, for any task, as no gap is taken from another and the head loses least."""

class PromoteTail(TypedDict, total=False):
    """Promotion of the last blocks of a round to foreground requests, so that it ends sooner."""

    cost: "Required[float]"
    """Largest share of a round's time that heads spend on promoted requests. Mean response grows by about this share where requests always wait, and by more in an open workload near saturation."""
    merged_max: "Bytes | None"
    """Most bytes in one promoted request; consecutive blocks are merged. By default 64 KiB, or a block of the task where that is larger."""
    outstanding: "int"
    """Most promoted requests at a time."""


ReplayMode: TypeAlias = Literal["auto", "arrivals", "dependent"]
"""Timing of a trace's replay."""

class RestripingConfig(TypedDict, total=False):
    """Stripes that follow the load (tr96 section 2.3). A check compares the load since the last one with that before it. When another number of disks a request has become best, the hottest files are copied."""

    every: "SimDuration"
    """Time from one check to the next."""
    files: "int"
    """Files that a check stripes anew at most, the hottest ones."""
    least_change: "SimDuration"
    """Least change of the mean response by the model."""
    piece: "Bytes"
    """Bytes that a copy reads and writes at once."""
    rate: "Bytes | None"
    """Bytes a second that are copied at most; the number that the disks allow if absent."""
    trigger: "RestripingTrigger"
    """The response whose change counts."""


RestripingTrigger: TypeAlias = Literal["worsened", "gain"]
"""The response whose change triggers restriping."""

Rule: TypeAlias = Literal["greedy", "paths"]
"""Rule that fills a gap."""

SameTrack: TypeAlias = Literal["merge", "distinct", "never"]
"""Free work on the track of a foreground request."""

class ScaleConfig(TypedDict, total=False):
    """Factors by which a drive differs from its file. A factor that is given takes the place of the one that the years make. Skews are chosen anew; electronics stay."""

    linear_density: "float | None"
    """Factor of the blocks on a track."""
    rpm: "float | None"
    """Factor of the speed of rotation."""
    seek: "float | None"
    """Factor of all times of the arm."""
    surfaces: "float | None"
    """Factor of the surfaces: another member of the family. A part of a surface ends the data before the innermost cylinders."""
    track_density: "float | None"
    """Factor of the tracks on the same breadth."""
    years: "float"
    """Years of change at the rates of IBM's server disks up to 2003 (tr03 table 11): seek times -8 %, speed of rotation +9 %, linear density +21 %, track density +24 % a year."""


SectorFormat: TypeAlias = Literal["512n", "512e", "4kn"]
"""Sectors of the media, and the least that a host can ask for, in the industry's terms. All else in a drive file counts blocks of 512 bytes, with sectors of any size."""

SimDuration: TypeAlias = str
"""A length of time."""

SizeDistribution: TypeAlias = Literal["fixed", "exponential", "geometric"]
"""Distribution of request sizes."""

SpindleDrift: TypeAlias = str
"""How far and how fast the speed of a spindle wanders, from the slowest to the fastest and back, as 2.5ppm/30min."""

Spindles: TypeAlias = Literal["free", "synchronised"]
"""Relation between the turns of several drives."""

class Step1(TypedDict, total=False):
    """This much more or less."""

    arithmetic: "Required[SimDuration]"


class Step2(TypedDict, total=False):
    """Factor by which it grows or shrinks."""

    geometric: "Required[float]"


Step: TypeAlias = "Step1 | Step2"
"""A step of a timeout, up or down."""

TaskKind: TypeAlias = Literal["scan", "scrub", "backup", "write", "compare"]
"""Kind of a task: its rounds repeat, but for a backup, for writes, and for a comparison."""

class TaskOrder(TypedDict, total=False):
    """A background task: an entry of `freeblock.tasks` in an experiment, and what a server is asked for."""

    block_size: "Bytes"
    """Size of the task's blocks, each of which is handed over whole."""
    deadline: "SimDuration | None"
    """Time from a round's beginning in which it should be complete: behind a straight line to there its blocks weigh more."""
    kind: "TaskKind"
    """Kind of the task."""
    length: "Bytes | None"
    """Length from there on; when absent, the rest of the arm, and for a comparison as much as its two versions have room for."""
    memory: "Bytes | None"
    """Memory of a comparison, on each arm of each drive; when absent 4 MiB."""
    name: "str | None"
    """Name in reports; when absent the kind, with a number where there are several."""
    other_start: "Bytes | None"
    """Place on the arm of a comparison's other version, which is as long."""
    priority: "Priority"
    """Weight of a block against those of other tasks: low 1, normal 4, high 16."""
    promote_tail: "PromoteTail | None"
    """Promotes the last blocks of a round to foreground requests. They wait in the same queue, and their own response times are in no statistics."""
    rounds: "int | None"
    """The run goes on until this task has completed this number of rounds on every arm; the workload's number of requests does not count then. A trace ends with its last record all the same. When the rounds of all tasks are complete before that, the rest of the trace is not replayed."""
    sample_share: "float | None"
    """Part of all blocks that makes a round, whichever blocks they are: a statistical sample."""
    share: "int | None"
    """A whole number: tasks with shares of 1 and 3 get bytes as 1 to 3."""
    start: "Bytes"
    """First byte of the task's blocks, on each arm."""


ThinkTimeDistribution: TypeAlias = Literal["constant", "exponential"]
"""Distribution of think times."""

TimeUnit: TypeAlias = Literal["ns", "us", "ms", "s"]
"""The unit of a trace's times; its number is that of the decimal places down to a nanosecond."""

TracedThinkTime: TypeAlias = 'Literal["kept", "removed"] | dict[str, Any]'
"""Think times of a dependent replay: from the completion of the parent to the arrival of the request."""

Window: TypeAlias = 'float | str'
"""N of SPTF-SWn% in a configuration."""

class WorkloadClosed(TypedDict, total=False):
    """A fixed number of requests outstanding."""

    kind: Required[Literal["closed"]]
    outstanding: "int"
    """Requests outstanding at once: the multiprogramming level."""
    pattern: "PatternSpec"
    """Pattern of the requests."""
    requests: "int"
    """Requests in all."""
    think_time: "SimDuration"
    """Time between a completion and the next request."""
    think_time_distribution: "ThinkTimeDistribution"
    """Distribution of the think time: a constant, or the mean of an exponential."""


class WorkloadOpen(TypedDict, total=False):
    """Arrivals as a Poisson process."""

    kind: Required[Literal["open"]]
    mean_gap: "Required[SimDuration]"
    """Mean time between arrivals."""
    pattern: "PatternSpec"
    """Pattern of the requests."""
    requests: "int"
    """Requests in all."""


class WorkloadTrace(TypedDict, total=False):
    """A trace, played back."""

    arrival_speedup: "float"
    """Factor by which traced times become shorter in a replay by arrival."""
    cache_hits: "bool"
    """True if requests count that a cache in front of the traced disk served, where the trace tells."""
    clock: "Clock | None"
    """Origin of its times; what the format says when absent. From the start, a clock that steps back to the beginning begins another recording, which follows; absolute times are sorted."""
    coarse_times: "CoarseTimes"
    """Treatment of requests whose clock has steps of 1 ms or more."""
    device: "int | None"
    """Replays this device of the trace only; all devices end to end when absent."""
    file: "Required[str | PathLike[str] | Any]"
    """The file; a relative path starts at the folder of the experiment."""
    fit: "Fit"
    """Fit of a trace whose size is not the drive's."""
    format: "str | None"
    """Name of its format; detected from the contents when absent."""
    kind: Required[Literal["trace"]]
    layer: "Layer"
    """Layer of a block layer's trace whose requests are replayed (blkparse, blktrace, ftrace): those that were queued, or those that were issued to the drive, each with all that was merged into it. `auto` takes the issued ones where at least one queued request in a hundred was merged."""
    lenient: "bool"
    """Counts and skips malformed records, and reads a damaged .gz or .zst up to the damage. Otherwise the run stops there."""
    merge: "list[str]"
    """Further traces, replayed at the same time as independent streams: each has its window and parents, and its addresses lie behind those of the trace before. All begin together. Relative paths start at the folder of the experiment."""
    numbers: "Numbers | None"
    """Meaning of numbers in the formats of cache simulators; found out when absent."""
    reference_drive: "str | None"
    """Name of a shipped drive, or path of a drive file, from the folder of the experiment. A dependent replay of a trace that records no completions takes them from this drive, simulated at the traced arrivals first. The smallest shipped drive that holds the trace when absent."""
    replay: "ReplayMode"
    """Timing of arrivals."""
    think_time: "TracedThinkTime"
    """Think times of a dependent replay: `kept`, `removed`, or `{ speedup = 4 }` for a processor that is four times as fast."""
    time_unit: "TimeUnit | None"
    """Unit of its times, `s`, `ms`, `us` or `ns`, in formats that come with several; found out when absent."""


class WorkloadPostmark(TypedDict, total=False):
    """PostMark on a log-structured disk, whose cleaner may use the gaps (osdi00 section 5)."""

    cleaner: "PostmarkCleaner"
    """Cleaner of the log's segments."""
    files: "int | None"
    """Files before the first transaction."""
    kind: Required[Literal["postmark"]]
    metadata: "MetadataWrites"
    """Time at which changed inodes and directories go to the log."""
    passes: "int"
    """Number of passes. The last one counts, as the log is not in steady state before."""
    size_max: "Bytes"
    """Largest size of a file: creations draw below it, appends grow up to it."""
    size_min: "Bytes"
    """Smallest size of a file."""
    subdirectories: "int"
    """Number of directories with files."""
    transactions: "int"
    """Transactions of a pass."""
    utilisation: "float | None"
    """Share of the log's blocks in use over the last pass; the number of files follows from it. Default 0.6 without `files`."""


class WorkloadFiles(TypedDict, total=False):
    """Files on the disks of the array, each where the placement puts it (tr96)."""

    align: "Bytes"
    """Requests within files begin at multiples of this."""
    arrival_speedup: "float"
    """Factor by which the times of the log become shorter."""
    classes: "list[FileClass]"
    """Files that are alike. Not with `log`."""
    cooling: "CoolingConfig | None"
    """Moves files, or parts of them, from hot disks to cool ones during the run."""
    drift: "Drift | None"
    """Movement of the hot set during the run; it stays if nothing is given. Not with `log`."""
    kind: Required[Literal["files"]]
    log: "str | None"
    """Log of a web server, plain, .gz or .zst: each file that it names, read as a whole. A relative path starts at the folder of the experiment."""
    more_disks: "list[MoreDisks]"
    """Disks of other drives, behind those of `array.drives`."""
    new_heat: "NewHeatConfig | None"
    """Heat with which a new file counts, where `placement` is `heat`; that of its class if nothing is given."""
    order: "FileOrder"
    """In which order the files of a disk lie on it."""
    placement: "FilePlacement"
    """On which disk each file, or each of its extents, lies."""
    rate: "float | None"
    """Requests a second to all classes together."""
    rates: "list[LaterRate]"
    """Rates that replace `rate` from these times on, ascending. The shares of files stay."""
    requests: "int"
    """Requests in all. A log ends with its last request if it has fewer."""
    restriping: "RestripingConfig | None"
    """Copies files to other stripes when the load has changed."""
    stripes: "FileStripes"
    """Over how many disks a file is spread: `whole`, `best`, or `{ unit = "64KiB" }`."""


Workload: TypeAlias = "WorkloadClosed | WorkloadOpen | WorkloadTrace | WorkloadPostmark | WorkloadFiles"
"""Source of an experiment's requests."""

class WriteBufferConfig(TypedDict, total=False):
    """A buffer for writes."""

    destage_in_gaps: "bool"
    """True if blocks that pass under the head while it waits for a client's data are written, too."""
    destage_maximum: "Bytes"
    """Most of one destage, at least one block. A request waits for a destage that has begun."""
    destages: "int | None"
    """Most destages at once, at least one: reads wait behind them where a write waits for room. The number of the cache's `queue_depth` without it."""
    high_mark: "float"
    """Share of dirty blocks above which it destages, 0 to 1. At 1 it destages when a write finds no room."""
    low_mark: "float"
    """Share of dirty blocks below which it stops, at most `high_mark`."""
    max_age: "SimDuration | None"
    """Age at which data are destaged regardless of the marks. Without it there is no limit."""
    order: "DestageOrderConfig"
    """Order in which blocks are destaged."""
    size: "Bytes"
    """Memory of the buffer."""
    volatile: "bool"
    """True if a power cut loses its data. If so, flushes wait for destages, and writes with FUA go to the media. If not, both end in the buffer, and writes to the drive carry FUA."""


WriteCache: TypeAlias = Literal["off", "sequential", "on"]
"""Condition under which a write is reported done before it is on the media."""

class ExperimentKeys(TypedDict, total=False):
    """A simulation: everything that determines its result, except the bytes of a trace."""

    array: "ArrayConfig"
    """Several drives, as one volume or side by side."""
    cache: "CacheConfig | None"
    """The storage system's cache in front of each arm."""
    commands: "CommandsConfig | None"
    """NCQ priority and duration limits of commands, and a scrub from outside the drive."""
    drive: "str | PathLike[str] | Any"
    """Name of a shipped drive, or path of a drive file, from the folder of the experiment."""
    electronics: "bool"
    """Simulates the drive's electronics (buffer, command queue, overheads, bus) as far as its file describes them. Without them, requests meet the bare mechanics."""
    freeblock: "FreeblockConfig | None"
    """Background work in the rotational gaps of the workload: freeblock scheduling."""
    host: "HostConfig | None"
    """A scheduler outside the drive decides about the foreground and the free work, with a host's view of the drive. Without it the simulator schedules with full knowledge."""
    keep_free_blocks_before: "bool | None"
    """Overrides whether the drive keeps the blocks that pass before those of a read. A head that keeps them stays on the track, so these reads leave no rotational gap. With `false` free work gets that latency, and later reads of such blocks go to the media. `true` needs electronics with a buffer."""
    queue_depth: "int | None"
    """Overrides the depth of the drive's command queue. At 1 the policy above decides alone. It needs electronics."""
    scale: "ScaleConfig"
    """The drive as of another year, or another member of its family."""
    scheduler: "PolicySpec"
    """Foreground policy."""
    seed: "int"
    """Seed of every random stream."""
    slices: "int"
    """Number of equal parts, by requests, of what is measured. Each gets separate results."""
    warm_up: "float"
    """Share of the requests that come before anything is measured: caches fill. Results count only requests that arrive later, and the work of drives and caches from then on."""
    workload: "Required[Workload]"
    """Source of requests."""
    write_cache: "WriteCache | None"
    """Overrides when the drive reports a write done before it is on the media, as `hdparm -W` does: `off`, `sequential` or `on`. With `off` a power cut loses no write that was reported done. `on` and `sequential` need electronics with a buffer."""
    zero_latency: "bool | None"
    """Overrides whether the drive has zero-latency access."""
