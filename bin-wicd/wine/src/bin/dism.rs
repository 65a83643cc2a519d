//! `dism.exe` as far as the agent uses it: tells the state of the containers feature and switches it
//! on.

#[cfg(windows)]
fn main() -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::path::Path;

    use wicd_wine::journal::{self, Event};
    use wicd_wine::{FOLDER, told};

    /// A restart is needed. Source: Windows documentation, "System Error Codes".
    const RESTART: i32 = 3010;

    let words: Vec<String> = std::env::args().skip(1).collect();
    let file = Path::new(FOLDER).join(told::CONTAINERS);
    let asked = |flag: &str| words.iter().any(|word| word.eq_ignore_ascii_case(flag));
    let state = std::fs::read_to_string(&file).unwrap_or_else(|_| "Disabled".to_owned());
    journal::add(&Event::Dism { words: words.clone() })?;
    if !asked("/Enable-Feature") {
        writeln!(
            std::io::stdout(),
            "Feature Name : Containers\r\nRestart Required : Possible\r\nState : {state}\r"
        )?;
        return Ok(());
    }
    if state == "Disabled" {
        std::fs::write(&file, "Enable Pending")?;
    }
    std::process::exit(RESTART);
}

#[cfg(not(windows))]
fn main() {}
