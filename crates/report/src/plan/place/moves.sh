#!/bin/sh
# The copies of a plan in their order, by rsync. Read this file before you run it.
# A copy grows in .freewheel-moves on its target, is compared with its original byte by byte, and then
# gets its name by a rename. So a name is there when its copy is complete. No original is removed: when a
# copy is complete, do that with the line below it.
# Stopped or killed at any time, run it again: it goes on where it was.
# Clients may read meanwhile. Of what they change, stop the writers and run it again, or, after the copy
# has its name, run `sh moves.sh again N`; then remove the original before anything writes again.
# It stops at a disk that is not there, at a name that another file has, and where an original has to go
# first. `sh moves.sh N` begins with copy N.
set -eu
@NAMED@
again=no first=1
while test $# -gt 0; do
    case $1 in
@OPTIONS@        again) again=yes ;;
        *) first=$1 ;;
    esac
    shift
done

# stop NUMBER MESSAGE
stop() {
    echo "moves.sh: $1: $2" >&2
    exit 1
}
for tool in rsync flock mountpoint; do
    command -v "$tool" >/dev/null || stop start "$tool is not installed"
done
there() { test -e "$1" || test -L "$1"; }
# disk NUMBER PATH
disk() {
    @IS_DISK@
}

# same FROM FILE TO: whether the copy has the contents and attributes of its original.
same() {
    difference=$(rsync -naciHAXR --no-implied-dirs --delete -- "$1/./$2" "$3/") && test -z "$difference"
}

# publish COPY FILE TO: renames the first folder of the path that the target lacks, or the file itself.
publish() {
    name=${2%%/*}
    while test "$name" != "$2" && test -d "$3/$name"; do
        rest=${2#"$name"/}
        name=$name/${rest%%/*}
    done
    mv -nT -- "$1/$name" "$3/$name"
    if there "$1/$name"; then return 1; fi
}

# copy NUMBER FROM FILE TO
copy() {
    work=$4/.freewheel-moves/$1
    mkdir -p -- "$4/.freewheel-moves"
    # A copy that outlives a killed script holds the lock until it ends.
    exec 9<"$4/.freewheel-moves"
    flock -n 9 || { echo "$1: waits for another copy to $4" >&2; flock 9; }
    # What lies there may be of another plan.
    if test "$(cat "$work/of" 2>/dev/null)" != "$2/$3"; then
        rm -rf -- "$work"
        mkdir -- "$work"
        printf '%s\n' "$2/$3" >"$work/of"
    fi
    if ! there "$4/$3"; then
        there "$2/$3" || stop "$1" "$2/$3 is not there"
        rm -f -- "$work/complete"
        mkdir -p -- "$work/copy"
        rsync -aHAXR --delete@LIMIT@ -- "$2/./$3" "$work/copy/"
        sync -f "$work/copy"
        if ! same "$2" "$3" "$work/copy"; then
            # What a killed copy left behind may have the right size and time.
            rsync -acHAXR --delete@LIMIT@ -- "$2/./$3" "$work/copy/"
            sync -f "$work/copy"
            same "$2" "$3" "$work/copy" ||
                stop "$1" "$2/$3 changes while it is copied: stop what writes to it, and run this again"
        fi
        publish "$work/copy" "$3" "$4" || stop "$1" "$4/$3 has appeared meanwhile: rename it"
        : >"$work/complete"
    elif test "$again" = yes; then
        rm -f -- "$work/complete"
        rsync -aHAXR --no-implied-dirs --delete@LIMIT@ -- "$2/./$3" "$4/"
        same "$2" "$3" "$4" || stop "$1" "$2/$3 changes while it is copied: stop what writes to it"
        : >"$work/complete"
    elif there "$2/$3" && ! test -e "$work/complete"; then
        # Killed between the rename and the note, or a name that was there before.
        same "$2" "$3" "$4" ||
            stop "$1" "$4/$3 is there and differs from $2/$3: if it is an older copy, run sh moves.sh again $1, else rename one of them"
        : >"$work/complete"
    fi
    rm -rf -- "$work/copy"
    if ! there "$2/$3"; then
        rm -rf -- "$work"
        rmdir -- "$4/.freewheel-moves" 2>/dev/null || true
    fi
    exec 9<&-
}
