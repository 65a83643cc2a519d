#!/usr/bin/env bash
# Runs cargo for Windows: `windows-cargo.sh build -p bin-wicd`. Where rustup cannot add the target,
# with Debian's compiler, whose source builds the standard library.
set -euo pipefail
cd "$(dirname "$0")/.."
target=x86_64-pc-windows-gnu
command=${1:?cargo command}
shift

if rustup target list --installed 2>/dev/null | grep -qx "$target" ||
    rustup target add "$target" 2>/dev/null; then
    exec cargo "$command" --target "$target" "$@"
fi
echo "rustup cannot add $target, using Debian's rustc-web" >&2
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
    exec /usr/bin/cargo "$command" --target "$target" -Zbuild-std=std,panic_abort "$@"
