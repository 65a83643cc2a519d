//! Options that name a platform, in whatever case it is written.

use wmco_core::names::platforms;

/// A platform that has Windows nodes of Machines, or None, as Infrastructures spell it.
///
/// # Errors
/// It is none of those.
pub(super) fn platform(text: &str) -> Result<&'static str, String> {
    among(platforms::ALL, text)
}

/// Any platform of OpenShift, or nothing, as Infrastructures spell it.
///
/// # Errors
/// OpenShift has no such platform.
pub(super) fn any_platform(text: &str) -> Result<&'static str, String> {
    match text.trim() {
        "" => Ok(""),
        text => among(platforms::ALL.into_iter().chain(platforms::OTHERS), text),
    }
}

fn among(
    known: impl IntoIterator<Item = &'static str> + Clone,
    text: &str,
) -> Result<&'static str, String> {
    let found = known.clone().into_iter().find(|known| known.eq_ignore_ascii_case(text));
    found.ok_or_else(|| format!("use one of {}", known.into_iter().collect::<Vec<_>>().join(", ")))
}
