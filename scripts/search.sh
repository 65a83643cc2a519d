#!/usr/bin/env bash
# Runs the property tests with a seed that nobody has tried, again and again, and keeps what it finds:
# proptest writes a failing case to a folder proptest-regressions, from where each later run tries it first
# (commit it); tests that keep no cases, such as the guarantees of the planners or commands over mutated
# reports, fail again with the seed, which is kept with the output.
# Arguments: rounds, then the command that runs the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:?rounds}
shift
kept=$(realpath -m "${CARGO_TARGET_DIR:-target}")/search
mkdir -p "$kept"
failed=0

for round in $(seq "$rounds"); do
    seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
    echo "== round $round of $rounds, PROPTEST_RNG_SEED=$seed"
    if PROPTEST_RNG_SEED=$seed "$@" >"$kept/$seed.txt" 2>&1; then
        rm "$kept/$seed.txt"
    else
        failed=1
        grep -E '^ +FAIL|^test .* FAILED|minimal failing input|panicked at|^error' "$kept/$seed.txt" | sort -u || true
        echo "== found something: $kept/$seed.txt; again with PROPTEST_RNG_SEED=$seed"
    fi
done

git status --short -- '*proptest-regressions*'
exit "$failed"
