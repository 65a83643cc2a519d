//! Fails the build if a table of built-in kinds cannot be read.

#[expect(dead_code, reason = "the library uses what is read")]
#[path = "src/schema/table.rs"]
mod table;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=src/schema");
    for (file, text) in table::TABLES {
        for paragraph in table::paragraphs(text) {
            paragraph.map_err(|problem| format!("src/schema/tables/{file}: {problem}"))?;
        }
    }
    Ok(())
}
