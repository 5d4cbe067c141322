#!/bin/bash
# Real NBD clients on `freewheel serve` in front of an emulated 24 TB drive, with a scrub running all the
# while: clients.sh FREEWHEEL.
#
# nbdinfo, nbdcopy there and back, qemu-img bench, qemu-io with patterns, fio with verification. Needs
# Debian's libnbd-bin, qemu-utils, fio.
set -euo pipefail
freewheel=$(realpath "${1:?the program freewheel}")
drive=exos-x24-24tb
work=$(mktemp -d)
server=
trap 'kill -9 $server 2>/dev/null || true; rm -rf "$work"' EXIT

fail() {
  echo "test-clients: $*" >&2
  exit 1
}

for program in nbdinfo nbdcopy qemu-img qemu-io fio cmp; do
  command -v "$program" > /dev/null ||
    fail "$program is missing: apt-get install libnbd-bin qemu-utils fio"
done

# Runs a client, and says how long it took.
client() {
  local name=$1 begun=$EPOCHREALTIME
  shift
  "$@" > "$work/log" 2>&1 || fail "$name: $(cat "$work/log")"
  awk -v name="$name" -v from="$begun" -v to="$EPOCHREALTIME" \
    'BEGIN { printf "%-34s ok, %.1f s\n", name, to - from }'
}

socket=$work/served
uri="nbd+unix:///?socket=$socket"
export FREEWHEEL_CONTROL=$work/control
"$freewheel" serve "emulated:$drive" --drive "$drive" --socket "$socket" \
  --control "$FREEWHEEL_CONTROL" --scrub > "$work/server" 2>&1 &
server=$!
for _ in $(seq 100); do
  [ ! -S "$FREEWHEEL_CONTROL" ] || break
  kill -0 "$server" 2>/dev/null || fail "$(cat "$work/server")"
  sleep 0.1
done

client "nbdinfo" nbdinfo "$uri"
grep -q "is_rotational: true" "$work/log" || fail "nbdinfo: no disk that turns: $(cat "$work/log")"
client "nbdinfo --list" nbdinfo --list "$uri"

head -c 512M /dev/urandom > "$work/there"
client "nbdcopy, 512 MiB there" nbdcopy --flush "$work/there" "$uri"
# The export is larger than that: cmp ends first, and nbdcopy then has no reader.
client "nbdcopy, 512 MiB back, compared" \
  bash -c "nbdcopy '$uri' - 2> /dev/null | head -c 512M | cmp - '$work/there'"

client "qemu-img bench, reads" \
  qemu-img bench -c 1000 -d 8 -s 4096 -S 2000000000 -f raw "$uri"
client "qemu-img bench, writes" \
  qemu-img bench -w -c 1000 -d 8 -s 16384 -S 16384 -o 1073741824 --flush-interval 100 -f raw "$uri"
client "qemu-io, patterns" qemu-io -f raw -t none "$uri" \
  -c "write -P 0xa5 2G 8M" -c "write -f -P 0x5a 2050M 64k" -c "write -z 2052M 1M" -c "discard 2054M 1M" \
  -c "flush" -c "read -P 0xa5 2G 2M" -c "read -P 0x5a 2050M 64k" -c "read -P 0 2052M 1M"
! grep -i "failed\|error" "$work/log" || fail "qemu-io: $(cat "$work/log")"
client "fio, 20 s, verified" fio --name=verify --ioengine=nbd --uri="$uri" --rw=randrw --bsrange=4k-64k \
  --iodepth=16 --size=64m --offset=4g --verify=crc32c --verify_backlog=256 --runtime=20 --time_based \
  --fsync=64 --verify_fatal=1 --verify_state_save=0

read_of() {
  "$freewheel" tasks --json | tr -d ' \n' | sed -n 's/.*"blocks_read":\([0-9]*\).*/\1/p'
}
scrubbed=$(read_of)
[ "${scrubbed:-0}" -gt 0 ] || fail "the scrub has read no block: $("$freewheel" tasks)"
"$freewheel" tasks
kill -TERM "$server"
wait "$server" || fail "the server ends with $?: $(cat "$work/server")"
echo "test-clients: every client is content, and the scrub has read $((scrubbed / 2048)) MiB beside them"
