#!/usr/bin/env bash
# Points the header of a program for 64-bit Windows at the load configuration in its section `.ldcfg`, as
# GNU's linker does not. It says from where Windows takes the libraries that the program is linked with.
# Source: Microsoft's PE format, "Optional Header Data Directories" and "Section Table".
set -euo pipefail
exe=${1:?program}

number() { od -An -v -t "u$2" -j "$1" -N "$2" "$exe" | tr -d ' '; }
bytes() { printf '%08x' "$1" | sed 's/\(..\)\(..\)\(..\)\(..\)/\\x\4\\x\3\\x\2\\x\1/'; }
complain() {
    echo "$exe: $1" >&2
    exit 1
}

header=$(number 60 4)
optional=$((header + 24))
[ "$(number "$optional" 2)" -eq $((0x20b)) ] || complain "is no program for 64-bit Windows"
directory=$((optional + 112 + 10 * 8))
table=$((optional + $(number $((header + 20)) 2)))
count=$(number $((header + 6)) 2)
for ((at = table; at < table + 40 * count; at += 40)); do
    name=$(od -An -v -c -j "$at" -N 8 "$exe" | tr -d ' \\0\n')
    if [ "$name" = .ldcfg ]; then
        address=$(number $((at + 12)) 4)
        size=$(number "$(number $((at + 20)) 4)" 4)
        # shellcheck disable=SC2059 # the bytes are meant to be a format
        printf "$(bytes "$address")$(bytes "$size")" |
            dd of="$exe" bs=1 seek="$directory" conv=notrunc status=none
        exit 0
    fi
done
complain "has no section .ldcfg, so it would load libraries from its own folder"
