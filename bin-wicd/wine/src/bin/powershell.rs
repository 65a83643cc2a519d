//! `powershell.exe` as far as the daemon uses it: answers scripts as its settings say.

#[cfg(windows)]
fn main() {
    use std::io::Write as _;
    use std::path::Path;

    use wicd_wine::journal::{self, Event};
    use wicd_wine::{FOLDER, told};

    let text = std::env::args().next_back().unwrap_or_default();
    let _ = journal::add(&Event::Script { text: text.clone() });
    let answers: told::Answers = told::read(Path::new(FOLDER), told::POWERSHELL);
    let Some((_, answer)) = answers.into_iter().find(|(part, _)| text.contains(part)) else {
        eprintln!("no answer is prepared for this script");
        std::process::exit(1);
    };
    if answer.hangs {
        loop {
            std::thread::park();
        }
    }
    let code =
        if writeln!(std::io::stdout(), "{}", answer.stdout).is_ok() { answer.code } else { 1 };
    std::process::exit(code);
}

#[cfg(not(windows))]
fn main() {}
