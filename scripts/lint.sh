#!/usr/bin/env bash
# House rules that the compiler cannot check. Looks at files that git knows or would add.
set -euo pipefail
cd "$(dirname "$0")/.."

most_lines=700
failed=0

complain() {
    echo "lint: $1" >&2
    failed=1
}

files() { git ls-files --cached --others --exclude-standard -- "$@"; }

# One place per wire name: the annotation prefix stands in the names module only.
prefix='windowsmachineconfig\.openshift\.io'
outside=$(files '*.rs' ':!wmco-core/src/names*' | xargs -r grep -nE "$prefix" || true)
[ -z "$outside" ] || complain "use a constant of wmco_core::names instead of the prefix:
$outside"

# What is not done stands in the tracker, not in the code.
later='\b(TODO|FIXME|XXX)\b|\b(todo|unimplemented)!'
unfinished=$(files '*.rs' '*.toml' '*.yaml' 'scripts/*' ':!scripts/lint.sh' ':!Cargo.toml' |
    xargs -r grep -nE "$later" || true)
[ -z "$unfinished" ] || complain "finish this or leave it out:
$unfinished"

while read -r file; do
    lines=$(wc -l <"$file")
    [ "$lines" -le "$most_lines" ] || complain "$file has $lines lines, split it (at most $most_lines)"
done < <(files '*.rs')

# ARCHITECTURE.md says which test holds which promise: `file` `test`, `test`.
while read -r cell; do
    file=
    for name in $(grep -o '`[^` ]*`' <<<"$cell" | tr -d '`'); do
        if [[ $name == */*.rs ]]; then
            file=$name
            [ -f "$file" ] || complain "ARCHITECTURE.md names $file, which does not exist"
        elif [ -f "$file" ] && [[ $name =~ ^[a-z0-9_]+$ ]]; then
            grep -q "fn $name\b" "$file" || complain "ARCHITECTURE.md names $name, which $file lacks"
        fi
    done
done < <(grep -E '^\| .*`[a-z-]+/[a-z/_]+\.rs`' ARCHITECTURE.md | cut -d'|' -f3)

# THREATS.md names tests in its third column.
names=$(grep -E '^\| ' THREATS.md | cut -d'|' -f4 | grep -oE '`[a-z0-9_]+`' | tr -d '`' | sort -u)
for name in $names; do
    files '*.rs' | xargs grep -qE "fn $name\b" || complain "THREATS.md names $name, which no file has"
done

for script in $(files 'scripts/*.sh' '.ci/*'); do
    bash -n "$script" || complain "$script is no bash"
done

python3 scripts/circles.py || complain "modules need each other in a circle, see scripts/circles.py"

# The contract: what cites it, and its own numbers and links.
python3 scripts/contract.py || complain "the contract and what cites it differ, see scripts/contract.py"

if cargo deny --version >/dev/null 2>&1; then
    # Advisories need the network and change by themselves, so they do not break a build.
    cargo deny --offline check bans licenses sources || complain "cargo deny objects"
else
    echo "lint: cargo-deny is not installed, so dependencies were NOT checked" \
        "(cargo install --locked cargo-deny)" >&2
fi

exit "$failed"
