#!/bin/sh
# The copies of a plan in their order, by rsync. Read this file before you run it.
# A copy grows in .freewheel-moves on its target, is compared with its original by checksum, and then gets
# its name by a rename. So a name is there when its copy is complete. No original is removed: when a copy is
# complete, do that with the line below it.
# Stopped or killed at any time, run it again: it goes on where it was.
# Clients may read meanwhile. Of what they change, stop the writers and run it again, or, after the copy
# has its name, run `sh moves.sh again N`; then remove the original before anything writes again.
# It stops at a disk that is not there, at a name that another file has, and where an original has to go
# first. `sh moves.sh N` begins with copy N.
set -eu
unset CDPATH
@NAMED@
usage() {
    echo "usage: sh moves.sh@USAGE@ [N]        all copies, or those from copy N on"
    echo "       sh moves.sh@USAGE@ again N    what changed since copy N"
}
wrong() {
    echo "moves.sh: $1" >&2
    usage >&2
    exit 2
}
# The number of a copy is 1, 2, ..., or new-1, new-2, ...
is_number() { case ${1#new-} in "" | *[!0-9]*) return 1 ;; esac }
again=no first= is_reached=yes
while test $# -gt 0; do
    case $1 in
        --help | -h) usage && exit 0 ;;
@OPTIONS@        again) again=yes ;;
        *)
            if test -n "$first" || ! is_number "$1"; then wrong "unknown argument: $1"; fi
            first=$1 is_reached=no
            ;;
    esac
    shift
done
if test "$again" = yes && test -z "$first"; then wrong "say which copy: again N"; fi

# stop NUMBER MESSAGE
stop() {
    echo "moves.sh: $1: $2" >&2
    exit 1
}
for tool in rsync flock mountpoint; do
    command -v "$tool" >/dev/null || stop start "$tool is not installed"
done
there() { test -e "$1" || test -L "$1"; }
# reached NUMBER: whether the copy is asked for.
reached() {
    if test "$1" = "$first"; then is_reached=yes; fi
    test "$is_reached" = yes
}
# disk NUMBER PATH
disk() {
    @IS_DISK@
}

# inside DISK FILE: whether the folders of a file are folders of the disk: no links, nothing mounted there.
inside() {
    part=$1 rest=$2
    while test "$rest" != "${rest#*/}"; do
        part=$part/${rest%%/*} rest=${rest#*/}
        if ! there "$part"; then return 0; fi
        if test -L "$part" || ! test -d "$part"; then return 1; fi
        test "$(stat -c %d -- "$part")" = "$(stat -c %d -- "$1")" || return 1
    done
}

# has_files FOLDER
has_files() { test -n "$(find "$1" ! -type d 2>/dev/null | head -n 1)"; }

# same OPTIONS FROM FILE TO: whether the copy is as its original; with -naci by checksum, with -nai by sizes
# and times.
same() {
    difference=$(rsync "$1" -HAXR --no-implied-dirs --delete -- "$2/./$3" "$4/") && test -z "$difference"
}

# more FROM FILE TO: what the copy has and its original lacks.
more() {
    original=$(cd -- "$1" && pwd -P)
    (cd -- "$3" && find "./$2" -exec sh -c '
        from=$1 && shift
        for path; do test -e "$from/$path" || test -L "$from/$path" || printf "%s\n" "${path#./}"; done
    ' more "$original" {} +) | head -n 1
}

# alone FOLDER FILE: removes what lies beside the file, and beside the folders that lead to it.
alone() {
    folder=$1 rest=$2/
    while test -n "$rest"; do
        # Beyond a link nothing is the copy's.
        if test -L "$folder"; then rm -f -- "$folder" && return 0; fi
        for entry in "$folder"/* "$folder"/.[!.]* "$folder"/..?*; do
            test "$entry" = "$folder/${rest%%/*}" || rm -rf -- "$entry"
        done
        folder=$folder/${rest%%/*} rest=${rest#*/}
    done
}

# fill OPTION FROM FILE COPY: goes on with a copy that was cut off.
fill() {
    rsync "$1" -HAXR --inplace --no-whole-file --delete@LIMIT@ -- "$2/./$3" "$4/"
    sync -f "$4"
}

