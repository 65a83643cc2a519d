//! Other programs that write the same objects as we do.

use kube::api::ObjectMeta;
use wmco_core::limits;

/// The field manager that wrote an object last; `None` if nobody says.
pub fn last_writer(metadata: &ObjectMeta) -> Option<String> {
    last_writer_besides("", metadata)
}

/// The same, without what `own` wrote and without the status.
pub fn last_writer_besides(own: &str, metadata: &ObjectMeta) -> Option<String> {
    let entries = metadata.managed_fields.iter().flatten();
    let others =
        entries.filter(|it| it.subresource.is_none() && it.manager.as_deref() != Some(own));
    others.max_by(|a, b| a.time.cmp(&b.time))?.manager.clone()
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
