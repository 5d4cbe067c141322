
# taken NUMBER FROM FILE TO: another file of the plan may have the name on the target.
taken() {
    if ! reached "$1" || ! there "$2/$3" || ! there "$4/$3"; then return 0; fi
    if test "$(cat "$4/.freewheel-moves/$1/of" 2>/dev/null)" != "$2/$3"; then
        stop "$1" "$4 has another $3: rename that one"
    fi
}

# move NUMBER DISK FILE DISK
move() {
    if ! reached "$1"; then return 0; fi
    disk "$1" "$2"
    disk "$1" "$4"
    copy "$1" "$2" "$3" "$4"
    if there "$2/$3"; then
        echo "$1: $4/$3 is complete"
    else
        echo "$1: $4/$3 is there, and its original is gone"
    fi
    if test "$again" = yes; then exit 0; fi
}
