
left_out=0
if test -d "$from"; then from=$(cd -- "$from" && pwd -P); fi
# new NUMBER FILE DISK
new() {
    if ! reached "$1"; then return 0; fi
    test -n "$from" || stop "$1" "say where new files are now: sh moves.sh --from FOLDER"
    test -d "$from" || stop "$1" "$from is no folder"
    test -n "$3" || stop "$1" "say where the disks are: --to FOLDER for each, in their order"
    disk "$1" "$3"
    to=$(cd -- "$3" && pwd -P)
    if there "$from/$2" || there "$to/$2"; then
        copy "$1" "$from" "$2" "$to"
    else
        echo "$1: $2 is not in $from" >&2
        left_out=$((left_out + 1))
    fi
    if test "$again" = yes; then exit 0; fi
}
