#!/usr/bin/env bash
# Runs each fuzz target, or those that are named, for a number of seconds, beginning with its corpus. New
# inputs are kept apart: only what is worth a test is added to the corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?seconds per target}
shift

# The sanitizer's flags are unstable; RUSTC_BOOTSTRAP makes a stable compiler accept them.
if rustup toolchain list 2>/dev/null | grep -q '^nightly'; then
    export RUSTUP_TOOLCHAIN=nightly
else
    export RUSTC_BOOTSTRAP=1
fi

(($#)) || mapfile -t all < <(cargo fuzz list)
for target in "${@:-${all[@]}}"; do
    echo "== $target, $seconds s"
    found=fuzz/target/found/$target
    mkdir -p "$found"
    # An input that takes long or much memory is a fault, too.
    cargo fuzz run "$target" "$found" "fuzz/corpus/$target" -- -max_total_time="$seconds" \
        -timeout=20 -rss_limit_mb=2048
done
