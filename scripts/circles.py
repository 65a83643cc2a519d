#!/usr/bin/env python3
"""Finds circles among the modules of each crate.

The rule: for each module, its children form no circle. A use from one module to another counts
between the two children of their nearest common parent: `fleet::slots` that takes a name from
`node::plan` ties `fleet` to `node`. What a module and a module inside of it take from each other is
the normal way of Rust and does not count. A name that is taken from where it is re-exported counts
for the module that it comes from. Tests do not count: they look at everything.

Reads paths as text: no macro is expanded, and a method's module is not known. Nor are texts in attributes
read, comments inside of comments, and the crate by another name than `crate`.
With `--tell CRATE` it lists what ties that crate's modules together.
"""

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

TOKEN = re.compile(
    r"""//[^\n]*                                  # comments
      | /\*.*?\*/
      | b?c?r(?P<hashes>\#*)".*?"(?P=hashes)      # texts
      | [bc]?"(?:\\.|[^"\\])*"
      | b?'(?:\\(?:u\{\w*\}|x\w\w|.)|[^'\\])'     # characters
      | '\w+                                      # lifetimes
      | (?P<token>\$?(?:r\#)?\w+|::|\S)""",
    re.VERBOSE | re.DOTALL,
)
MOST_USES = 3  # of a tie that are told
ITEMS = "async const enum extern fn impl macro_rules mod pub static struct trait type union unsafe use".split()
DEFINED = ("struct", "enum", "union", "trait", "type", "const", "static", "fn", "macro_rules")


def tokens_of(text):
    """The words and signs of a source file, without comments and texts."""
    return [m["token"].removeprefix("r#") for m in TOKEN.finditer(text) if m["token"]]


