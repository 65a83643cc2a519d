#!/usr/bin/env bash
# Compiles the libraries that have features with none of them, with each alone and with all, and the benches: a use that a
# feature is missing for is hidden as long as a program of this workspace turns that feature on. A target
# folder of its own, since another choice of the version of Kubernetes would build everything else anew.
# Arguments go to cargo.
set -euo pipefail
cd "$(dirname "$0")/.."
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")/features

check() {
    # A library alone chooses no version of Kubernetes, see Cargo.toml.
    # A warning tells of code that only another feature uses.
    local said
    said=$(K8S_OPENAPI_ENABLED_VERSION=1.35 cargo check --quiet --target-dir "$built" --package "$@" 2>&1) &&
        [ -z "$said" ] || {
        printf '%s\nfeatures.sh: %s does not compile without warnings\n' "$said" "$*" >&2
        exit 1
    }
}

for library in wmco-core wmco-services kube-testserver; do
    check "$library" --no-default-features "$@"
    features=$(sed -n '/^\[features\]/,/^\[dependencies\]/s/^\([a-z-]*\) = .*/\1/p' "$library/Cargo.toml" | grep -vx default)
    for feature in $features; do
        check "$library" --no-default-features --features "$feature" "$@"
    done
    check "$library" --all-features "$@"
done
# In the workspace a program turns on what a bench may lack.
check wmco-benches --benches "$@"
