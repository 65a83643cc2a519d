#!/usr/bin/env python3
"""Checks what cites the contract, and the contract itself.

The contract is `docs/contract/PAGE.md`. A rule is defined where its number stands in bold at the start of a
paragraph, a list item or a table cell (`**CSR7** ...`), and cited behind the name of its page:
`docs/contract/certificate-requests.md, CSR7, CSR9 and CSR12 to CSR14`, with or without backticks, also where
the citation goes on in the next line of a comment; in the contract also behind a link:
`[ssh.md](ssh.md), SSH7`.

Complains about a page that is cited and does not exist or is not in the index, a rule that its page does not
define, a number that is defined twice, on its page or on another, a rule whose prefix is not its page's, a
link between pages that leads nowhere, a reference to a `spec/NAME.md`, which no reader has, and a test that
is named by a row of a table, `row_7_...`. Before that it checks itself with a repository that it makes.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = "docs/contract"
TEXTS = (".rs", ".md", ".toml", ".sh", ".py", ".yaml", ".yml", ".snap", ".ps1")
THIS = "scripts/contract.py"

RULE = r"[A-Z]{2,}[0-9]+"
BETWEEN = r"(?:, and |, | and | to )"
CITED = re.compile(rf"docs/contract/(?P<page>[\w-]+\.md)`?(?:, (?P<rules>{RULE}(?:{BETWEEN}{RULE})*))?")
LINKED = re.compile(rf"\]\((?P<page>[\w-]+\.md)\), (?P<rules>{RULE}(?:{BETWEEN}{RULE})*)")
DEFINED = re.compile(rf"(?:^|^[-*] |^[0-9]+\. |\| *)\*\*(?P<rule>{RULE})\*\*", re.MULTILINE)
BOLD = re.compile(rf"\*\*(?P<rule>{RULE})\*\*")
LINK = re.compile(r"\]\((?P<to>[^)\s#]+)(?:#[^)\s]*)?\)")
INDEX = re.compile(r"^\| \[(?P<page>[\w-]+\.md)\]\([\w-]+\.md\) \| (?P<prefix>[A-Z]+) \|", re.MULTILINE)
SPEC = re.compile(r"(?:(?<![\w/])|(?<=shared/))spec/[\w-]+\.md")
ROW = re.compile(r"\brow_[0-9]\w*")
# What a citation that goes on in the next line has there in between.
COMMENT = re.compile(r"[ \t]*\n[ \t]*(?://[/!]?|#|>)?[ \t]*")


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def split_rule(rule):
    prefix = rule.rstrip("0123456789")
    return prefix, int(rule[len(prefix) :])


def numbers(rules):
    """The rules of a citation; of `A1 to A3` all three."""
    parts = re.split(rf"({BETWEEN})", rules)
    named = [parts[0]]
    for between, rule in zip(parts[1::2], parts[2::2]):
        (prefix, first), (other, last) = split_rule(named[-1]), split_rule(rule)
        if between == " to " and prefix == other and first < last:
            # Numbers may be missing in between; both ends have to be there.
            named.append(rule)
        elif between == " to ":
            named += [rule, f"{rule} (from {named[-1]}, which does not come before it)"]
        else:
            named.append(rule)
    return named


def joined(text):
    """The text with one line for each paragraph of comments, and where each character was."""
    out, places, at = [], [], 0
    for match in COMMENT.finditer(text):
        out += [text[at : match.start()], " "]
        places += [*range(at, match.start()), match.start()]
        at = match.end()
    out.append(text[at:])
    places += range(at, len(text))
    return "".join(out), places


def problems_of(root, names):
    problems = []
    pages, index = {}, {}
    for name in sorted(names):
        if name.startswith(f"{FOLDER}/") and name.endswith(".md"):
            pages[name.removeprefix(f"{FOLDER}/")] = (root / name).read_text()
    if "README.md" in pages:
        index = {match["page"]: match["prefix"] for match in INDEX.finditer(pages["README.md"])}
    defined = {}  # rule -> page
    for page, text in pages.items():
        if page != "README.md" and page not in index:
            problems.append(f"{FOLDER}/{page} is not in the index of {FOLDER}/README.md")
        starts = {match.start("rule") for match in DEFINED.finditer(text)}
        for match in BOLD.finditer(text):
            rule, where = match["rule"], f"{FOLDER}/{page}:{line_of(text, match.start())}"
            if match.start("rule") not in starts:
                problems.append(f"{where}: {rule} is bold, but not where a rule begins")
            elif rule in defined:
                problems.append(f"{where}: {rule} is defined already, in {defined[rule]}")
            else:
                defined[rule] = page
            if split_rule(rule)[0] != index.get(page, split_rule(rule)[0]):
                problems.append(f"{where}: rules of this page begin with {index[page]}, not as {rule}")
        for match in LINK.finditer(text):
            if "://" not in match["to"] and not (root / FOLDER / match["to"]).exists():
                where = f"{FOLDER}/{page}:{line_of(text, match.start())}"
                problems.append(f"{where}: the link to {match['to']} leads nowhere")
    for page in sorted(index.keys() - pages.keys()):
        problems.append(f"{FOLDER}/README.md: {page} is in the index, but does not exist")

    for name in sorted(names):
        if not name.endswith(TEXTS) and name != "Makefile" or name == THIS:
            continue
        try:
            text = (root / name).read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        flat, places = joined(text)
        cites = [(m, m["page"], m["rules"]) for m in CITED.finditer(flat)]
        if name.startswith(f"{FOLDER}/"):
            cites += [(m, m["page"], m["rules"]) for m in LINKED.finditer(flat)]
        for match, page, rules in cites:
            where = f"{name}:{line_of(text, places[match.start()])}"
            if page == "PAGE.md":
                continue
            if page not in pages:
                problems.append(f"{where}: {FOLDER}/{page} does not exist")
                continue
            for rule in numbers(rules) if rules else []:
                if defined.get(rule) != page:
                    problems.append(f"{where}: {FOLDER}/{page} does not define {rule}")
        for pattern, why in ((SPEC, "cite docs/contract instead"), (ROW, "name the test by its rule")):
            for match in pattern.finditer(text):
                problems.append(f"{name}:{line_of(text, match.start())}: {match[0]}: {why}")
    return problems


# A repository with one mistake of each kind, and what is right beside it.
MADE = {
    "docs/contract/README.md": "| [one.md](one.md) | ONE | a |\n| [gone.md](gone.md) | GON | b |\n"
    "docs/contract/PAGE.md, ABC7",
    "docs/contract/one.md": "**ONE1** a\n\n* **ONE2** b\n\n| **ONE3** | c |\n\n1. **ONE3** d\n\ntext **ONE4**\n"
    "[x](README.md) [y](https://x.example/z.md) [z](../none.md) [one.md](one.md), ONE8 **TWO1**\n\n**OTH1** e",
    "docs/contract/two.md": "nobody lists it",
    "src/a.rs": "//! Source: `docs/contract/one.md`, ONE1 to\n//! ONE3, and `docs/contract/one.md`.\n"
    "// docs/contract/one.md, ONE9; docs/contract/three.md\n/// `docs/contract/one.md`,\n/// ONE7 and ONE1.\n"
    "fn row_7_x() {} fn a_row_of_7() {} // `docs/contract/one.md`, ONE3 to ONE1. CSR7",
    "b.md": "see spec/ssh.md, /spec/x and k8s.io/spec/x.md",
}
MADE_PROBLEMS = [
    "docs/contract/one.md:7: ONE3 is defined already, in one.md",
    "docs/contract/one.md:9: ONE4 is bold, but not where a rule begins",
    "docs/contract/one.md:10: TWO1 is bold, but not where a rule begins",
    "docs/contract/one.md:10: rules of this page begin with ONE, not as TWO1",
    "docs/contract/one.md:12: rules of this page begin with ONE, not as OTH1",
    "docs/contract/one.md:10: the link to ../none.md leads nowhere",
    "docs/contract/two.md is not in the index of docs/contract/README.md",
    "docs/contract/README.md:2: the link to gone.md leads nowhere",
    "docs/contract/README.md: gone.md is in the index, but does not exist",
    "b.md:1: spec/ssh.md: cite docs/contract instead",
    "docs/contract/one.md:10: docs/contract/one.md does not define ONE8",
    "src/a.rs:3: docs/contract/one.md does not define ONE9",
    "src/a.rs:3: docs/contract/three.md does not exist",
    "src/a.rs:4: docs/contract/one.md does not define ONE7",
    "src/a.rs:6: docs/contract/one.md does not define ONE1 (from ONE3, which does not come before it)",
    "src/a.rs:6: row_7_x: name the test by its rule",
]


def check_itself():
    """Ends the program unless it finds the mistakes of the made repository and no others."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in MADE.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        found = problems_of(Path(folder), MADE)
    if sorted(found) != sorted(MADE_PROBLEMS):
        odd = "\n  ".join(sorted(set(found) ^ set(MADE_PROBLEMS)))
        raise SystemExit(f"contract: this script is broken, in its made repository it differs in\n  {odd}")


def main():
    check_itself()
    root = Path(sys.argv[0]).resolve().parent.parent
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root, check=True, capture_output=True, text=True,
    ).stdout.splitlines()
    problems = problems_of(root, [name for name in listed if (root / name).is_file()])
    for problem in problems:
        print(f"contract: {problem}", file=sys.stderr)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
