#!/bin/sh
# Makes the images of this folder, and the free ranges that other programs find on them. Needs root, loop
# devices, xfsprogs, ntfs-3g and zstd.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'umount "$work/m" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
mkdir m

# Files of zeros, of which every second one goes, so that free blocks lie between used ones.
fill() {
    for number in $(seq "$1"); do fallocate -l "$2" "m/$number"; done
    sync
    for number in $(seq 2 2 "$1"); do rm "m/$number"; done
}

# Blocks that the groups of an XFS keep for their trees: GROUP BLOCK 1.
kept() {
    groups=$(xfs_db -r -c 'sb 0' -c 'print agcount' "$1" | sed 's/.*= //')
    for group in $(seq 0 $((groups - 1))); do
        xfs_db -r -c "agf $group" -c 'print flfirst fllast' -c "agfl $group" -c 'print bno' "$1" |
            tr ' ' '\n' | awk -v group="$group" -F: '
                /^[0-9]+$/ { ends[++count] = $1 }
                NF == 2 && $2 != "null" {
                    inside = $1 >= ends[1] && $1 <= ends[2]
                    if (ends[1] > ends[2]) inside = $1 >= ends[1] || $1 <= ends[2]
                    if (inside) print group, $2, 1
                }'
    done
}

# Free ranges as FIRST-LAST, in blocks of the file system. xfs_db counts the kept blocks as free.
free_of_xfs() {
    blocks=$(xfs_db -r -c 'sb 0' -c 'print agblocks' "$1" | sed 's/.*= //')
    kept "$1" > kept
    xfs_db -r -c 'freesp -d' "$1" |
        awk -v ag="$blocks" '
            FNR == NR { kept[$1 " " $2]; next }
            NF == 3 && $1 ~ /^[0-9]+$/ && !($3 == 1 && ($1 " " $2) in kept) {
                from = $1 * ag + $2
                print from, from + $3 - 1
            }' kept - |
        sort -n | awk '
            NR > 1 && $1 == last + 1 { last = $2; next }
            NR > 1 { print first "-" last }
            { first = $1; last = $2 }
            END { print first "-" last }'
}

free_of_ntfs() {
    clusters=$(ntfsinfo -m "$1" 2>/dev/null | sed -n 's/.*Volume Size in Clusters: //p')
    ntfscat -f -i 6 "$1" | od -An -v -tu1 -w1 | awk -v all="$clusters" '
        { for (bit = 0; bit < 8 && at < all; bit++) {
              used = int($1 / 2 ^ bit) % 2
              if (!used && from == "") from = at
              if (used && from != "") { print from "-" at - 1; from = "" }
              at++ } }
        END { if (from != "") print from "-" all - 1 }'
}

keep() {
    zstd -q -19 -f "$1.img" -o "$here/$1.zst"
}

xfs() {
    name=$1 files=$2 size=$3
    shift 3
    truncate -s 40M "$name.img"
    mkfs.xfs -q -f --unsupported -m uuid=00000000-0000-0000-0000-000000000001 "$@" "$name.img"
    if [ "$files" -gt 0 ]; then
        mount -o loop "$name.img" m
        fill "$files" "$size"
        sync
        if [ "$name" = xfs-4k ]; then cp --sparse=always "$name.img" xfs-mounted.img; fi
        umount m
    fi
    # An empty log makes a small image.
    if [ "$name" = xfs-1k ]; then xfs_repair -L "$name.img" > /dev/null 2>&1; fi
    free_of_xfs "$name.img" > "$here/$name.free"
    keep "$name"
}
xfs xfs-1k 600 4k -b size=1024
xfs xfs-4k 40 64k -b size=4096 -d agcount=2
# No kernel of today mounts version 4.
xfs xfs-v4 0 0 -m crc=0 -b size=4096 2> /dev/null
zstd -q -19 -f xfs-mounted.img -o "$here/xfs-mounted.zst"

ntfs() {
    truncate -s 24M "$1.img"
    mkntfs -q -F -c "$2" "$1.img" 2> /dev/null
    for number in $(seq 12); do
        fallocate -l $((number * 7000)) file
        ntfscp -q -f "$1.img" file "$number"
    done
    free_of_ntfs "$1.img" > "$here/$1.free"
    # A table of letters, 128 KiB that do not compress and that nothing here reads.
    letters=$(LC_ALL=C grep -obUaP '\x00\x00\x01\x00\x02\x00\x03\x00\x04\x00' "$1.img" |
        head -n 1 | cut -d: -f1)
    dd if=/dev/zero of="$1.img" bs=512 seek=$((letters / 512)) count=256 conv=notrunc status=none
    keep "$1"
}
ntfs ntfs-4k 4096
ntfs ntfs-512 512
