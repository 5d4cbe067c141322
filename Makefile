# One command for each thing; CI runs the same ones.
CARGO ?= cargo
FREEWHEEL = $(CARGO) run --quiet --package freewheel-cli --

.PHONY: demo test test-clients test-vm test-kills lint bench bench-scale bench-freeblock bench-long bench-nbd bench-hostile reproduce install schemas picture clean

## The main job on a real trace: read out/demo/report.html afterwards.
demo:
	@echo "The first build takes some minutes, the study half a minute."
	$(CARGO) build --package freewheel-cli
	$(FREEWHEEL) study data/recorded/pgbench-ext4.csv.zst --scale --out out/demo

test: lint
	$(CARGO) test --workspace --locked
	$(CARGO) test --package freewheel-cli --test cli --locked -- --ignored --test-threads 1

## ext4 in a QEMU guest on `freewheel serve`, which is killed meanwhile: half a minute. Needs Debian's
## qemu-system-x86, busybox-static, e2fsprogs and cpio; takes a kernel from the package archive.
test-vm:
	$(CARGO) build --package freewheel-cli
	vm/run.sh $${CARGO_TARGET_DIR:-target}/debug/freewheel

## nbdinfo, nbdcopy, qemu-img, qemu-io and fio on `freewheel serve` while it scrubs: a minute. Needs
## Debian's libnbd-bin, qemu-utils and fio.
test-clients:
	$(CARGO) build --package freewheel-cli
	vm/clients.sh $${CARGO_TARGET_DIR:-target}/debug/freewheel

## 500 servers killed under load, and what they had promised read back: some minutes.
test-kills:
	FREEWHEEL_KILLS=500 $(CARGO) test --package freewheel-cli --test cli --locked kills

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings

## Medians of simulated requests a second, appended to out/bench.jsonl.
bench:
	mkdir -p out
	$(CARGO) run --release --quiet --package freewheel-bench -- out/bench.jsonl

## Cost against drives, queue depth and length, appended to out/bench.jsonl: about five minutes.
bench-scale:
	mkdir -p out
	$(CARGO) run --release --quiet --package freewheel-bench -- --scale out/bench.jsonl

## What a freeblock decision costs, by drive, block size and how much is wanted: several minutes. With
## huge pages, as docs/serve.md advises for large drives (glibc; others go on without).
bench-freeblock:
	GLIBC_TUNABLES=glibc.malloc.hugetlb=1 $(CARGO) run --release --quiet --package freewheel-bench -- --freeblock

## That memory does not grow with the length of a run: 100,000,000 requests, generated and traced.
bench-long:
	$(CARGO) run --release --quiet --package freewheel-bench -- --long

## The NBD server with a disk in memory beside nbdkit's, with one client for both, and a file by io_uring
## beside one by threads, in TMPDIR: a minute. With DEVICE=/dev/sdX also the reads of that, likewise.
bench-nbd:
	$(CARGO) run --release --quiet --package freewheel-bench -- --nbd $(DEVICE)

## The 4 KiB reads of one client and the server's memory before, during and after 64 hostile connections
## of one process, beside nbdkit's: two minutes.
bench-hostile:
	$(CARGO) run --release --quiet --package freewheel-bench -- --nbd-hostile

## Every claim in full: ours beside the papers', pages in out/, and data/reproduce.json, which a test sets
## short runs beside. Prints its time.
reproduce:
	mkdir -p out
	$(CARGO) run --release --quiet --package freewheel-cli -- reproduce --json --report out/reproduce.html > out/reproduce.json
	mv out/reproduce.json data/reproduce.json

install:
	$(CARGO) install --locked --path crates/cli

## Writes the published JSON Schemas anew; a test holds them to the code.
schemas:
	mkdir -p schemas
	$(FREEWHEEL) sim --schema > schemas/sim.schema.json
	$(FREEWHEEL) drive schema > schemas/drive.schema.json
	$(FREEWHEEL) tasks --openapi > schemas/control.openapi.json

## The picture in the README, from the demo's report. Needs Chromium.
picture: demo
	docs/picture.sh out/demo/report.html docs/report.png

clean:
	$(CARGO) clean
	rm -rf out
