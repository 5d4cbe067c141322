//! Small experiments, and a change of each key: a row is `key=value`, or `key: list=value` for a key within
//! a list. `IN/` stands for the folder of traces and logs.

/// Experiments, and overrides that change the outcome of each.
pub const ACTING: &[(&str, &[&str])] = &[
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"trace\", file = \"IN/layers.txt\" }",
        &["workload.layer=\"queued\""],
    ),
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"closed\", outstanding = 8, requests = 200 }",
        &[
            "seed=2",
            "drive=\"tr96\"",
            "electronics=false",
            "queue_depth=4",
            "zero_latency=false",
            "scale.years=1",
            "scale.seek=0.5",
            "scale.rpm=1.5",
            "scale.linear_density=2",
            "scale.track_density=2",
            "scale.surfaces=2",
            "array.drives=2",
            "array.layout: array={layout=\"independent\",drives=2}",
            "scheduler.policy=\"look\"",
            "workload.requests=201",
            "workload.pattern.read_share=0.3",
            "workload.pattern.size=\"8KiB\"",
            "workload.pattern.size_distribution=\"exponential\"",
            "workload.pattern.align=\"64KiB\"",
            "workload.pattern.local_share=0.5",
            "workload.kind: workload={kind=\"open\",mean_gap=\"9ms\",requests=200}",
        ],
    ),
    (
        "drive = \"atlas10k\"\narray = { drives = 2 }\nworkload = { kind = \"closed\", requests = 200, \
         think_time = \"1ms\", pattern = { size = \"64KiB\", local_share = 0.5, read_share = 0.5 } }",
        &[
            "array.stripe_unit=\"4KiB\"",
            "array.spindles=\"synchronised\"",
            "workload.outstanding=4",
            "workload.think_time=\"2ms\"",
            "workload.think_time_distribution=\"exponential\"",
            "workload.pattern.local_sd=\"64KiB\"",
        ],
    ),
    (
        "workload = { kind = \"closed\", outstanding = 8, requests = 100, pattern = { read_share = 0.5 } }",
        &["workload.pattern.fua_share=0.5", "write_cache=\"off\""],
    ),
    (
        "drive = \"atlas10k\"\nfreeblock = { tasks = [{}] }\n\
         workload = { kind = \"closed\", outstanding = 2, requests = 100, pattern = { read_share = 1 } }",
        &["keep_free_blocks_before=false"],
    ),
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"open\", mean_gap = \"5ms\", requests = 200 }",
        &["workload.mean_gap=\"6ms\""],
    ),
    // What hosts say of commands.
    (
        "write_cache = \"off\"\nworkload = { kind = \"closed\", outstanding = 12, requests = 300, \
         pattern = { read_share = 0.5 } }\n[commands]\n\
         read_limits = [{ inactive = \"90ms\" }, { inactive = \"400ms\" }]\n\
         write_limits = [{ inactive = \"90ms\" }]\n\
         clients = { read_limit = 1, write_limit = 1 }\nscrub = { outstanding = 4, read_limit = 2 }",
        &[
            "commands.read_limits.inactive: commands.read_limits=[{inactive=\"20ms\"},{inactive=\"400ms\"}]",
            "commands.read_limits.active: commands.read_limits=[{active=\"4ms\",policy=\"abort\"},{inactive=\"400ms\"}]",
            "commands.read_limits.policy: commands.read_limits=[{inactive=\"90ms\",policy=\"abort\"},{inactive=\"400ms\"}]",
            "commands.write_limits.inactive: commands.write_limits=[{inactive=\"20ms\"}]",
            "commands.write_limits.active: commands.write_limits=[{active=\"4ms\",policy=\"abort\"}]",
            "commands.write_limits.policy: commands.write_limits=[{inactive=\"90ms\",policy=\"abort\"}]",
            "commands.limit_lead=\"90ms\"",
            "commands.clients.read_limit=0",
            "commands.clients.write_limit=0",
            "commands.scrub.run=\"1MiB\"",
            "commands.scrub.outstanding=1",
            "commands.scrub.start=\"1GiB\"",
            "commands.scrub.reads_max=20",
            "commands.scrub.read_limit=0",
        ],
    ),
    (
        "write_cache = \"off\"\nworkload = { kind = \"closed\", outstanding = 8, requests = 300 }\n\
         [commands]\nhigh_priority_first = \"50ms\"\nclients = { high_priority = true }\n\
         scrub = { outstanding = 4 }",
        &[
            "commands.high_priority_first=\"500ms\"",
            "commands.clients.high_priority=false",
            "commands.scrub.high_priority=true",
        ],
    ),
    // Policies.
    (
        "drive = \"atlas10k\"\nelectronics = false\nscheduler = { policy = \"sptf-sw\" }\n\
         workload = { kind = \"closed\", outstanding = 20, requests = 200 }",
        &[
            "scheduler.window=\"400%\"",
            "scheduler.latency_weight: scheduler={policy=\"sstf-lw\",latency_weight=3}",
            "scheduler.age_factor: scheduler={policy=\"asatf\",age_factor=0.5}",
        ],
    ),
    (
        "drive = \"atlas10k\"\nscheduler = { policy = \"mq-deadline\", nr_requests = 30 }\n\
         workload = { kind = \"closed\", outstanding = 40, requests = 300, \
         pattern = { read_share = 0.5, size = \"16KiB\", local_share = 0.6, local_sd = \"64KiB\" } }",
        &[
            "scheduler.read_expire=\"1ms\"",
            "scheduler.write_expire=\"1ms\"",
            "scheduler.fifo_batch=1",
            "scheduler.writes_starved=9",
            "scheduler.nr_requests=8",
        ],
    ),
    (
        "drive = \"atlas10k\"\nscheduler = { policy = \"mq-deadline\" }\n\
         workload = { kind = \"trace\", file = \"IN/descending.csv\", replay = \"arrivals\" }",
        &["scheduler.front_merges=false"],
    ),
    (
        "write_cache = \"off\"\nscheduler = { policy = \"kyber\" }\n\
         workload = { kind = \"closed\", outstanding = 100, requests = 6000, pattern = { read_share = 0.2 } }",
        &["scheduler.write_latency=\"2s\""],
    ),
    (
        "scheduler = { policy = \"bfq\" }\n\
         workload = { kind = \"closed\", outstanding = 100, requests = 600, \
         pattern = { read_share = 0.5, size = \"64KiB\", local_share = 0.9, local_sd = \"64KiB\" } }",
        &[
            "scheduler.max_budget=32",
            "scheduler.slice_idle=\"0ms\"",
            "scheduler.timeout_sync=\"1ms\"",
        ],
    ),
    // Traces.
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"trace\", file = \"IN/full.csv\", replay = \"arrivals\" }",
        &[
            "workload.file=\"IN/other.csv\"",
            "workload.replay=\"dependent\"",
            "workload.arrival_speedup=2",
            "workload.fit=\"scale\"",
            "workload.merge=[\"IN/other.csv\"]",
            "workload.format=\"msr-csv\"",
        ],
    ),
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"trace\", file = \"IN/full.csv\" }",
        &[
            "workload.think_time=\"removed\"",
            "workload.think_time.speedup: workload.think_time={speedup=2}",
        ],
    ),
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"trace\", file = \"IN/disks.trace\", time_unit = \"ms\" }",
        &["workload.device=1", "workload.time_unit=\"s\""],
    ),
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"trace\", file = \"IN/disks.trace\", time_unit = \"ms\", \
         replay = \"dependent\", reference_drive = \"exos-x24-24tb\" }",
        &["workload.reference_drive=\"tr96\""],
    ),
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"trace\", file = \"IN/broken.csv\" }",
        &["workload.lenient=true"],
    ),
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"trace\", file = \"IN/coarse.csv\" }",
        &["workload.coarse_times=\"bunched\""],
    ),
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"trace\", file = \"IN/back.csv\", clock = \"absolute\" }",
        &["workload.clock=\"from-start\""],
    ),
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"trace\", file = \"IN/hits.csv\" }",
        &["workload.cache_hits=true"],
    ),
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"trace\", file = \"IN/objects.bin\" }",
        &["workload.numbers=\"addresses\""],
    ),
    // The storage system's cache.
    (
        "drive = \"atlas10k\"\nelectronics = false\ncache = { size = \"64KiB\", queue_depth = 6 }\n\
         workload = { kind = \"closed\", outstanding = 8, requests = 600, \
         pattern = { read_share = 0.6, local_share = 0.98, local_sd = \"64KiB\" } }",
        &[
            "cache.size=\"1MiB\"",
            "cache.policy=\"arc\"",
            "cache.block_size=\"16KiB\"",
            "cache.queue_depth=1",
            "cache.prefetch.kind: cache.prefetch={kind=\"read-ahead\",amount=\"32KiB\"}",
        ],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\ncache = { size = \"64KiB\" }\n\
         workload = { kind = \"open\", mean_gap = \"40ms\", requests = 300, \
         pattern = { read_share = 0.6, local_share = 0.98, local_sd = \"64KiB\" } }",
        &["cache.opportunistic.read_ahead=\"64KiB\"", "cache.opportunistic.free_blocks=true"],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\n\
         cache = { size = \"64KiB\", opportunistic = { read_ahead = \"64KiB\" } }\n\
         workload = { kind = \"open\", mean_gap = \"40ms\", requests = 300, \
         pattern = { read_share = 0.6, local_share = 0.98, local_sd = \"64KiB\" } }",
        &["cache.prefetch_buffer=\"64KiB\"", "cache.opportunistic.just_in_time_seek=true"],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\ncache = { preset = \"tr03-rich\", storage_used = \"10MiB\" }\n\
         workload = { kind = \"open\", mean_gap = \"40ms\", requests = 300, \
         pattern = { read_share = 0.6, local_share = 0.98, local_sd = \"64KiB\" } }",
        &["cache.preset: cache={size=\"0B\"}", "cache.storage_used=\"400MiB\""],
    ),
    (
        "drive = \"tr96\"\ncache = { size = \"256KiB\", prefetch = { kind = \"large-fetch-unit\", unit = \"32KiB\" } }\n\
         workload = { kind = \"closed\", requests = 100 }",
        &[
            "cache.prefetch.unit=\"64KiB\"",
            "cache.prefetch.amount: cache.prefetch={kind=\"read-ahead\",amount=\"64KiB\"}",
        ],
    ),
    (
        "drive = \"tr96\"\ncache = { size = \"256KiB\", prefetch = { kind = \"conditional\", segment = \"16KiB\" } }\n\
         workload = { kind = \"closed\", outstanding = 4, requests = 300, \
         pattern = { size = \"16KiB\", local_share = 0.7, local_sd = \"256KiB\", read_share = 0.5 } }",
        &[
            "cache.prefetch.segment=\"64KiB\"",
            "cache.prefetch.trigger=2",
            "cache.prefetch.factor=3",
            "cache.prefetch.maximum=\"32KiB\"",
            "cache.prefetch.backward=true",
        ],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\ncache = { size = \"256KiB\", prefetch = { kind = \"amp\" } }\n\
         workload = { kind = \"trace\", file = \"IN/streams.csv\", replay = \"arrivals\" }",
        &["cache.prefetch.initial=\"64KiB\"", "cache.prefetch.streams=1"],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\ncache = { size = \"0B\", write_buffer = { size = \"256KiB\" } }\n\
         workload = { kind = \"open\", mean_gap = \"20ms\", requests = 600, \
         pattern = { read_share = 0.3, local_share = 0.5 } }",
        &[
            "cache.write_buffer.size=\"64KiB\"",
            "cache.write_buffer.high_mark=0.5",
            "cache.write_buffer.low_mark=0.1",
            "cache.write_buffer.order=\"wow\"",
            "cache.write_buffer.max_age=\"100ms\"",
            "cache.write_buffer.destages=1",
            "cache.write_buffer.destage_in_gaps=true",
        ],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\ncache = { size = \"0B\", write_buffer = { size = \"256KiB\" } }\n\
         workload = { kind = \"trace\", file = \"IN/writes.csv\", replay = \"arrivals\" }",
        &["cache.write_buffer.destage_maximum=\"4KiB\""],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\n\
         cache = { size = \"0B\", write_buffer = { size = \"256KiB\", volatile = true } }\n\
         workload = { kind = \"open\", mean_gap = \"20ms\", requests = 300, \
         pattern = { read_share = 0.3, fua_share = 0.5 } }",
        &["cache.write_buffer.volatile=false"],
    ),
    // Free work.
    (
        "drive = \"atlas10k\"\nelectronics = false\nfreeblock = { tasks = [{ start = \"100MiB\", length = \"200MiB\" }] }\n\
         workload = { kind = \"closed\", outstanding = 4, requests = 300 }",
        &[
            "freeblock.tasks.kind: freeblock.tasks=[{kind=\"scrub\",start=\"100MiB\",length=\"200MiB\"}]",
            "freeblock.tasks.block_size: freeblock.tasks=[{start=\"100MiB\",length=\"200MiB\",block_size=\"64KiB\"}]",
            "freeblock.tasks.length: freeblock.tasks=[{start=\"100MiB\",length=\"100MiB\"}]",
            "freeblock.tasks.start: freeblock.tasks=[{start=\"200MiB\",length=\"200MiB\"}]",
            "freeblock.conservatism=\"100us\"",
            "freeblock.nodes_max=1",
            "freeblock.steps_max=1",
            "freeblock.patience=1",
            "freeblock.region_weights=false",
            "freeblock.rule=\"greedy\"",
            "freeblock.same_track=\"merge\"",
        ],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\nfreeblock = { tasks = [{ length = \"1GiB\" }, { kind = \"scrub\" }] }\n\
         workload = { kind = \"closed\", outstanding = 4, requests = 100 }",
        &[
            "freeblock.tasks.priority: freeblock.tasks=[{length=\"1GiB\",priority=\"high\"},{kind=\"scrub\"}]",
            "freeblock.tasks.share: freeblock.tasks=[{length=\"1GiB\",share=3},{kind=\"scrub\",share=1}]",
        ],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\n\
         freeblock = { tasks = [{ rounds = 1, length = \"8MiB\" }], idle = { after = \"1ms\" } }\n\
         workload = { kind = \"open\", mean_gap = \"60ms\", requests = 20 }",
        &[
            "freeblock.tasks.rounds: freeblock.tasks=[{rounds=2,length=\"8MiB\"}]",
            "freeblock.tasks.sample_share: freeblock.tasks=[{rounds=1,length=\"8MiB\",sample_share=0.5}]",
        ],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\nfreeblock = { tasks = [{ kind = \"compare\", length = \"500MiB\", \
         other_start = \"4GiB\", memory = \"64KiB\" }] }\n\
         workload = { kind = \"closed\", outstanding = 4, requests = 400 }",
        &[
            "freeblock.tasks.other_start: freeblock.tasks=[{kind=\"compare\",length=\"500MiB\",other_start=\"5GiB\",memory=\"64KiB\"}]",
            "freeblock.tasks.memory: freeblock.tasks=[{kind=\"compare\",length=\"500MiB\",other_start=\"4GiB\",memory=\"640KiB\"}]",
        ],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\n\
         freeblock = { tasks = [{ length = \"8MiB\", rounds = 1, promote_tail = { cost = 0.5 } }] }\n\
         workload = { kind = \"closed\", outstanding = 2, requests = 200 }",
        &[
            "freeblock.tasks.promote_tail.cost: freeblock.tasks=[{length=\"8MiB\",rounds=1,promote_tail={cost=0.9}}]",
            "freeblock.tasks.promote_tail.outstanding: freeblock.tasks=[{length=\"8MiB\",rounds=1,promote_tail={cost=0.5,outstanding=3}}]",
            "freeblock.tasks.promote_tail.merged_max: freeblock.tasks=[{length=\"8MiB\",rounds=1,promote_tail={cost=0.5,merged_max=\"4KiB\"}}]",
        ],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\n\
         freeblock = { tasks = [{}], idle = { after = \"10ms\", adapt = { tolerance = 0.0001 } } }\n\
         workload = { kind = \"open\", mean_gap = \"60ms\", requests = 60 }",
        &[
            "freeblock.idle.after=\"20ms\"",
            "freeblock.idle.run_max=\"8KiB\"",
            "freeblock.idle.adapt.least=\"9ms\"",
            "freeblock.idle.adapt.most=\"11ms\"",
            "freeblock.idle.adapt.tolerance=0.5",
            "freeblock.idle.adapt.step.geometric: freeblock.idle.adapt.step={geometric=3}",
            "freeblock.idle.adapt.step.arithmetic: freeblock.idle.adapt.step={arithmetic=\"1ms\"}",
        ],
    ),
    // A scheduler outside the drive.
    (
        "drive = \"atlas10k\"\nhost = { scheduler = { queue_depth = 4 } }\nfreeblock = { tasks = [{}] }\n\
         workload = { kind = \"closed\", outstanding = 6, requests = 300, pattern = { read_share = 0.5 } }",
        &[
            "host.scheduler.queue_depth=3",
            "host.scheduler.budget=0.5",
            "host.scheduler.conservatism=\"1ms\"",
            "host.scheduler.lead_time=\"3ms\"",
            "host.scheduler.off_share=0.25",
            "host.scheduler.off_slot=\"1ms\"",
            "host.scheduler.same_track=\"never\"",
            "host.behaviour.queue_policy.policy=\"look\"",
            "host.behaviour.reply_jitter=\"1ms\"",
            "host.behaviour.reply_jitter_a_block=\"10us\"",
            "host.behaviour.seek_jitter=\"1ms\"",
            "host.behaviour.seek_jitter_far=\"1ms\"",
            "host.behaviour.seek_jitter_inward=\"1ms\"",
            "host.behaviour.spindle_drift=\"50ppm/30min\"",
            "host.behaviour.write_cache=\"on\"",
        ],
    ),
    (
        "drive = \"atlas10k\"\nhost = { behaviour = { seek_jitter = \"1ms\", activity = { every = \"1s\", lasts = \"50ms\" } } }\n\
         workload = { kind = \"closed\", outstanding = 6, requests = 800 }",
        &[
            "host.behaviour.seek_jitter_shape=\"normal\"",
            "host.behaviour.activity.every=\"2s\"",
            "host.behaviour.activity.lasts=\"80ms\"",
        ],
    ),
    (
        "host = {}\nworkload = { kind = \"closed\", requests = 50, pattern = { size = \"2KiB\", align = \"512B\" } }",
        &["host.behaviour.sector=\"4kn\""],
    ),
    (
        "drive = \"atlas10k\"\nscheduler = { policy = \"sptf\" }\nhost = {}\n\
         workload = { kind = \"closed\", outstanding = 8, requests = 300, pattern = { read_share = 0, \
         align = \"512B\", local_share = 1, local_sd = \"8KiB\" } }",
        &["host.server=true"],
    ),
    // PostMark.
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"postmark\", utilisation = 0.2, transactions = 300 }",
        &[
            "workload.utilisation=0.3",
            "workload.transactions=200",
            "workload.passes=1",
            "workload.subdirectories=5",
            "workload.size_min=\"6KiB\"",
            "workload.size_max=\"27KiB\"",
            "workload.metadata=\"immediate\"",
            "workload.files: workload={kind=\"postmark\",files=300,transactions=60}",
        ],
    ),
    // Files on disks.
    (
        "drive = \"atlas10k\"\narray = { drives = 3 }\nworkload = { kind = \"files\", rate = 200, requests = 300, \
         classes = [{ files = 30, size = \"4MB\", request = \"16KiB\" }, { files = 5, size = \"50MB\", request = \"64KiB\" }] }",
        &[
            "workload.rate=250",
            "workload.placement=\"round-robin\"",
            "workload.order=\"hottest-outermost\"",
            "workload.stripes.unit: workload.stripes={unit=\"64KiB\"}",
            "workload.stripes.chen: workload.stripes={chen=4.0}",
            "workload.align=\"64KiB\"",
            "workload.more_disks.count: workload.more_disks=[{drive=\"tr96\",count=1}]",
            "workload.more_disks.drive: workload.more_disks=[{drive=\"atlas10k\",count=1}]",
            "workload.classes.files: workload.classes=[{files=31,size=\"4MB\",request=\"16KiB\"}]",
            "workload.classes.size: workload.classes=[{files=30,size=\"5MB\",request=\"16KiB\"}]",
            "workload.classes.request: workload.classes=[{files=30,size=\"4MB\",request=\"32KiB\"}]",
            "workload.classes.sizes: workload.classes=[{files=30,size=\"4MB\",request=\"16KiB\",sizes=\"exponential\"}]",
            "workload.classes.reads: workload.classes=[{files=30,size=\"4MB\",request=\"16KiB\",reads=0.5},{files=5,size=\"50MB\",request=\"64KiB\"}]",
            "workload.classes.share: workload.classes=[{files=30,size=\"4MB\",request=\"16KiB\",share=0.9},{files=5,size=\"50MB\",request=\"64KiB\"}]",
            "workload.classes.new_files: workload.classes=[{files=30,size=\"4MB\",request=\"16KiB\",new_files=9},{files=5,size=\"50MB\",request=\"64KiB\"}]",
            "workload.classes.hot.files: workload.classes=[{files=30,size=\"4MB\",request=\"16KiB\",hot={files=0.2,requests=0.9}},{files=5,size=\"50MB\",request=\"64KiB\"}]",
            "workload.classes.hot.requests: workload.classes=[{files=30,size=\"4MB\",request=\"16KiB\",hot={files=0.2,requests=0.8}},{files=5,size=\"50MB\",request=\"64KiB\"}]",
        ],
    ),
    (
        "drive = \"atlas10k\"\narray = { drives = 3 }\nworkload = { kind = \"files\", rate = 200, requests = 300, \
         classes = [{ files = 30, size = \"4MB\", request = \"16KiB\", hot = { files = 0.2, requests = 0.8 } }] }",
        &[
            "workload.drift.every: workload.drift={every=\"100ms\",files=0.5}",
            "workload.drift.files: workload.drift={every=\"100ms\",files=1.0}",
        ],
    ),
    (
        "drive = \"atlas10k\"\narray = { drives = 3 }\nworkload = { kind = \"files\", rate = 20, requests = 100, \
         drift = { every = \"1ms\", files = 0.5 }, \
         classes = [{ files = 30, size = \"4MB\", request = \"16KiB\", hot = { files = 0.2, requests = 0.8 } }] }",
        &["workload.drift.changes_max=1"],
    ),
    (
        "drive = \"atlas10k\"\narray = { drives = 3 }\nworkload = { kind = \"files\", rate = 200, requests = 400, \
         classes = [{ files = 30, size = \"400KB\", request = \"16KiB\", hot = { files = 0.2, requests = 0.8 }, new_files = 20 }] }",
        &["workload.new_heat=\"after-accesses\""],
    ),
    (
        "drive = \"tr96\"\nelectronics = false\narray = { drives = 8 }\n\
         workload = { kind = \"files\", rate = 5, requests = 900, stripes = \"best\", rates = [{ from = \"10s\", rate = 40 }], \
         restriping = { every = \"5s\" }, classes = [{ files = 60, size = \"260KB\", sizes = \"exponential\" }] }",
        &[
            "workload.rates.from: workload.rates=[{from=\"12s\",rate=40}]",
            "workload.rates.rate: workload.rates=[{from=\"10s\",rate=39}]",
            "workload.restriping.every=\"9s\"",
            "workload.restriping.files=1",
            "workload.restriping.least_change=\"1h\"",
            "workload.restriping.piece=\"8KiB\"",
            "workload.restriping.rate=\"100KB\"",
        ],
    ),
    (
        "drive = \"tr96\"\nelectronics = false\narray = { drives = 8 }\n\
         workload = { kind = \"files\", rate = 40, requests = 600, stripes = \"best\", rates = [{ from = \"10s\", rate = 4 }], \
         restriping = { every = \"5s\" }, classes = [{ files = 60, size = \"260KB\", sizes = \"exponential\" }] }",
        &["workload.restriping.trigger=\"gain\""],
    ),
    (
        "drive = \"atlas10k\"\narray = { drives = 2 }\nworkload = { kind = \"files\", log = \"IN/web.log\" }",
        &["workload.arrival_speedup=2", "workload.log=\"IN/other.log\""],
    ),
    (
        "drive = \"atlas10k\"\narray = { drives = 3 }\nworkload = { kind = \"files\", rate = 150, requests = 1500, \
         placement = \"round-robin\", cooling = { every = 10, threshold = 0.01, waits = false }, \
         classes = [{ files = 6, size = \"400KB\", request = \"4KiB\", share = 0.9 }, { files = 6, size = \"2MB\", request = \"512KiB\", share = 0.1 }] }",
        &[
            "workload.cooling.every=50",
            "workload.cooling.threshold=3",
            "workload.cooling.heat=\"blocks\"",
            "workload.cooling.accesses=5",
            "workload.cooling.piece=\"64KiB\"",
            "workload.cooling.rate=\"200KB\"",
            "workload.cooling.unit=\"fragments\"",
            "workload.cooling.queue_veto=true",
            "workload.cooling.waits=true",
            "workload.cooling.near_hot=false",
            "workload.cooling.copies_first=true",
            "workload.cooling.rule.variance: workload.cooling.rule={variance=\"1s\"}",
        ],
    ),
    // The hottest file of the first disk is too hot for the others.
    (
        "drive = \"atlas10k\"\narray = { drives = 3 }\nworkload = { kind = \"files\", rate = 150, requests = 1500, \
         placement = \"round-robin\", cooling = { every = 10, rule = \"target-stays-cooler\" }, \
         classes = [{ files = 12, size = \"400KB\", request = \"4KiB\", hot = { files = 0.2, requests = 0.8 } }] }",
        &[
            "workload.cooling.candidates=1",
            "workload.cooling.waits_factor=1.05",
            "workload.cooling.waits_arrivals=2",
        ],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\narray = { drives = 6 }\n\
         workload = { kind = \"files\", rate = 300, requests = 2000, placement = \"round-robin\", \
         cooling = { every = 10, rule = \"target-stays-cooler\", waits = false }, \
         classes = [{ files = 36, size = \"400KB\", request = \"4KiB\", hot = { files = 0.3, requests = 0.7 } }] }",
        &["workload.cooling.moves=3", "workload.cooling.copies=\"gaps\""],
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\narray = { drives = 6 }\n\
         workload = { kind = \"files\", rate = 300, requests = 2000, placement = \"round-robin\", \
         cooling = { every = 10, waits = false, copies = \"gaps\" }, \
         classes = [{ files = 36, size = \"400KB\", request = \"4KiB\", hot = { files = 0.2, requests = 0.8 } }] }",
        &["workload.cooling.idle_after=\"2ms\""],
    ),
];

/// A small workload on a drive with electronics.
const PLAIN: &str =
    "drive = \"atlas10k\"\nworkload = { kind = \"closed\", outstanding = 8, requests = 100 }";

/// Keys without an effect on the hash: an experiment in which they have none, the change, and when they act.
pub const IDLE: &[(&str, &str, &str)] = &[
    (PLAIN, "warm_up=0.5", "it chooses what is measured, and the hash is over all completions"),
    (PLAIN, "slices=4", "it adds results of parts, and the hash is over all completions"),
    (
        "drive = \"atlas10k\"\nelectronics = false\nfreeblock = { tasks = [{}] }\n\
         workload = { kind = \"closed\", outstanding = 4, requests = 100 }",
        "freeblock.tasks.name: freeblock.tasks=[{name=\"mine\"}]",
        "it names the task in results",
    ),
    (
        "drive = \"atlas10k\"\narray = { drives = 2 }\nworkload = { kind = \"files\", rate = 200, requests = 100, \
         classes = [{ files = 9, size = \"4MB\", request = \"16KiB\" }] }",
        "workload.classes.name: workload.classes=[{name=\"mail\",files=9,size=\"4MB\",request=\"16KiB\"}]",
        "it names the class in results",
    ),
    (
        "drive = \"atlas10k\"\nhost = {}\nworkload = { kind = \"closed\", outstanding = 6, requests = 100 }",
        "host.behaviour.queue_depth=9",
        "the scheduler never has more commands at the drive than its own queue_depth: as an option of emulate it acts",
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\nfreeblock = { tasks = [{ length = \"1GiB\" }, { kind = \"scrub\" }] }\n\
         workload = { kind = \"closed\", outstanding = 4, requests = 100 }",
        "freeblock.tasks.deadline: freeblock.tasks=[{length=\"1GiB\",deadline=\"2s\"},{kind=\"scrub\"}]",
        "it acts in a run that is long enough for the task to be late",
    ),
    (
        "drive = \"atlas10k\"\nworkload = { kind = \"postmark\", utilisation = 0.2, transactions = 60 }",
        "workload.cleaner=\"freeblock\"",
        "it acts once few segments of the log are free; `ideal` subtracts cleaning from the results alone",
    ),
    (
        "scheduler = { policy = \"kyber\" }\n\
         workload = { kind = \"closed\", outstanding = 100, requests = 600, pattern = { read_share = 0.2 } }",
        "scheduler.read_latency=\"2s\"",
        "reads have 256 tokens: it acts once congestion has taken all but a drive's queue of them",
    ),
    // The same without its requirements. Notes and errors of the product say these.
    (
        "drive = \"atlas10k\"\nelectronics = false\nworkload = { kind = \"closed\", outstanding = 8, requests = 100 }",
        "queue_depth=1",
        "mechanics alone take one command at a time: it acts with electronics",
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\nworkload = { kind = \"closed\", outstanding = 8, requests = 100 }",
        "keep_free_blocks_before=false",
        "mechanics alone keep nothing: it acts with a buffer",
    ),
    (
        "drive = \"atlas10k\"\nelectronics = false\nworkload = { kind = \"closed\", outstanding = 8, requests = 100 }",
        "write_cache=\"off\"",
        "mechanics alone have no write cache: it acts with a buffer",
    ),
    (PLAIN, "array.stripe_unit=\"4KiB\"", "one drive is not striped: it acts with array.drives"),
    (
        PLAIN,
        "array.spindles=\"synchronised\"",
        "one drive has one spindle: it acts with array.drives",
    ),
    (
        PLAIN,
        "workload.think_time_distribution=\"exponential\"",
        "the think time is 0: it acts with workload.think_time",
    ),
    (PLAIN, "workload.pattern.local_sd=\"64KiB\"", "no request is local: it acts with local_share"),
    (
        "drive = \"tr96\"\nworkload = { kind = \"closed\", outstanding = 8, requests = 100 }",
        "workload.pattern.fua_share=0.5",
        "no memory holds writes: it acts with a write cache",
    ),
];
