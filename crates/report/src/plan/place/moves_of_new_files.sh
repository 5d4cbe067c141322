
left_out=0
# new NUMBER FILE DISK
new() {
    if test "$again" = yes; then return 0; fi
    test -n "$from" || stop "$1" "say where new files are now: sh moves.sh --from FOLDER"
    test -d "$from" || stop "$1" "$from is no folder"
    test -n "$3" || stop "$1" "say where the disks are: --to FOLDER for each, in their order"
    disk "$1" "$3"
    if there "$from/$2" || there "$3/$2"; then
        copy "$1" "$from" "$2" "$3"
    else
        echo "$1: $2 is not in $from" >&2
        left_out=$((left_out + 1))
    fi
}
