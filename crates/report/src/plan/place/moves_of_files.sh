
# gone NUMBER FILE: the copy needs the room of a file that has been copied elsewhere.
gone() {
    if test "$1" -lt "$first"; then return 0; fi
    if there "$2"; then
        stop "$1" "needs the room of $2: check its copy, remove it, and run: sh moves.sh $1"
    fi
}

# move NUMBER DISK FILE DISK
move() {
    if test "$1" -lt "$first"; then return 0; fi
    disk "$1" "$2"
    disk "$1" "$4"
    copy "$1" "$2" "$3" "$4"
    echo "$1: $4/$3 is complete"
    if test "$again" = yes; then exit 0; fi
}
