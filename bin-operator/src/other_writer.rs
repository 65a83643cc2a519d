//! Other programs that write the same objects as we do.

use kube::api::ObjectMeta;
use wmco_core::limits;

/// The field manager that wrote an object last; `None` if nobody says.
pub fn last_writer(metadata: &ObjectMeta) -> Option<String> {
    let entries = metadata.managed_fields.iter().flatten();
    entries.max_by(|a, b| a.time.cmp(&b.time))?.manager.clone()
}

/// What people are to hear about it.
pub fn changes_again_and_again(writer: Option<&str>, what: &str) -> String {
    let by = writer.map_or_else(|| "somebody".to_owned(), |writer| format!("`{writer}`"));
    format!(
        "{by} changes or deletes {what} again and again, so corrections wait for up to {} minutes; take it out of \
         what that program applies",
        limits::CORRECTION_MOST.as_secs() / 60
    )
}
