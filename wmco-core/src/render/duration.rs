//! Durations in the notation of Go, which Kubernetes files use: `1h30m`, `1.5s`.
//!
//! Source: Go documentation, `time.ParseDuration` and `time.Duration.String`.

/// Units with their nanoseconds, longest names first where one starts another.
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

/// Digits after the point that can still be told apart in nanoseconds.
const FRACTION_DIGITS: usize = 18;

/// `text` in the one form that Go writes, for example `1h0m0s` for `60m`; `None` if it is no
/// duration or longer than Go's 292 years.
pub(super) fn canonical(text: &str) -> Option<String> {
    let negative = text.starts_with('-');
    let nanoseconds = parse(text.strip_prefix(['-', '+']).unwrap_or(text))?;
    let sign = if negative && nanoseconds > 0 { "-" } else { "" };
    Some(format!("{sign}{}", write(nanoseconds)))
}

fn parse(text: &str) -> Option<u128> {
    if text == "0" {
        return Some(0);
    }
    if text.is_empty() {
        return None;
    }
    let mut total = 0_u128;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scale(number, unit)?)?;
        rest = tail;
    }
    (total <= i64::MAX.unsigned_abs().into()).then_some(total)
}

/// `number` units in nanoseconds; what is shorter than one is dropped.
fn scale(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let fraction = fraction.get(..FRACTION_DIGITS).unwrap_or(fraction);
    let part = if fraction.is_empty() { 0 } else { fraction.parse::<u64>().ok()? };
    let divisor = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    u128::from(whole).checked_mul(unit)?.checked_add(u128::from(part) * unit / divisor)
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
    // A leading 1 keeps the zeros before the digits; it stands where the point goes.
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
        assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
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
        for text in
            ["", "-", "10", "h", ".s", "1d", "1 h", "1h ", "1.2.3s", "9223372036854775808ns"]
        {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    proptest! {
        /// What was written is read as the same duration.
        #[test]
        fn writing_loses_nothing(nanoseconds in 0..i64::MAX.unsigned_abs()) {
            prop_assert_eq!(parse(&write(nanoseconds.into())), Some(nanoseconds.into()));
        }
    }
}
