#!/usr/bin/env bash
# Builds the daemon for Windows. Arguments go to cargo. The exe's path is the last line printed.
set -euo pipefail
cd "$(dirname "$0")/.."
# Sections that lie in the file as they do in memory need not be copied.
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUSTFLAGS="-Clink-arg=-Wl,--file-alignment=4096"
scripts/windows-cargo.sh build -p bin-wicd --bin wicd --profile dist-windows "$@"

exe=${CARGO_TARGET_DIR:-target}/x86_64-pc-windows-gnu/dist-windows/wicd.exe
scripts/load-flags.sh "$exe"
most=$((12 * 1024 * 1024))
size=$(stat -c %s "$exe")
if [ "$size" -gt "$most" ]; then
    echo "$exe has $size bytes, at most $most are wanted" >&2
    exit 1
fi
mkdir -p target
[ "$exe" -ef target/wicd.exe ] || cp "$exe" target/wicd.exe
echo "$size bytes: target/wicd.exe"
