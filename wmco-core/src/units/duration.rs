//! Durations in the notation of Go, which Kubernetes files use: `1h30m`, `1.5s`.
//!
//! Source: Go documentation, `time.ParseDuration` and `time.Duration.String`.

use std::fmt;
use std::str::FromStr;

/// Units with their nanoseconds; of two names with the same start the longer one comes first.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", MICROSECOND),
    ("µs", MICROSECOND),
    ("μs", MICROSECOND),
    ("ms", MILLISECOND),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];
const MICROSECOND: u128 = 1_000;
const MILLISECOND: u128 = 1_000_000;
const SECOND: u128 = 1_000_000_000;

/// Digits after the point that are still significant in nanoseconds.
const FRACTION_DIGITS: usize = 18;

/// A duration in Go's notation; its text form is the one that Go writes, for example `1h0m0s` for `60m`.
///
/// ```
/// use wmco_core::units::GoDuration;
///
/// let duration: GoDuration = "90m".parse()?;
/// assert_eq!(duration.to_string(), "1h30m0s");
/// Ok::<(), wmco_core::units::DurationError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GoDuration {
    negative: bool,
    nanoseconds: u128,
}

/// Why a text is not a [`GoDuration`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// The text is not in Go's notation.
    #[error("is no duration, write for example 168h or 1m30s")]
    NoDuration,
    /// More than Go's maximum of 292 years.
    #[error("is too long, write a shorter duration")]
    TooLong,
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let nanoseconds = parse(text.strip_prefix(['-', '+']).unwrap_or(text))?;
        Ok(Self { negative: text.starts_with('-') && nanoseconds > 0, nanoseconds })
    }
}

impl GoDuration {
    /// Whole seconds, rounded up; `None` for a negative duration.
    ///
    /// ```
    /// use wmco_core::units::GoDuration;
    ///
    /// assert_eq!("1m0.5s".parse::<GoDuration>()?.seconds(), Some(61));
    /// Ok::<(), wmco_core::units::DurationError>(())
    /// ```
    pub fn seconds(self) -> Option<u64> {
        let seconds = u64::try_from(self.nanoseconds.div_ceil(SECOND)).ok();
        seconds.filter(|_| !self.negative)
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.negative { "-" } else { "" })?;
        f.write_str(&write(self.nanoseconds))
    }
}

fn parse(text: &str) -> Result<u128, DurationError> {
    if text == "0" {
        return Ok(0);
    }
    if text.is_empty() {
        return Err(DurationError::NoDuration);
    }
    let mut total = 0_u128;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let unit = UNITS.into_iter().find(|(name, _)| *name == unit);
        let (_, unit) = unit.ok_or(DurationError::NoDuration)?;
        total = total.checked_add(scale(number, unit)?).ok_or(DurationError::TooLong)?;
        rest = tail;
    }
    if total > i64::MAX.unsigned_abs().into() { Err(DurationError::TooLong) } else { Ok(total) }
}

/// `number` units in nanoseconds; smaller fractions are dropped.
fn scale(number: &str, unit: u128) -> Result<u128, DurationError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(DurationError::NoDuration);
    }
    // Only digits are left, so a parse error means that the value is too large.
    let digits = |text: &str| match text {
        "" => Ok(0),
        text => text.parse::<u64>().map_err(|_| DurationError::TooLong),
    };
    let fraction = fraction.get(..FRACTION_DIGITS).unwrap_or(fraction);
    let divisor = fraction.bytes().fold(1_u128, |divisor, _| divisor * 10);
    let part = u128::from(digits(fraction)?) * unit / divisor;
    let whole = u128::from(digits(whole)?).checked_mul(unit).ok_or(DurationError::TooLong)?;
    whole.checked_add(part).ok_or(DurationError::TooLong)
}

fn write(nanoseconds: u128) -> String {
    match nanoseconds {
        0 => "0s".to_owned(),
        1..MICROSECOND => format!("{nanoseconds}ns"),
        MICROSECOND..MILLISECOND => format!("{}µs", decimal(nanoseconds, MICROSECOND)),
        MILLISECOND..SECOND => format!("{}ms", decimal(nanoseconds, MILLISECOND)),
        _ => {
            let (minutes, rest) = (nanoseconds / (60 * SECOND), nanoseconds % (60 * SECOND));
            let seconds = decimal(rest, SECOND);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// `value / unit` without zeros at the end; `unit` is a power of ten.
fn decimal(value: u128, unit: u128) -> String {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    // A leading 1 keeps the zeros before the digits; its place is where the point goes.
    let digits = (unit + rest).to_string();
    let digits = digits.strip_prefix('1').unwrap_or(&digits);
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let duration: GoDuration = text.parse().unwrap();
        assert_eq!(duration.to_string(), expected, "{text}");
    }

    #[test]
    fn durations_are_written_as_go_does() {
        check("12h", "12h0m0s");
        check("1m30s", "1m30s");
        check("90m", "1h30m0s");
        check("0", "0s");
        check("-0s", "0s");
        check("1.5h", "1h30m0s");
        check("1s1ms", "1.001s");
        check("1500us", "1.5ms");
        check("1.5µs", "1.5µs");
        check("1.111ms", "1.111ms");
        check("999ns", "999ns");
        check("-.5s", "-500ms");
        check("+1.s", "1s");
        check("1h1ns", "1h0m0.000000001s");
        check("9223372036854775807ns", "2562047h47m16.854775807s");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "-", "10", "h", ".s", "1d", "1 h", "1h ", "1.2.3s"] {
            assert_eq!(text.parse::<GoDuration>(), Err(DurationError::NoDuration), "{text}");
        }
        for text in ["9223372036854775808ns", "99999999999999999999h", "2562048h"] {
            assert_eq!(text.parse::<GoDuration>(), Err(DurationError::TooLong), "{text}");
        }
    }

    proptest! {
        /// A written duration is read back unchanged.
        #[test]
        fn writing_loses_nothing(nanoseconds in 0..i64::MAX.unsigned_abs()) {
            prop_assert_eq!(parse(&write(nanoseconds.into())), Ok(nanoseconds.into()));
        }
    }
}
