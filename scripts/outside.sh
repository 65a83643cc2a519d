#!/usr/bin/env bash
# Checks a small program outside of this workspace that is made from the packages of our libraries, as
# its authors would: with another version of Kubernetes than ours. Fails when a library chooses one, or
# compiles with ours only. Works offline, from what cargo has downloaded for the workspace. Arguments go
# to `cargo package`.
set -euo pipefail
cd "$(dirname "$0")/.."
# Not ours, which is v1_35. Nobody else chooses one.
version=v1_36
unset K8S_OPENAPI_ENABLED_VERSION
libraries=(kube-testserver wmco-core wmco-csr wmco-services wmco-sim wmco-ssh)
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")
outside=$built/outside

rm -rf "$outside"
mkdir -p "$outside/src" "$outside/packages"
cargo package --quiet --offline --allow-dirty --no-verify --target-dir "$outside" \
    "${libraries[@]/#/--package=}" "$@"
for library in "${libraries[@]}"; do
    # With the time of now, since cargo goes by times; packages have none.
    mkdir "$outside/packages/$library"
    tar -xzmf "$outside/package/$library-"*.crate --strip-components 1 -C "$outside/packages/$library"
done

k8s=$(sed -n 's/^k8s-openapi = { version = "\([^"]*\)".*/\1/p' Cargo.toml)
{
    printf '[package]\nname = "outside"\nedition = "2024"\n\n[dependencies]\n'
    echo "k8s-openapi = { version = \"$k8s\", features = [\"$version\"] }"
    printf '%s = "*"\n' "${libraries[@]}"
    printf '\n[workspace]\nexclude = ["packages"]\n\n[patch.crates-io]\n'
    for library in "${libraries[@]}"; do echo "$library = { path = \"packages/$library\" }"; done
    # The same profile and versions as here, so that what others need is there already.
    sed -n '/^\[profile\.dev\./,/^\[profile\.release\]/{/^\[profile\.release\]/d;p}' Cargo.toml |
        sed '/^\[profile\.dev\.package\.wmco-core\]/,/^$/d'
    printf '[profile.dev]\ndebug = "line-tables-only"\nsplit-debuginfo = "unpacked"\n'
} >"$outside/Cargo.toml"
cp Cargo.lock "$outside"
cat >"$outside/src/main.rs" <<'RUST'
use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::Node};

k8s_openapi::k8s_if_ge_1_36! {
    fn main() {
        let request = CertificateSigningRequest::default();
        println!("{}", wmco_csr::Request::from(&request).name);
        println!("{:?}", wmco_core::facts::NodeFacts::from(&Node::default()));
        println!("{:?}", wmco_services::manifest::Manifest::empty());
        let _ = kube_testserver::TestServer::builder();
        let _ = wmco_sim::round_trips::RoundTrips::connected();
        let _ = wmco_ssh::Options::default();
    }
}
RUST

# From elsewhere, since cargo reads the configuration of the folders above the one that it runs in.
if ! (cd / && cargo check --quiet --offline --manifest-path "$outside/Cargo.toml" --target-dir "$built"); then
    echo "outside.sh: no program on Kubernetes ${version/_/.} can use the libraries, see above" >&2
    exit 1
fi
