#!/usr/bin/env bash
# Builds the daemon for Windows. Arguments go to cargo. The exe's path is the last line printed.
set -euo pipefail
cd "$(dirname "$0")/.."
target=x86_64-pc-windows-gnu
folder=${CARGO_TARGET_DIR:-target}
build=(build -p bin-wicd --bin wicd --profile dist-windows --target "$target" "$@")

if rustup target list --installed 2>/dev/null | grep -qx "$target" ||
    rustup target add "$target" 2>/dev/null; then
    cargo "${build[@]}"
else
    # Debian's compiler has no standard library for Windows but brings its source.
    echo "rustup cannot add $target, using Debian's rustc-web"
    if ! [ -e /usr/lib/rustlib/src/rust/library/std ] || ! [ -x /usr/bin/cargo ]; then
        if [ "$(id -u)" -ne 0 ]; then
            echo "missing, install with: sudo apt-get install rustc-web cargo-web rust-web-src" >&2
            exit 1
        fi
        apt-get update -q
        DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
            rustc-web cargo-web rust-web-src
    fi
    RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 \
        /usr/bin/cargo "${build[@]}" -Zbuild-std=std,panic_abort
fi

exe=$folder/$target/dist-windows/wicd.exe
most=$((12 * 1024 * 1024))
size=$(stat -c %s "$exe")
if [ "$size" -gt "$most" ]; then
    echo "$exe has $size bytes, at most $most are wanted" >&2
    exit 1
fi
mkdir -p target
[ "$exe" -ef target/wicd.exe ] || cp "$exe" target/wicd.exe
echo "$size bytes: target/wicd.exe"
