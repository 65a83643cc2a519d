#!/usr/bin/env bash
# Whether the planner decides as it did at the commit REF, for CLUSTERS random clusters:
# alike.sh REF [CLUSTERS [SEED [REWORDED]]]. The first cluster that it decides otherwise is printed, and how many there are of
# each kind. REWORDED is a file of texts that are others now: a line as it was, and a line as it is. To be run before and after
# a room of the planner is moved.
set -euo pipefail
cd "$(dirname "$0")/.."
ref=${1:?"which commit is it compared with?"} clusters=${2:-200000} seed=${3:-1} reworded=${4:-/dev/null}
before=fuzz/alike/before
rm -rf "$before"
mkdir -p "$before"
trap 'rm -rf "$before"' EXIT
# With the times of now: cargo would take files that are older than its last build for built.
git archive "$ref" -- Cargo.toml wmco-core | tar -x -m -C "$before"
# Cargo tells two packages of one name apart by their versions; of the workspace only this member is there.
sed -i -e '0,/^version = .*/s//version = "0.0.0"/' -e '/^members = \[/,/^\]/c members = ["wmco-core"]' "$before/Cargo.toml"
cargo run --quiet --release --manifest-path fuzz/alike/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/alike" -- "$seed" "$clusters" "$(realpath "$reworded")"
