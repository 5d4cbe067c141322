# One command for each thing; CI runs the same ones.
CARGO ?= cargo
FREEWHEEL = $(CARGO) run --quiet --package freewheel-cli --

.PHONY: demo test test-python test-data test-clients test-vm test-kills test-power test-real-time planted-faults lint python notebooks bench bench-scale bench-instructions bench-freeblock bench-files bench-long bench-nbd bench-hostile reproduce install schemas picture clean

## The main job on a real trace: read out/demo/report.html afterwards.
demo:
	@echo "The first build takes two minutes and a quarter, the study 21 seconds."
	$(CARGO) build --package freewheel-cli
	$(FREEWHEEL) study data/recorded/pgbench-ext4.csv.zst --scale --out out/demo

## Formatting, clippy and all tests. `make bench` prints the seconds of each stage.
SUITE = out/suite.txt
stage = begun=$$(date +%s); $(2) && echo "$(1) $$(($$(date +%s) - begun)) s" >> $(SUITE).part
test:
	mkdir -p out
	git describe --always --dirty > $(SUITE).part 2>/dev/null || echo unknown > $(SUITE).part
	$(call stage,lint,$(MAKE) lint)
	$(call stage,build,$(CARGO) test --workspace --locked --no-run)
	$(call stage,tests,$(CARGO) test --workspace --locked)
	@mv $(SUITE).part $(SUITE) && tail -n +2 $(SUITE)

## Tests on traces and drive parameters that may not be redistributed. FREEWHEEL_DATA=DIR names their folder;
## a missing file is an error. Half a minute after `make test`.
FREEWHEEL_DATA ?= ../shared/data
DATA_LOG = $(CURDIR)/out/test-data.log
test-data:
	mkdir -p out
	: > "$(DATA_LOG)"
	FREEWHEEL_DATA="$(abspath $(FREEWHEEL_DATA))" FREEWHEEL_DATA_LOG="$(DATA_LOG)" \
	  $(CARGO) test --workspace --test data --locked --no-fail-fast; result=$$?; \
	count() { sort -u "$(DATA_LOG)" | grep -c "^$$1 "; }; \
	echo "test-data: $$(count used) files found and used, $$(count missing) missing, in $(abspath $(FREEWHEEL_DATA))"; \
	exit $$result

## Runs ext4 in a QEMU guest on `freewheel serve`, and kills the server meanwhile: half a minute. Needs
## Debian's qemu-system-x86, busybox-static, e2fsprogs and cpio; takes a kernel from the package archive.
test-vm:
	$(CARGO) build --package freewheel-cli
	vm/run.sh $${CARGO_TARGET_DIR:-target}/debug/freewheel

## nbdinfo, nbdcopy, qemu-img, qemu-io and fio on `freewheel serve` while it scrubs: a minute. Needs
## Debian's libnbd-bin, qemu-utils and fio.
test-clients:
	$(CARGO) build --package freewheel-cli
	vm/clients.sh $${CARGO_TARGET_DIR:-target}/debug/freewheel

## Kills 500 servers under load, cuts the power of a disk 500 times, and reads what was promised: some minutes.
test-kills:
	FREEWHEEL_KILLS=500 $(CARGO) test --package freewheel-cli --test cli --locked kills

## Extracts an emulated drive by the clock, is killed in between, and compares what it found: three minutes on
## a machine without other load.
test-real-time:
	$(CARGO) test --workspace --test cli --locked -- --ignored --test-threads 1

## 10,000 seeds of power cuts in virtual time (FREEWHEEL_POWER_SEEDS=N; FREEWHEEL_POWER_SEED=N replays one): a minute.
test-power:
	FREEWHEEL_POWER_SEEDS=$${FREEWHEEL_POWER_SEEDS:-10000} \
	  $(CARGO) test --package freewheel-live --test power --locked -- --nocapture

## Plants each fault of planted-faults/faults.toml in a copy of the tree and runs the test that is to catch it.
## PART=crates/nbd takes those of a part. Needs Python 3.11; the copy has a build of its own, in target.
planted-faults:
	planted-faults/run.py $(PART)

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings
	$(CARGO) clippy --workspace --test data --locked -- --deny warnings

## The package for Python: builds its wheel, installs it into .venv, and runs its tests and the checks of its
## types. Needs Python 3.11 and a network for pip; the wheel takes minutes.
PYTHON ?= python3.11
VENV = .venv/bin
VENV_READY = test -x $(VENV)/python || $(PYTHON) -m venv .venv; \
  $(VENV)/python -m pip install --quiet --upgrade 'pip>=25.1' && $(VENV)/python -m pip install --quiet --group test
