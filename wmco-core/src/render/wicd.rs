//! Command line of WICD's Windows service.

use crate::names::host;
use crate::units::{Quantity, QuantityError};

/// Lifetime that WICD asks for in its certificate requests, in the notation of its flag.
const CERTIFICATE_LIFETIME: &str = "1h";

/// Most bytes of a namespace's name. Source: RFC 1123 labels in the Kubernetes documentation,
/// "Object Names and IDs".
const NAMESPACE_BYTES: usize = 63;

/// Why there is no command line.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WicdArgumentsError {
    /// The log size is no Kubernetes quantity of bytes.
    #[error("log file size `{text}` {problem}")]
    LogSize {
        /// What was given.
        text: String,
        /// What is wrong with it.
        problem: QuantityError,
    },
    /// Not a namespace; anything else might need quoting on a command line.
    #[error("`{text}` is no namespace, write lower-case letters, digits and `-`")]
    Namespace {
        /// What was given.
        text: String,
    },
}

/// Arguments after the executable's path, none of which needs quoting.
///
/// `namespace` is the operator's. `log_file_size` is a Kubernetes quantity of bytes; blank text
/// counts as none. Source: `spec/node-config.md`, section 2.3.
///
/// ```
/// use wmco_core::render::wicd_arguments;
///
/// let arguments = wicd_arguments("winc", Some("100Mi"))?;
/// assert!(arguments.join(" ").ends_with(r"--ca-bundle C:\k\ca-bundle.crt --log-file-max-size 105"));
/// # Ok::<(), wmco_core::render::WicdArgumentsError>(())
/// ```
///
/// # Errors
/// The namespace or the size is malformed.
pub fn wicd_arguments(
    namespace: &str,
    log_file_size: Option<&str>,
) -> Result<Vec<String>, WicdArgumentsError> {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let length = 1..=NAMESPACE_BYTES;
    if !length.contains(&namespace.len())
        || !namespace.bytes().all(letter)
        || namespace.starts_with('-')
        || namespace.ends_with('-')
    {
        return Err(WicdArgumentsError::Namespace { text: namespace.to_owned() });
    }
    let mut arguments = [
        "controller",
        "--windows-service",
        "--log-dir",
        host::WICD_LOGS,
        "--namespace",
        namespace,
        "--kubeconfig",
        host::WICD_KUBECONFIG,
        "--cert-dir",
        host::WICD_CERTIFICATES,
        "--cert-duration",
        CERTIFICATE_LIFETIME,
        "--ca-bundle",
        host::CA_BUNDLE,
    ]
    .map(str::to_owned)
    .to_vec();
    if let Some(size) = log_file_size.map(str::trim).filter(|size| !size.is_empty()) {
        arguments
            .extend(["--log-file-max-size".to_owned(), size_of(size)?.megabytes().to_string()]);
    }
    Ok(arguments)
}

fn size_of(text: &str) -> Result<Quantity, WicdArgumentsError> {
    text.parse().map_err(|problem| WicdArgumentsError::LogSize { text: text.to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_size_is_told() {
        let error = wicd_arguments("winc", Some("-1M")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "log file size `-1M` is negative, write a quantity of 0 or more"
        );
    }

    #[test]
    fn the_line_is_that_of_the_original() {
        let line = wicd_arguments("winc", None).unwrap().join(" ");
        insta::assert_snapshot!(line, @r"controller --windows-service --log-dir C:\var\log\wicd --namespace winc --kubeconfig C:\k\wicd-kubeconfig --cert-dir C:\k\wicd-certs --cert-duration 1h --ca-bundle C:\k\ca-bundle.crt");
    }

    #[test]
    fn a_blank_size_is_none() {
        assert_eq!(wicd_arguments("winc", Some(" ")), wicd_arguments("winc", None));
    }

    #[test]
    fn what_is_no_namespace_never_reaches_a_command_line() {
        for text in ["", "a b", "a&b", "A", "-a", "a-", "a.b", "ä", &"a".repeat(64)] {
            assert!(wicd_arguments(text, None).is_err(), "{text}");
        }
    }
}
