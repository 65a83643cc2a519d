#!/usr/bin/env bash
# Runs each fuzz target for a number of seconds, beginning with its corpus. New inputs are kept apart:
# only what is worth a test is added to the corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?seconds per target}

# The sanitizer's flags are unstable ones, so a stable compiler is told to take them.
if rustup toolchain list 2>/dev/null | grep -q '^nightly'; then
    export RUSTUP_TOOLCHAIN=nightly
else
    export RUSTC_BOOTSTRAP=1
fi

for target in $(cargo fuzz list); do
    echo "== $target, $seconds s"
    found=fuzz/target/found/$target
    mkdir -p "$found"
    cargo fuzz run "$target" "$found" "fuzz/corpus/$target" -- -max_total_time="$seconds"
done
