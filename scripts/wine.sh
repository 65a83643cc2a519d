#!/usr/bin/env bash
# Makes what the Wine suite of bin-wicd runs: the daemon and the stand-ins for Windows, and an empty
# Windows that each test copies. Arguments go to cargo.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${CARGO_TARGET_DIR:-target}
mkdir -p "$folder/wine"
# Tests that were started without `make` come here all at the same time.
exec 9>"$folder/wine/lock"
flock 9

# A test that calls this tells about its own package, and ring is made anew when that changes.
while read -r name; do unset "$name"; done < <(compgen -e | grep -E '^CARGO_(PKG|MANIFEST)_')

# Not the small build for hosts, which takes three times as long. But the agent reads whole programs
# to tell them apart, so they are not too big and that reading is not too slow.
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUSTFLAGS="-Cstrip=symbols -Clink-arg=-Wl,--gc-sections,--file-alignment=4096"
scripts/windows-cargo.sh build -p bin-wicd -p wicd-wine --bins \
    --config profile.dev.package.sha2.opt-level=3 "$@"

scripts/load-flags.sh "$folder/x86_64-pc-windows-gnu/debug/wicd.exe"

shim=$folder/wine/bcryptprimitives.dll
source=bin-wicd/wine/bcryptprimitives.c
if [ "$source" -nt "$shim" ]; then
    x86_64-w64-mingw32-gcc -shared -O2 -s -o "$shim" "$source" -ladvapi32
fi

version=$(WINEDEBUG=-all wine --version)
windows=$folder/wine/windows
if [ "$(cat "$windows/made-by" 2>/dev/null)" != "$version" ]; then
    rm -rf "$windows"
    mkdir -p "$windows"
    echo "making an empty Windows with $version"
    # Nothing of the caller's desktop or home folder gets in.
    begin=(env -i "PATH=$PATH" "HOME=$(realpath "$windows")" "WINEPREFIX=$(realpath "$windows")" WINEARCH=win64
        WINEDEBUG=-all "WINEDLLOVERRIDES=mscoree,mshtml,winemenubuilder.exe=d")
    timeout 300 "${begin[@]}" wine wineboot --init
    timeout 300 "${begin[@]}" wineserver -w
    # Last of all, so that a broken run is not taken for a Windows.
    echo "$version" >"$windows/made-by"
fi

# What a test left behind that was ended from outside.
for run in "$folder"/wine/run-*; do
    if [ -e "$run/owner" ] && ! kill -0 "$(cat "$run/owner")" 2>/dev/null; then
        WINEPREFIX=$(realpath "$run") wineserver -k || true
        rm -rf "$run"
    fi
done