python:
	$(VENV_READY)
	$(VENV)/python -m pip uninstall --quiet --yes freewheel
	rm -rf dist && $(VENV)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(VENV)/python -m pip install --quiet dist/freewheel-*.whl
	$(VENV)/python -m pytest
	$(VENV)/mypy
	$(VENV)/stubtest freewheel._freewheel --mypy-config-file pyproject.toml

## The same tests on a development build: some minutes less.
DEV = target/python
test-python:
	$(VENV_READY)
	$(CARGO) build --package freewheel-python
	rm -rf $(DEV) && mkdir -p $(DEV) && cp -r python/freewheel $(DEV)
	cp target/debug/lib_freewheel.so $(DEV)/freewheel/_freewheel.abi3.so
	PYTHONPATH=$(DEV) $(VENV)/python -m pytest
	$(VENV)/mypy
	MYPYPATH=$(DEV) PYTHONPATH=$(DEV) $(VENV)/stubtest freewheel._freewheel --mypy-config-file pyproject.toml

## Runs the notebooks on the package that is in .venv, and stores them with their outputs. disksim-drive needs the
## data of `make test-data`.
notebooks:
	FREEWHEEL_DATA="$(abspath $(FREEWHEEL_DATA))" $(VENV)/python python/notebooks.py

## Medians of simulated requests a second, appended to out/bench.jsonl.
bench:
	mkdir -p out
	$(CARGO) run --release --quiet --package freewheel-bench -- out/bench.jsonl

## Growth: time and memory against requests, drives, queue depth and wanted blocks, and parse rates by format;
## appended to out/bench.jsonl: about ten minutes.
bench-scale:
	mkdir -p out
	$(CARGO) run --release --quiet --package freewheel-bench -- --scale out/bench.jsonl

## Instructions a request by stage of the engine, in cases whose names contain PART; needs Debian's valgrind. A
## build of its own, with line tables: ten minutes for all cases.
bench-instructions:
	CARGO_PROFILE_RELEASE_DEBUG=line-tables-only $(CARGO) run --release --quiet --target-dir target/line-tables \
	  --package freewheel-bench -- --instructions "$(PART)"

## Cost of a freeblock decision by drive, block size and share of wanted blocks: several minutes. Uses huge
## pages, as docs/guide/serve.md advises for large drives (glibc; others run without).
bench-freeblock:
	GLIBC_TUNABLES=glibc.malloc.hugetlb=1 $(CARGO) run --release --quiet --package freewheel-bench -- --freeblock

## Files on many disks: requests a second, the time of a plan, memory: half a minute.
bench-files:
	$(CARGO) run --release --quiet --package freewheel-bench -- --files

## Shows that memory does not grow with the length of a run: 100,000,000 requests, generated and traced.
bench-long:
	$(CARGO) run --release --quiet --package freewheel-bench -- --long

## Compares the NBD server on a disk in memory with nbdkit's, and a file in TMPDIR by io_uring with one by
## threads: a minute. With DEVICE=/dev/sdX also the reads of that device.
bench-nbd:
	$(CARGO) run --release --quiet --package freewheel-bench -- --nbd $(DEVICE)

## Reads of 4 KiB by one client, and the server's memory, before, during and after 64 hostile connections;
## the same for nbdkit's: two minutes.
bench-hostile:
	$(CARGO) run --release --quiet --package freewheel-bench -- --nbd-hostile

## Runs every claim in full. Writes pages in out/ and data/reproduce.json, with which a test compares short
## runs. Prints its time.
reproduce:
	mkdir -p out
	$(CARGO) run --release --quiet --package freewheel-cli -- reproduce --json --report out/reproduce.html > out/reproduce.json
	mv out/reproduce.json data/reproduce.json

install:
	$(CARGO) install --locked --path crates/cli

## Writes the published JSON Schemas; a test compares them with the code.
schemas:
	mkdir -p schemas
	$(FREEWHEEL) sim --schema > schemas/sim.schema.json
	$(FREEWHEEL) drive schema > schemas/drive.schema.json
	$(FREEWHEEL) plan place --schema > schemas/snapshot.schema.json
	$(FREEWHEEL) tasks --openapi > schemas/control.openapi.json
	python3 python/config_types.py > python/freewheel/_config.py

## The picture in the README, from the demo's report. Needs Chromium.
picture: demo
	docs/picture.sh out/demo/report.html docs/report.png

clean:
	$(CARGO) clean
	rm -rf out