def after_group(tokens, at):
    """Where the bracketed group that opens at `at` has ended."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place] in "([{") - (tokens[place] in ")]}")
        if depth == 0:
            return place + 1
    return len(tokens)


def use_tree(tokens, at, prefix):
    """The paths of a `use` with the names they get here, and where the tree has ended."""
    path = list(prefix)
    while at < len(tokens):
        token = tokens[at]
        if token == "{":
            found = []
            at += 1
            while tokens[at] != "}":
                more, end = use_tree(tokens, at, path)
                found += more
                at = end + (tokens[end] == ",")
            return found, at + 1
        if token in (",", "}", ";"):
            break
        if token == "as":
            return [(path, tokens[at + 1])], at + 2
        if token != "::":
            path.append(token)
        at += 1
    if path and path[-1] == "self":
        path.pop()
    return [(path, path[-1] if path else "")], at


class Crate:
    """The modules of one crate: paths as tuples of names, () is the root."""

    def __init__(self, root):
        self.sources = root / "src"
        self.modules = {()}  # all, tests left out
        self.imports = defaultdict(dict)  # module -> name there -> path
        self.given_on = defaultdict(set)  # module -> names that it imports for others, too
        self.types = defaultdict(set)  # module -> words that may be types, for the globs
        self.globs = defaultdict(list)  # module -> paths whose names are all there
        self.names = defaultdict(set)  # module -> names that it defines
        self.paths = []  # (module, path as written)
        entry = next(f for f in ("lib.rs", "main.rs") if (self.sources / f).exists())
        self.read_file((), self.sources / entry)

    def read_file(self, module, file):
        self.read(module, tokens_of(file.read_text()), file)

    def read(self, module, tokens, file):
        self.modules.add(module)
        at = 0
        is_test = False
        while at < len(tokens):
            token = tokens[at]
            if token == "#" and tokens[at + 1 : at + 2] in (["["], ["!"]):
                end = after_group(tokens, at + 1 + (tokens[at + 1] == "!"))
                is_test |= tokens[at + 2 : at + 6] == ["cfg", "(", "test", ")"]
                self.read_paths(module, tokens[at + 2 : end - 1])
                at = end
                continue
            if is_test and token == "pub":
                at = after_group(tokens, at + 1) if tokens[at + 1] == "(" else at + 1
                continue
            if is_test:
                # The item: up to its body's end or to its semicolon; of a field, a variant or an arm up
                # to its comma.
                ends = ("{", ";") if token in ITEMS else (",", "}")
                while tokens[at] not in ends:
                    at = after_group(tokens, at) if tokens[at] in "([{" else at + 1
                at = after_group(tokens, at) if tokens[at] == "{" else at + (tokens[at] != "}")
                is_test = False
                continue
            if token == "mod" and tokens[at + 2 : at + 3] == [";"]:
                self.read_child(module + (tokens[at + 1],), file)
                at += 3
            elif token == "mod" and tokens[at + 2 : at + 3] == ["{"]:
                end = after_group(tokens, at + 2)
                self.read(module + (tokens[at + 1],), tokens[at + 3 : end - 1], file)
                at = end
            elif token == "use" and tokens[at + 1] != "<":  # `use<'a>` is part of a type
                is_public = tokens[max(at - 1, 0)] in ("pub", ")")  # `pub use` or `pub(super) use`
                found, at = use_tree(tokens, at + 1, [])
                for path, name in found:
                    self.take(module, path, name)
                    if is_public:
                        self.given_on[module].add(name)
            elif token in DEFINED:
                self.names[module].add(tokens[at + 1 + (tokens[at + 1] == "!")])
                at += 1
            elif tokens[at + 1 : at + 2] == ["::"] and (at == 0 or tokens[at - 1] != "::"):
                at = self.read_path(module, tokens, at)
            else:
                if token[0].isupper():
                    self.types[module].add(token)
                at += 1

    def read_path(self, module, tokens, at):
        """Where the path that begins at `at` has ended."""
        path = [tokens[at]]
        while tokens[at + 1 : at + 2] == ["::"] and re.match(r"\w", "".join(tokens[at + 2 : at + 3])):
            path.append(tokens[at + 2])
            at += 2
        self.paths.append((module, path))
        return at + 1

    def read_paths(self, module, tokens):
        at = 0
        while at < len(tokens):
            is_path = tokens[at + 1 : at + 2] == ["::"] and re.match(r"\w", tokens[at])
            at = self.read_path(module, tokens, at) if is_path else at + 1

    def read_child(self, module, parent):
        stem = parent.parent if parent.stem in ("lib", "main", "mod") else parent.with_suffix("")
        # An inline module around it adds a folder of its own.
        inner = module[len(self.module_of(parent)) : -1]
        folder = stem.joinpath(*inner)
        for file in (folder / f"{module[-1]}.rs", folder / module[-1] / "mod.rs"):
            if file.exists():
                return self.read_file(module, file)
        raise SystemExit(f"circles: no file of module {'::'.join(module)} beside {parent}")

    def module_of(self, file):
        parts = file.relative_to(self.sources).with_suffix("").parts
        return parts[:-1] if parts[-1] in ("lib", "main", "mod") else parts

    def take(self, module, path, name):
        if not path:
            return
        self.paths.append((module, path))
        if path[-1] == "*":
            self.globs[module].append(path[:-1])
        elif name != "_":
            self.imports[module][name] = path

    def resolve(self, module, path, followed=frozenset()):
        """The module that the path leads to or into; None when that is outside of the crate.

        `followed` are the imports on the way, each a module and the name there: one that leads to
        itself, as `use text::text` does, leads out.
        """
        first, *rest = path
        if first in ("crate", "$crate"):
            here = ()
        elif first == "self":
            here = module
        elif first == "super":
            here = module[:-1]
        else:
            here, rest = module, path
            if not self.knows(here, first):
                return None
        while rest:
            name, *rest = rest
            if name == "super":
                here = here[:-1]
            elif here + (name,) in self.modules:
                here += (name,)
            elif name in self.imports[here]:
                if (here, name) in followed:
                    return None
                path = self.imports[here][name] + rest
                return self.resolve(here, path, followed | {(here, name)})
            elif name in self.names[here]:
                return here
            else:
                for glob in self.globs[here]:
                    if (here, "*") not in followed:
                        there = self.resolve(here, glob, followed | {(here, "*")})
                        if there is not None and self.gives(there, name, here):
                            path = ["self", name, *rest]
                            return self.resolve(there, path, followed | {(here, "*")})
                return here
        return here

    def knows(self, module, name):
        return (
            module + (name,) in self.modules
            or name in self.imports[module]
            or name in self.names[module]
        )

    def gives(self, module, name, to):
        """Whether a glob of `module` brings this name to the module `to`."""
        is_inside = to[: len(module)] == module
        hidden = name in self.imports[module] and name not in self.given_on[module]
        return self.knows(module, name) and (is_inside or not hidden)

    def names_of_globs(self):
        """Types that modules name without a path, since a glob brought them."""
        for module, globs in list(self.globs.items()):
            for glob in globs:
                there = self.resolve(module, glob)
                if there is None:
                    continue
                for name in sorted(self.types[module]):
                    if not self.knows(module, name) and self.gives(there, name, module):
                        yield module, name, self.resolve(there, ["self", name])

    def ties(self):
        """(parent, child, child) -> the uses that tie the first child to the second."""
        ties = defaultdict(set)
        uses = [(m, "::".join(path), self.resolve(m, path)) for m, path in self.paths]
        for module, name, there in uses + list(self.names_of_globs()):
            if there is None:
                continue
            common = 0
            while module[common : common + 1] == there[common : common + 1] != ():
                common += 1
            if len(module) > common and len(there) > common:
                key = (module[: common + 1], there[: common + 1])
                ties[key].add(f"{'::'.join(module)} takes {name}")
        return ties


def circles(ties):
    """The groups of modules that reach each other, each sorted."""
    reach = defaultdict(set)
    for tie in ties:
        reach[tie[0]].add(tie[1])

    def reached(start):
        found, left = set(), [start]
        while left:
            for there in reach[left.pop()] - found:
                found.add(there)
                left.append(there)
        return found

    far = {module: reached(module) for module in list(reach)}
    groups = {
        tuple(sorted(m for m in far[module] if module in far.get(m, ())))
        for module in far
        if module in far[module]
    }
    return sorted(groups)


def tie_name(crate, tie):
    return f"{crate}: {'::'.join(tie[0])} -> {'::'.join(tie[1])}"


# A crate with one circle of each kind that counts, and uses that look like circles and are none.
MADE = {
    "lib.rs": "mod a; mod b; mod c; mod d; mod e; mod f; mod g; mod h; mod i; mod j; mod tests_aside;"
    "pub use b::{Taken as Given}; pub use e::*; pub use f::*; use i::I; use j::J;",
    "a.rs": "use crate::Given; fn f<'a>() -> impl Fn() + use<'a> { '\"'; c::<\"x\">() }",
    "b/mod.rs": "pub mod one; mod two; /* crate::d */ pub struct Taken(crate::a::A);",
    "b/one.rs": "pub(in super) fn f() { super::two::g(r#\"crate::c\"#) }",
    "b/two.rs": "use super::{one::{self, f}, Taken};",
    "c.rs": "mod inner { use super::super::d::*; } #[cfg(test)] pub(crate) mod t { use crate::b::X; }",
    "d.rs": "// crate::c\nuse text::text; #[cfg(test)] use crate::c::C; fn f() { text::g() }",
    # What a glob of another gives on, and what it does not.
    "e.rs": "pub struct E; use crate::F;",
    "f.rs": "pub struct F; use crate::E;",
    # Attributes; what comes after a field that is for tests only.
    "g.rs": "pub struct G(crate::h::H);",
    "h.rs": "pub struct H { #[cfg(test)] x: u8, #[arg(value_parser = crate::g::f)] y: u8 }",
    # Names without a path.
    "i.rs": "use super::*; pub struct I(J);",
    "j.rs": "use super::*; pub struct J(I);",
    "tests_aside.rs": "#[cfg(test)] mod tests { use crate::a::A; }",
}
MADE_CIRCLES = [
    (("a",), ("b",)),
    (("b", "one"), ("b", "two")),
    (("e",), ("f",)),
    (("g",), ("h",)),
    (("i",), ("j",)),
]


def check_itself():
    """Ends the program unless it finds the circles of the made crate and no other."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in MADE.items():
            file = Path(folder, "src", name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        found = circles(Crate(Path(folder)).ties())
    if found != MADE_CIRCLES:
        raise SystemExit(f"circles: this script is broken, in its made crate it finds {found}")


def main():
    check_itself()
    root = Path(sys.argv[0]).resolve().parent.parent
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*Cargo.toml"],
        cwd=root, check=True, capture_output=True, text=True,
    ).stdout.split()
    problems = []
    for manifest in sorted(listed):
        folder = (root / manifest).parent
        if not any((folder / "src" / entry).exists() for entry in ("lib.rs", "main.rs")):
            continue
        name = str(folder.relative_to(root))
        ties = Crate(folder).ties()
        if sys.argv[1:] == ["--tell", name]:
            for tie in sorted(ties):
                print(tie_name(name, tie), *sorted(ties[tie]), sep="\n    ")
        for group in circles(ties):
            text = f"{name}: {', '.join('::'.join(m) for m in group)} need each other:"
            for tie in sorted(ties):
                if {*tie} <= {*group}:
                    text += f"\n  {tie_name(name, tie)}"
                    uses = sorted(ties[tie])
                    text += "".join(f"\n      {use}" for use in uses[:MOST_USES])
                    if len(uses) > MOST_USES:
                        text += f"\n      and {len(uses) - MOST_USES} more"
            problems.append(text)
    for problem in problems:
        print(f"circles: {problem}", file=sys.stderr)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
