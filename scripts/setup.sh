#!/usr/bin/env bash
# Sees to it that the programs are there which the given purposes need: build, book, lint, test,
# kubectl, fuzz, wicd, wine.
# As root on Debian it installs what is missing, otherwise it lists it and fails. It never skips.
set -euo pipefail

# Daemons are not in the search path of ordinary users.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# Older ones check objects against /openapi/v2, which the embedded cluster does not describe.
kubectl_minor=27

# Debian 13's kubectl also runs on Debian 12, whose own is too old: version and digest per machine.
kubectl_deb=kubectl_1.32.3+ds-2
declare -A kubectl_sha256=(
    [amd64]=9825aaf4c14913027aae04af8688e580459f781c829bd5de00cc4dc2cc5a867f
    [arm64]=b85800b5e2d2ecc958e2b9dfa7d4ce13b14e1175242de1f71acb4fa4b0b63212
)

packages=() # Debian packages to install
problems=() # what no package can mend
downloads=$(mktemp -d)
trap 'rm -rf "$downloads"' EXIT

has() { command -v "$1" >/dev/null 2>&1; }

# need PROGRAM PACKAGE: the program comes with the package.
need() { has "$1" || packages+=("$2"); }

may_install() { [ "$(id -u)" -eq 0 ] && has apt-get; }

# A fresh machine does not know yet which packages there are.
updated=
update() {
    [ -n "$updated" ] || apt-get update -q
    updated=yes
}

# Whether apt-get could install the package.
offered() { apt-cache policy "$1" 2>/dev/null | grep 'Candidate: [^(]' >/dev/null; }

# The 36 of a version such as 1.36.2 or 1.36.2-1+deb, at the end of the line that matches $1.
minor() { sed -n "s/.*$1\"\{0,1\}v\{0,1\}1\.\([0-9]*\).*/\1/p" | head -n 1; }

# The minor version of the kubectl on the PATH, 0 when there is none.
kubectl_found() {
    if has kubectl; then kubectl version --client -o json | minor '"gitVersion": '; else echo 0; fi
}

# Debian 12 and 13 call the package kubernetes-client, later ones and the Kubernetes project kubectl.
need_kubectl() {
    local debian architecture mirror
    if [ "$(kubectl_found)" -ge "$kubectl_minor" ]; then return; fi
    if may_install; then update; fi
    debian=$(apt-cache policy kubernetes-client 2>/dev/null | minor 'Candidate: ')
    if offered kubectl; then
        packages+=(kubectl)
    elif [ "${debian:-0}" -ge "$kubectl_minor" ]; then
        packages+=(kubernetes-client)
    elif may_install; then
        architecture=$(dpkg --print-architecture)
        [ -n "${kubectl_sha256[$architecture]:-}" ] || return 0
        # From the same mirror, and the same folder of it, as apt would take the old one.
        mirror=$(apt-get --print-uris download kubernetes-client 2>/dev/null | sed -n "s/^'\(.*\)\/[^/]*\.deb'.*/\1/p" | head -n 1)
        [ -n "$mirror" ] || return 0
        # _apt, an ordinary user, has to read it.
        chmod 755 "$downloads"
        /usr/lib/apt/apt-helper download-file "$mirror/${kubectl_deb}_$architecture.deb" \
            "$downloads/kubectl.deb" "SHA256:${kubectl_sha256[$architecture]}" &&
            packages+=("$downloads/kubectl.deb")
    fi
}

check_kubectl() {
    local found name=none
    found=$(kubectl_found)
    if [ "$found" -ge "$kubectl_minor" ]; then return; fi
    if [ "$found" -gt 0 ]; then name="1.$found at $(command -v kubectl)"; fi
    problems+=("the tests need kubectl 1.$kubectl_minor or newer, found $name;" \
        "no package offers it here, put one on the PATH: https://kubernetes.io/docs/tasks/tools/")
}

check_rust() {
    has cargo || problems+=("cargo is missing, install Rust: https://www.rust-lang.org/tools/install")
}

# The program that makes the users' book; one version, so that all see the same.
mdbook_version=0.5.4
install_mdbook() {
    local tools=${CARGO_TARGET_DIR:-target}/tools
    if [ "$("$tools/bin/mdbook" --version 2>/dev/null)" = "mdbook v$mdbook_version" ]; then return; fi
    cargo install --quiet --locked --no-default-features --version "$mdbook_version" --root "$tools" mdbook
}

check_fuzz() {
    cargo fuzz --version >/dev/null 2>&1 ||
        problems+=("cargo-fuzz is missing: cargo install --locked cargo-fuzz")
}

install() {
    [ ${#packages[@]} -gt 0 ] || return 0
    if ! may_install; then
        echo "missing, install with: sudo apt-get install ${packages[*]}" >&2
        exit 1
    fi
    echo "installing ${packages[*]}"
    update
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}"
    if [[ " ${packages[*]} " == *" openssh-server "* ]]; then
        echo "note: Debian starts its OpenSSH server now; the tests do not need that:" \
            "systemctl disable --now ssh"
    fi
    if [[ " ${packages[*]} " == *" containerd "* ]]; then
        echo "note: Debian starts its containerd now; the tests start one of their own:" \
            "systemctl disable --now containerd"
    fi
    if [[ " ${packages[*]} " == *" prometheus "* ]]; then
        echo "note: Debian starts its Prometheus now; the tests need its promtool alone:" \
            "systemctl disable --now prometheus"
    fi
}

for purpose in "$@"; do
    case $purpose in
    build)
        check_rust
        need cc gcc
        [ -e /usr/include/stdlib.h ] || ! has dpkg || packages+=(libc6-dev)
        ;;
    book) ;;
    lint) need python3 python3 ;;
    test)
        need sshd openssh-server
        need ssh-keygen openssh-client
        need openssl openssl
        need gpg gnupg
        need puttygen putty-tools
        need containerd containerd
        need ctr containerd
        need promtool prometheus
        ;;
    kubectl) need_kubectl ;;
    fuzz)
        check_fuzz
        need c++ g++
        ;;
    wicd) need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 ;;
    wine)
        need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64
        # A 64-bit Wine without the 32-bit one is enough.
        has wine && has wineserver || packages+=(wine wine64)
        ;;
    *)
        echo "setup.sh: unknown purpose $purpose, known are: build book lint test kubectl fuzz wicd wine" >&2
        exit 2
        ;;
    esac
done

install
if [[ " $* " == *" kubectl "* ]]; then check_kubectl; fi
if [ ${#problems[@]} -gt 0 ]; then
    printf '%s\n' "${problems[*]}" >&2
    exit 1
fi
if [[ " $* " == *" book "* ]]; then install_mdbook; fi
