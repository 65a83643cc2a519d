//! How logs of wrapped services are rotated. Source: `spec/services.md`, section 8.

use super::quantity::Quantity;

/// Variable with the size at which a log is rotated, a Kubernetes quantity.
const SIZE: &str = "SERVICES_LOG_FILE_SIZE";
/// Variable with the age at which a rotated log is removed, a duration such as `168h`.
const AGE: &str = "SERVICES_LOG_FILE_AGE";
/// Variable with the pause between two flushes to disk, a duration such as `5s`.
const FLUSH: &str = "SERVICES_LOG_FLUSH_INTERVAL";

/// Settings as they were written, checked.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LogSettings {
    size: Option<(String, Quantity)>,
    age: Option<String>,
    flush: Option<String>,
}

/// Every log setting that is wrong.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct LogSettingsError(pub Vec<BadLogSetting>);

/// One log setting that is wrong.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("variable {name} {problem}")]
pub struct BadLogSetting {
    /// The variable.
    pub name: &'static str,
    /// What is wrong with its value and what to write.
    pub problem: &'static str,
}

impl LogSettings {
    /// Reads the settings from the operator's environment. What is unset, empty or blank is not
    /// configured.
    ///
    /// # Errors
    /// [`LogSettingsError`] with every wrong one.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, LogSettingsError> {
        let mut bad = Vec::new();
        let text =
            |name| variable(name).map(|text| text.trim().to_owned()).filter(|t| !t.is_empty());
        let size = text(SIZE).and_then(|text| match text.parse::<Quantity>() {
            Ok(quantity) => Some((text, quantity)),
            Err(problem) => {
                bad.push(BadLogSetting { name: SIZE, problem });
                None
            }
        });
        let mut duration = |name| {
            text(name).and_then(|text| match check_duration(&text) {
                Ok(()) => Some(text),
                Err(problem) => {
                    bad.push(BadLogSetting { name, problem });
                    None
                }
            })
        };
        let (age, flush) = (duration(AGE), duration(FLUSH));
        if bad.is_empty() { Ok(Self { size, age, flush }) } else { Err(LogSettingsError(bad)) }
    }

    /// Whether anything is configured.
    pub fn is_configured(&self) -> bool {
        *self != Self::default()
    }

    /// Whether an age is set without a size. It has no effect then: old logs are removed only when a
    /// log is rotated.
    pub fn age_without_size(&self) -> bool {
        self.age.is_some() && self.size.is_none()
    }

    /// Flags of the wrapper.
    pub(super) fn runner_flags(&self) -> Vec<String> {
        let size = self.size.as_ref().map(|(text, _)| format!("-log-file-size={text}"));
        let age = self.age.as_ref().map(|text| format!("-log-file-age={text}"));
        let flush = self.flush.as_ref().map(|text| format!("-flush-interval={text}"));
        [size, age, flush].into_iter().flatten().collect()
    }

    /// The size in units of 10^6 bytes, rounded up, for the daemon's `--log-file-max-size`.
    pub fn megabytes(&self) -> Option<u64> {
        self.size.as_ref().map(|(_, quantity)| quantity.megabytes())
    }
}

/// Nanoseconds of each unit of a Go duration.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Checks a duration as Go writes it: pairs of a decimal number and a unit, or a bare `0`.
fn check_duration(text: &str) -> Result<(), &'static str> {
    const NO_DURATION: &str = "is no duration, write for example 168h or 1m30s";
    if text.starts_with('-') {
        return Err("is negative, write a duration of 0s or more");
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(NO_DURATION);
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(NO_DURATION);
        }
        let (_, nanoseconds) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(NO_DURATION)?;
        let whole: u128 = if whole.is_empty() { Ok(0) } else { whole.parse() }
            .map_err(|_| "is too long, write a shorter duration")?;
        total = whole
            .checked_mul(*nanoseconds)
            .and_then(|more| total.checked_add(more))
            .filter(|total| i64::try_from(*total).is_ok())
            .ok_or("is too long, write a shorter duration")?;
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &'static str, value: &str) -> Result<LogSettings, String> {
        LogSettings::from_environment(|asked| (asked == name).then(|| value.to_owned()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn blanks_around_go_and_blank_is_nothing() {
        assert_eq!(read(SIZE, "  100Mi  ").unwrap().runner_flags(), ["-log-file-size=100Mi"]);
        for name in [SIZE, AGE, FLUSH] {
            assert!(!read(name, "  ").unwrap().is_configured());
        }
    }

    #[test]
    fn sizes_in_megabytes() {
        for (text, megabytes) in [
            ("1M", 1),
            ("100Mi", 105),
            ("1G", 1000),
            ("1Gi", 1074),
            ("0", 0),
            ("500", 1),
            ("500k", 1),
            ("2000k", 2),
            ("1E", 1_000_000_000_000),
            ("1500m", 1),
            ("2e6", 2),
            ("0.5Gi", 537),
        ] {
            assert_eq!(read(SIZE, text).unwrap().megabytes(), Some(megabytes), "{text}");
        }
    }

    #[test]
    fn wrong_sizes_are_refused() {
        for text in ["notaquantity", "-1M", "10MB", "10 Mi", "", ".", "1.2.3", "1ki", "e6", "1e"] {
            let answer = read(SIZE, text);
            assert!(text.is_empty() || answer.is_err_and(|e| e.contains(SIZE)), "{text}");
        }
    }

    #[test]
    fn durations_are_those_of_go() {
        for text in ["5s", "0", "0s", "1.5h", "+2h", "1500\u{b5}s", "1h30m", ".5s", "1.s"] {
            assert!(read(AGE, text).is_ok(), "{text}");
        }
        for text in ["100", "-5s", "-0s", "10x", "7d", "m", "- 1s", "9999999h", "1..5s", "+", "1 h"]
        {
            assert!(read(FLUSH, text).is_err_and(|e| e.contains(FLUSH)), "{text}");
        }
    }

    #[test]
    fn all_wrong_settings_are_named() {
        let error = LogSettings::from_environment(|_| Some("x".to_owned())).unwrap_err();
        assert_eq!(error.0.len(), 3);
    }
}