# publish COPY FILE TO: renames the first folder of the path that the target lacks, or the file itself.
publish() {
    name=${2%%/*}
    while test "$name" != "$2" && test -d "$3/$name"; do
        rest=${2#"$name"/}
        name=$name/${rest%%/*}
    done
    inside "$3" "$name" && there "$1/$2" || return 1
    mv -nT -- "$1/$name" "$3/$name"
    if there "$1/$name"; then return 1; fi
    there "$3/$2"
}

# claim NUMBER FROM FILE: the copy's folder of work. What lies there may be of another plan.
claim() {
    if test "$(cat "$work/of" 2>/dev/null)" = "$2/$3"; then return 0; fi
    other=$(cat "$work/of" 2>/dev/null || true)
    if has_files "$work/copy" && ! there "$other"; then
        stop "$1" "$work/copy is a copy of ${other:-an unknown original}, which is not there: move it away or remove it"
    fi
    rm -rf -- "$work"
    mkdir -- "$work"
    printf '%s\n' "$2/$3" >"$work/of"
    sync -f "$work"
}

# copy NUMBER FROM FILE TO
copy() {
    work=$4/.freewheel-moves/$1
    if test "$2" -ef "$4"; then stop "$1" "$2 and $4 are one folder"; fi
    for path in "$3" ".freewheel-moves/$1/copy/file"; do
        inside "$4" "$path" || stop "$1" "$part is no folder of $4 itself: a link, a file, or another disk"
    done
    if test "$2/$3" -ef "$4/$3" && ! { test -L "$2/$3" && test -L "$4/$3"; }; then
        stop "$1" "$2/$3 and $4/$3 are one file"
    fi
    mkdir -p -- "$4/.freewheel-moves"
    # A copy that outlives a killed script holds the lock until it ends.
    exec 9<"$4/.freewheel-moves"
    flock -n 9 || { echo "$1: waits for another copy to $4" >&2; flock 9; }
    claim "$1" "$2" "$3"
    if ! there "$2/$3" && ! test -e "$work/complete"; then
        if has_files "$work/copy"; then
            stop "$1" "$2/$3 is not there, and $work/copy may be its only copy: move that away"
        fi
        there "$4/$3" || stop "$1" "$2/$3 is not there"
    elif ! there "$4/$3"; then
        there "$2/$3" || stop "$1" "neither $2/$3 nor $4/$3 is there"
        rm -f -- "$work/complete"
        mkdir -p -- "$work/copy"
        chmod -R u+rwX -- "$work/copy"
        alone "$work/copy" "$3"
        fill -a "$2" "$3" "$work/copy"
        if ! same -naci "$2" "$3" "$work/copy"; then
            # What a killed copy left behind may have the right size and time.
            fill -ac "$2" "$3" "$work/copy"
            same -naci "$2" "$3" "$work/copy" ||
                stop "$1" "$2/$3 changes while it is copied: stop what writes to it, and run this again"
        fi
        publish "$work/copy" "$3" "$4" ||
            stop "$1" "$4/$3 does not get its name: has that, or a link above it, appeared meanwhile?"
        sync -f "$4"
        : >"$work/complete"
    elif test "$again" = yes; then
        there "$2/$3" || stop "$1" "$2/$3 is not there"
        extra=$(more "$2" "$3" "$4")
        test -z "$extra" ||
            stop "$1" "$4/$extra is not in $2: end the removal of the original, or, if that is whole, remove this yourself"
        rm -f -- "$work/complete"
        mkdir -p -- "$work/again"
        rsync -auHAXR --no-implied-dirs --temp-dir="$(cd -- "$work/again" && pwd -P)"@LIMIT@ -- "$2/./$3" "$4/"
        same -naci "$2" "$3" "$4" ||
            stop "$1" "$2/$3 changes while it is copied, or $4/$3 is newer: stop what writes there"
        sync -f "$4"
        : >"$work/complete"
    elif there "$2/$3" && ! test -e "$work/complete"; then
        # Killed between the rename and the note, or a name that was there before.
        same -naci "$2" "$3" "$4" ||
            stop "$1" "$4/$3 is there and differs from $2/$3: if it is an older copy, run sh moves.sh again $1, else rename it"
        sync -f "$4"
        : >"$work/complete"
    elif there "$2/$3"; then
        same -nai "$2" "$3" "$4" ||
            stop "$1" "$4/$3 differs from $2/$3 since it was copied: run sh moves.sh again $1"
    fi
    rm -rf -- "$work/copy" "$work/again"
    if ! there "$2/$3"; then
        rm -rf -- "$work"
        rmdir -- "$4/.freewheel-moves" 2>/dev/null || true
    fi
    exec 9<&-
}

# gone NUMBER FILE: the copy needs the room of a file that has been copied elsewhere.
gone() {
    if ! reached "$1" || test "$again" = yes; then return 0; fi
    if there "$2"; then
        stop "$1" "needs the room of $2: check its copy, remove it, and run: sh moves.sh $1"
    fi
}
