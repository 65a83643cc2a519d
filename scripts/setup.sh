#!/usr/bin/env bash
# Sees to it that the programs are there which the given purposes need: build, test, fuzz, wicd.
# As root on Debian it installs what is missing, otherwise it lists it and fails. It never skips.
set -euo pipefail

# Daemons are not in the search path of ordinary users.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# First kubectl that asks for what the embedded cluster answers.
kubectl_minor=27

packages=() # Debian packages to install
problems=() # what no package can mend

has() { command -v "$1" >/dev/null 2>&1; }

# need PROGRAM PACKAGE: the program comes with the package.
need() { has "$1" || packages+=("$2"); }

# Whether apt-get could install the package.
offered() { apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'; }

need_kubectl() {
    if ! has kubectl; then
        # Debian calls it kubernetes-client, the Kubernetes project's own packages kubectl.
        if offered kubectl; then packages+=(kubectl); else packages+=(kubernetes-client); fi
    fi
}

check_kubectl() {
    local minor
    minor=$(kubectl version --client -o json | sed -n 's/.*"minor": "\([0-9]*\).*/\1/p')
    if [ "${minor:-0}" -lt "$kubectl_minor" ]; then
        problems+=("kubectl 1.${minor:-?} at $(command -v kubectl) is too old for the tests," \
            "put 1.$kubectl_minor or newer before it on the PATH:" \
            "https://kubernetes.io/docs/tasks/tools/")
    fi
}

check_rust() {
    has cargo || problems+=("cargo is missing, install Rust: https://www.rust-lang.org/tools/install")
}

check_fuzz() {
    cargo fuzz --version >/dev/null 2>&1 ||
        problems+=("cargo-fuzz is missing: cargo install --locked cargo-fuzz")
}

install() {
    [ ${#packages[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ] || ! has apt-get; then
        echo "missing, install with: sudo apt-get install ${packages[*]}" >&2
        exit 1
    fi
    echo "installing ${packages[*]}"
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}"
    if [[ " ${packages[*]} " == *" openssh-server "* ]]; then
        echo "note: Debian starts its OpenSSH server now; the tests do not need that:" \
            "systemctl disable --now ssh"
    fi
}

for purpose in "$@"; do
    case $purpose in
    build)
        check_rust
        need cc gcc
        [ -e /usr/include/stdlib.h ] || ! has dpkg || packages+=(libc6-dev)
        ;;
    test)
        need sshd openssh-server
        need ssh-keygen openssh-client
        need openssl openssl
        need gpg gnupg
        need_kubectl
        ;;
    fuzz)
        check_fuzz
        need c++ g++
        ;;
    wicd) need x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64 ;;
    *)
        echo "setup.sh: unknown purpose $purpose, known are: build test fuzz wicd" >&2
        exit 2
        ;;
    esac
done

install
if [[ " $* " == *" test "* ]]; then check_kubectl; fi
if [ ${#problems[@]} -gt 0 ]; then
    printf '%s\n' "${problems[*]}" >&2
    exit 1
fi
