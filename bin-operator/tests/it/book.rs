//! The book in `docs/`: its commands run, its links lead somewhere, and it has no page that nobody finds.
//!
//! A block of `sh` is run, with those of its page before it, unless its first line says that it
//! [needs a cluster](CLUSTER). A block of `yaml` or `json` whose first line is a comment with a file name is that
//! file. A block of `text` after one of `sh` is what that one prints.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use tempfile::TempDir;
use wmco_core::support_matrix::SUPPORTED;
use wmco_services::logs::ALL_BYTES;

use crate::program::PROGRAM;

/// First line of commands that no test runs, since no stand-in answers them.
const CLUSTER: &str = "# needs a cluster";

/// What [`CLUSTER`] commands leave behind for those after them.
const LEFT_BY_CLUSTER: &str = "tests/book";

#[derive(Debug)]
struct Block {
    language: String,
    text: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All pages, by file name.
fn pages() -> Vec<(String, String)> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut pages: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| (name(&path), read(&path)))
        .collect();
    pages.sort();
    assert!(pages.len() > 10, "{pages:?}");
    pages
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open = None;
    for event in Parser::new(page) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                open = Some(Block { language: language.to_string(), text: String::new() });
            }
            Event::Text(text) => {
                if let Some(block) = &mut open {
                    block.text.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => blocks.extend(open.take()),
            _ => {}
        }
    }
    blocks
}

impl Block {
    /// The file that it is.
    fn file(&self) -> Option<&str> {
        let name = self.text.lines().next()?.strip_prefix("# ")?;
        let extension = Path::new(name).extension()?.to_str()?;
        (extension == self.language && !name.contains(['/', ' '])).then_some(name)
    }

    fn needs_cluster(&self) -> bool {
        self.text.lines().next() == Some(CLUSTER)
    }

    /// Runs it as people would paste it, and returns what it printed.
    fn run(&self, page: &str, folder: &Path, only_read: bool) -> String {
        let programs = Path::new(PROGRAM).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        let flags: &[&str] = if only_read { &["-n", "-c"] } else { &["-euo", "pipefail", "-c"] };
        bash.args(flags).arg(&self.text).current_dir(folder).env("PATH", path);
        let done = bash.env("KUBECONFIG", "/dev/null").output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{page}: `{}` ends with {}: {told}", self.text, done.status);
        String::from_utf8(done.stdout).unwrap()
    }
}

/// A folder with what commands on a cluster would have left there: for all pages, and for this one.
fn workplace(page: &str) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let left = Path::new(env!("CARGO_MANIFEST_DIR")).join(LEFT_BY_CLUSTER);
    for folder in [left.clone(), left.join(page.trim_end_matches(".md"))] {
        let files = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        for path in files.filter(|path| path.is_file()) {
            fs::copy(&path, place.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    place
}

#[test]
fn commands_of_the_book_do_what_it_says() {
    let (mut run, mut compared) = (0, 0);
    for (page, text) in pages() {
        let place = workplace(&page);
        let mut printed = None;
        for block in blocks(&text) {
            let before = printed.take();
            match block.language.as_str() {
                "sh" if block.needs_cluster() => {
                    block.run(&page, place.path(), true);
                }
                "sh" => {
                    printed = Some(block.run(&page, place.path(), false));
                    run += 1;
                }
                "text" => {
                    if let Some(printed) = before {
                        assert_eq!(printed.trim_end(), block.text.trim_end(), "{page}");
                        compared += 1;
                    }
                }
                "yaml" | "json" => {
                    if let Some(name) = block.file() {
                        fs::write(place.path().join(name), &block.text).unwrap();
                    }
                }
                "powershell" => {}
                other => panic!("{page} has a block of `{other}`, which nobody runs"),
            }
        }
    }
    assert!(run >= 10 && compared >= 5, "{run} commands run, {compared} outputs compared");
}

/// Targets of links, without those that lead out of the repository.
fn links(page: &str) -> Vec<String> {
    let links = Parser::new_ext(page, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
        _ => None,
    });
    links.map(|link| link.to_string()).filter(|link| !link.contains("://")).collect()
}

/// Anchors that mdBook gives to the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let kept = |c: &char| c.is_alphanumeric() || ['-', '_', ' '].contains(c);
    headings
        .map(|line| line.trim_start_matches('#').trim().to_lowercase())
        .map(|heading| heading.chars().filter(kept).collect::<String>().replace(' ', "-"))
        .collect()
}

#[test]
fn links_of_the_book_lead_somewhere() {
    let mut followed = 0;
    for (page, text) in pages() {
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { &page } else { file };
            let found = read(&folder().join(target));
            let there = anchor.is_empty() || anchors(&found).contains(anchor);
            assert!(there, "{page} links to {link}, which has no such heading");
            followed += 1;
        }
    }
    assert!(followed > 20, "{followed}");
}

#[test]
fn each_page_is_in_the_table_of_contents() {
    let listed: BTreeSet<_> = links(&read(&folder().join("SUMMARY.md"))).into_iter().collect();
    let there = pages().into_iter().map(|(name, _)| name).filter(|name| name != "SUMMARY.md");
    assert_eq!(listed, there.collect());
}

#[test]
fn the_book_says_what_is_supported() {
    let page = read(&folder().join("cluster.md"));
    let tables = SUPPORTED.tables();
    assert!(page.contains(&tables), "write into docs/src/cluster.md:\n{tables}");
}

#[test]
fn the_logs_page_says_how_much_logs_may_take() {
    let page = read(&folder().join("logs.md"));
    let text = format!("{}.{} GB", ALL_BYTES / 1_000_000_000, ALL_BYTES / 100_000_000 % 10);
    assert!(page.contains(&format!("at most **{text}**")), "{text}");
}
