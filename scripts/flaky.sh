#!/usr/bin/env bash
# Runs the tests that speak to other processes, wait or follow a clock again and again beside busy loops, without
# second tries, and prints which failed how often. Arguments: rounds, busy loops. FLAKY_TESTS, a filter of
# cargo-nextest, chooses others: `all()` for a night.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo nextest --version >/dev/null 2>&1 || {
    echo "cargo-nextest is missing: cargo install --locked cargo-nextest" >&2
    exit 1
}
rounds=${1:?rounds} loops=${2:?busy loops}
kept=$(realpath -m "${CARGO_TARGET_DIR:-target}")/flaky
rm -rf "$kept"
mkdir -p "$kept"

# Those that once asserted how fast a machine is, or that wait, follow a clock, or start programs.
tests=${FLAKY_TESTS:-'
    package(bin-operator) & test(/^live::(bindings|crash|drain|https|join|leader|machines|metrics|mirrors|node|processes|scenery|stop|token|trust|user_data|workers)(::|$)/)
    | package(bin-operator) & test(/(^|::)(follow|http|instance|leader)::/)
    | package(bin-wicd) & test(/certificates|restart|scenarios::daemon|the_rest_is_created|keys_are_exchanged|ignores_stop/)
    | package(wmco-ssh) & test(/^(chaos|conformance::.*far|cuts|exec|hostile|jump|lying|pool|restart|slow|upload)/)
    | package(wmco-sim) & test(/round_trips|containerd|^host::|^machines::/)
    | package(kube-testserver) & test(/watch|lease|runtime/)'}

# Before the loops begin: a round is of tests, not of builds.
NEXTEST_PROFILE=ci cargo nextest run --workspace --no-run

# Rounds whose run cargo-nextest itself does not call good: failed, cut short, without any test, or with a test that
# left a process behind.
bad=()
busy=()
trap 'kill "${busy[@]}" 2>/dev/null || true' EXIT
for _ in $(seq "$loops"); do
    while :; do :; done &
    busy+=($!)
done

for round in $(seq "$rounds"); do
    echo "== round $round of $rounds, load $(cut -d ' ' -f 1 /proc/loadavg)"
    NEXTEST_PROFILE=ci cargo nextest run --workspace --retries 0 --test-threads "$(($(nproc) * 3))" \
        --filterset "$tests" --status-level fail >"$kept/$round.txt" 2>&1 || bad+=("$round")
    grep -aE '^ +(FAIL|LEAK|LEAK-FAIL|TIMEOUT|SIG[A-Z]+) |^ +Summary|^error' "$kept/$round.txt" | sort -u || true
done

echo "== failures in $rounds rounds:"
failed=$(sed -nE 's/^ +(FAIL|LEAK|LEAK-FAIL|TIMEOUT|SIG[A-Z]+) \[[^]]*\] (\([^)]*\) )?//p' "$kept"/*.txt | sort | uniq -c | awk '{ $1 = int(($1 + 1) / 2); print }' | sort -rn)
[ -z "$failed" ] || echo "$failed"
if [ ${#bad[@]} -gt 0 ]; then
    echo "not good: round ${bad[*]}; the output of each round: $kept" >&2
    exit 1
fi
echo "none"
