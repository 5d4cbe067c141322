#!/bin/bash
# ext4 in a QEMU guest on `freewheel serve`, with a scrub running: run.sh FREEWHEEL.
#
# A guest makes a file system on virtio-blk over NBD and writes files. The server is killed (-9) during
# the writes. A second guest on a new server finds the synced files, replays the journal, writes again,
# and checks the file system. As root the disk is a loop device, by io_uring. Needs Debian's
# qemu-system-x86, busybox-static, e2fsprogs, cpio; takes a kernel image of Debian from the package
# archive.
set -euo pipefail
freewheel=$(realpath "${1:?the program freewheel}")
here=$(dirname "$(realpath "$0")")
drive=atlas10k
work=$(mktemp -d)
server=
guest=
loop=
trap 'kill -9 $server $guest 2>/dev/null || true; [ -z "$loop" ] || losetup -d "$loop"; rm -rf "$work"' EXIT

fail() {
  echo "test-vm: $*" >&2
  exit 1
}

for program in qemu-system-x86_64 busybox mke2fs e2fsck cpio dpkg-deb; do
  command -v "$program" > /dev/null ||
    fail "$program is missing: apt-get install qemu-system-x86 busybox-static e2fsprogs cpio"
done

# The kernel and the modules that a virtio disk needs.
kernel() {
  local package
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: //p' | head -1)
  [ -n "$package" ] || fail "no linux-image-cloud-amd64 in the package lists: apt-get update"
  (cd "$work" && apt-get download "$package" > apt.log 2>&1) || fail "$(cat "$work/apt.log")"
  dpkg-deb -x "$work/$package"_*.deb "$work/kernel"
}

# The guest's file system: busybox, e2fsprogs with their libraries, the modules, init.
initramfs() {
  local root=$work/root module file
  mkdir -p "$root/bin" "$root/e2fsprogs" "$root/modules"
  cp "$(command -v busybox)" "$root/bin/busybox"
  ln -s busybox "$root/bin/sh"
  for program in mke2fs e2fsck; do
    cp "$(command -v $program)" "$root/e2fsprogs/$program"
    ldd "$root/e2fsprogs/$program" | grep -o '/[^ ]*' | while read -r file; do
      mkdir -p "$root$(dirname "$file")"
      cp -L "$file" "$root$file"
    done
  done
  # In the order they need each other. A module that is not there is part of the kernel.
  for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
    file=$(find "$work/kernel" -name "$module.ko*" | head -1)
    [ -n "$file" ] || continue
    cp "$file" "$root/modules/"
    basename "$file" >> "$root/modules/order"
  done
  cp "$here/init" "$root/init"
  chmod +x "$root/init"
  (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) > "$work/initramfs"
}

# The export: a loop device of the file where the system allows one, served by io_uring, else the file.
device() {
  if loop=$(losetup --find --show --direct-io=on "$work/disk" 2> "$work/losetup"); then
    disk=$loop
    how=uring
  else
    echo "test-vm: skipped: a block device, by io_uring: $(cat "$work/losetup")"
    disk=$work/disk
    how=threads
  fi
}

serve() {
  : > "$work/served"
  "$freewheel" serve "$disk" --io "$how" --drive "$drive" --socket "$work/socket" --scrub \
    > "$work/served" 2>&1 &
  server=$!
  for _ in $(seq 100); do
    grep -q " by $how at " "$work/served" && return
    sleep 0.1
  done
  fail "the server did not start: $(cat "$work/served")"
}

# Runs a guest until its console says WORD: guest STAGE WORD.
guest() {
  qemu-system-x86_64 -accel tcg -m 512 -nographic -no-reboot -monitor none -nodefaults \
    -serial "file:$work/console" -kernel "$work"/kernel/boot/vmlinuz-* -initrd "$work/initramfs" \
    -append "console=ttyS0 quiet panic=-1 stage=$1" \
    -drive "file=nbd+unix:///?socket=$work/socket,format=raw,if=virtio,cache=none" \
    > "$work/qemu" 2>&1 &
  guest=$!
  for _ in $(seq 3000); do
    if grep -q 'GUEST FAILED' "$work/console" 2>/dev/null; then break; fi
    if grep -q "GUEST $2" "$work/console" 2>/dev/null; then
      grep -o "GUEST $2.*" "$work/console" | tr -d '\r'
      return
    fi
    kill -0 $guest 2>/dev/null || break
    sleep 0.1
  done
  fail "guest to $1: $(cat "$work/qemu"; tail -20 "$work/console")"
}

kernel
initramfs
size=$("$freewheel" drive show "$drive" --json | sed -n 's/.*"capacity_bytes": \([0-9]*\),/\1/p' | head -1)
truncate -s "$size" "$work/disk"
device
serve
guest write SYNCED
# During the guest's writes.
sleep 2
kill -9 "$server"
wait "$server" 2>/dev/null || true
kill -9 "$guest" 2>/dev/null || true
wait "$guest" 2>/dev/null || true
rm -f "$work/console"
serve
guest verify OK
wait "$guest" || fail "qemu: $(cat "$work/qemu")"
kill -INT "$server"
wait "$server" || fail "the server: $(cat "$work/served")"
server=
grep -i scrub "$work/served" || fail "no scrub ran: $(cat "$work/served")"
echo "test-vm: what a guest had synced outlived kill -9 of its server, which read and wrote $disk by $how; ext4 is clean"
