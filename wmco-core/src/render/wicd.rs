//! Command line of WICD's Windows service.

use crate::names::host;

/// Lifetime that WICD asks for in its certificate requests, in the notation of its flag.
const CERTIFICATE_LIFETIME: &str = "1h";

/// Most bytes of a namespace's name. Source: RFC 1123 labels in the Kubernetes documentation,
/// "Object Names and IDs".
const NAMESPACE_BYTES: usize = 63;

/// Why there is no command line.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WicdArgumentsError {
    /// The log size is no Kubernetes quantity, or too big for a number of megabytes.
    #[error("log file size `{text}` is no quantity, write one like 100M or 100Mi")]
    LogSize {
        /// What was given.
        text: String,
    },
    /// The log size is negative.
    #[error("log file size `{text}` is negative, write 0 for no limit")]
    NegativeLogSize {
        /// What was given.
        text: String,
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
        arguments.extend(["--log-file-max-size".to_owned(), megabytes(size)?.to_string()]);
    }
    Ok(arguments)
}

/// A quantity of bytes in units of 10^6 bytes, rounded up.
///
/// Grammar: Kubernetes API reference, "Quantity".
fn megabytes(text: &str) -> Result<u128, WicdArgumentsError> {
    let bad = || WicdArgumentsError::LogSize { text: text.to_owned() };
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| bad())?;
    let (binary, decimal) = exponents(suffix).ok_or_else(bad)?;
    let scaled = digits.checked_mul(1 << binary).ok_or_else(bad)?;
    let decimal = decimal - i64::try_from(fraction.len()).map_err(|_| bad())? - 6;
    let power = u32::try_from(decimal.unsigned_abs()).map_err(|_| bad())?;
    let power = 10_u128.checked_pow(power);
    let megabytes = match power {
        Some(power) if decimal < 0 => scaled.div_ceil(power),
        Some(power) => scaled.checked_mul(power).ok_or_else(bad)?,
        None if decimal < 0 => u128::from(scaled > 0),
        None => return Err(bad()),
    };
    if text.starts_with('-') && megabytes > 0 {
        return Err(WicdArgumentsError::NegativeLogSize { text: text.to_owned() });
    }
    Ok(megabytes)
}

/// Powers of 2 and of 10 that a suffix stands for.
fn exponents(suffix: &str) -> Option<(u32, i64)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        exponent => (0, i64::from(exponent.strip_prefix(['e', 'E'])?.parse::<i8>().ok()?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn size(text: &str, expected: u128) {
        assert_eq!(megabytes(text), Ok(expected), "{text}");
    }

    #[test]
    fn sizes_are_rounded_up_to_megabytes() {
        size("1M", 1);
        size("100Mi", 105);
        size("1Gi", 1074);
        size("500", 1);
        size("2000k", 2);
        size("0", 0);
        size("-0", 0);
        size("1E", 1_000_000_000_000);
        size("1e6", 1);
        size("1E+7", 10);
        size("1.5M", 2);
        size(".5G", 500);
        size("+1n", 1);
        size("1e-100", 1);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["notaquantity", "", ".", "1.2.3", "1 M", "1MB", "1m5", "1e", "1e999", "9e99", "٣"]
        {
            let error = WicdArgumentsError::LogSize { text: text.to_owned() };
            assert_eq!(megabytes(text), Err(error));
        }
        assert!(matches!(megabytes("-1"), Err(WicdArgumentsError::NegativeLogSize { .. })));
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
