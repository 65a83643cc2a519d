//! Quantities such as `4Gi`: parsing, and the canonical form in answers of the API.
//!
//! Source: Kubernetes documentation, "Quantity" in the API reference. A quantity keeps its family of suffixes and
//! gets the largest suffix that needs no fraction; fractions below a billionth are rounded up.

const WRONG_FORMAT: &str = "quantities must match the regular expression \
                            '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";

const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Suffixes of the powers of 1000, starting at a billionth.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// Families of suffixes.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Family {
    Binary,
    Decimal,
    Exponent,
}

/// The canonical form.
///
/// # Errors
/// The message of Go's parser.
pub(crate) fn canonical(text: &str) -> Result<String, &'static str> {
    let (nanos, family) = read(text)?;
    let sign = if nanos < 0 { "-" } else { "" };
    Ok(format!("{sign}{}", written(nanos.abs(), family)))
}

/// The value in billionths, rounded away from zero.
///
/// # Errors
/// The message of Go's parser.
pub(crate) fn nanos(text: &str) -> Result<i128, &'static str> {
    read(text).map(|(nanos, _)| nanos)
}

fn read(text: &str) -> Result<(i128, Family), &'static str> {
    let (number, suffix) = split(text.trim())?;
    let (family, power) = suffix_of(suffix).ok_or(WRONG_SUFFIX)?;
    let (is_negative, mut digits, mut exponent) = decimal(number).ok_or(WRONG_NUMBER)?;
    match family {
        Family::Binary => {
            let factor = 1024_i128.checked_pow(power.unsigned_abs()).ok_or(WRONG_NUMBER)?;
            digits = digits.checked_mul(factor).ok_or(WRONG_NUMBER)?;
        }
        Family::Decimal | Family::Exponent => exponent += power,
    }
    let shift = exponent + 9;
    let nanos = match u32::try_from(shift) {
        Ok(shift) => {
            let factor = 10_i128.checked_pow(shift).ok_or(WRONG_NUMBER)?;
            digits.checked_mul(factor).ok_or(WRONG_NUMBER)?
        }
        Err(_) => match 10_i128.checked_pow(shift.unsigned_abs()) {
            Some(divisor) => digits / divisor + i128::from(digits % divisor != 0),
            None => i128::from(digits != 0),
        },
    };
    Ok((if is_negative { -nanos } else { nanos }, family))
}

/// The number and its suffix.
fn split(text: &str) -> Result<(&str, &str), &'static str> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let length = |text: &str, of: fn(char) -> bool| text.chars().take_while(|c| of(*c)).count();
    let whole = length(unsigned, |c| c.is_ascii_digit());
    let after = unsigned.get(whole..).unwrap_or("");
    let fraction =
        after.strip_prefix('.').map_or(0, |rest| 1 + length(rest, |c| c.is_ascii_digit()));
    let (number, suffix) = unsigned.split_at(whole + fraction);
    let letters = length(suffix, |c| "eEinumkKMGTP".contains(c));
    let exponent = suffix.get(letters..).unwrap_or("");
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if text.is_empty() || !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(WRONG_FORMAT);
    }
    let signed = text.len() - suffix.len();
    if number.is_empty() && suffix.is_empty() {
        return Err(WRONG_FORMAT);
    }
    Ok((text.get(..signed).unwrap_or(""), suffix))
}

/// The family of a suffix and its power, of 1024 or of ten.
fn suffix_of(suffix: &str) -> Option<(Family, i32)> {
    let position = |of: &[&str]| of.iter().position(|known| *known == suffix);
    if let Some(at) = position(&BINARY) {
        return Some((Family::Binary, i32::try_from(at + 1).ok()?));
    }
    if let Some(at) = position(&DECIMAL) {
        return Some((Family::Decimal, i32::try_from(at).ok()? * 3 - 9));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((Family::Exponent, exponent.parse().ok()?))
}

/// Sign, digits and power of ten of a decimal.
fn decimal(number: &str) -> Option<(bool, i128, i32)> {
    let is_negative = number.starts_with('-');
    let unsigned = number.trim_start_matches(['+', '-']);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = format!("0{whole}{fraction}").parse().ok()?;
    Some((is_negative, digits, -i32::try_from(fraction.len()).ok()?))
}

fn written(nanos: i128, family: Family) -> String {
    const UNIT: i128 = 1_000_000_000;
    if nanos == 0 {
        return "0".to_owned();
    }
    let units = nanos / UNIT;
    if family == Family::Binary && units >= 1024 && nanos % UNIT == 0 {
        let (mut number, mut suffix) = (units, "");
        for next in BINARY {
            if number % 1024 != 0 {
                break;
            }
            (number, suffix) = (number / 1024, next);
        }
        return format!("{number}{suffix}");
    }
    let (mut number, mut power) = (nanos, 0);
    while number % 1000 == 0 && power + 1 < DECIMAL.len() {
        (number, power) = (number / 1000, power + 1);
    }
    let suffix = DECIMAL.get(power).copied().unwrap_or("");
    match (family, power * 3) {
        (Family::Exponent, 9) => number.to_string(),
        (Family::Exponent, exponent) if exponent > 9 => format!("{number}e{}", exponent - 9),
        (Family::Exponent, exponent) => format!("{number}e-{}", 9 - exponent),
        (Family::Binary | Family::Decimal, _) => format!("{number}{suffix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_suffix_without_a_fraction_is_taken() {
        for (text, expected) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("1", "1"),
            ("110", "110"),
            ("1000", "1k"),
            ("1000m", "1"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("+2", "2"),
            ("-1.5", "-1500m"),
            ("100m", "100m"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("16393244Ki", "16393244Ki"),
            ("8388608Ki", "8Gi"),
            ("0.5Ki", "512"),
            ("1023Ki", "1023Ki"),
            ("128974848", "128974848"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e6", "12e6"),
            ("1e-3", "1e-3"),
            ("100e1", "1e3"),
            ("0.1n", "1n"),
            (" 5 ", "5"),
            ("5000M", "5G"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
            assert_eq!(canonical(expected).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["", "abc", "1Q", "1.2.3", "1 Gi", "1,5", "+"] {
            assert_eq!(canonical(text), Err(WRONG_FORMAT), "{text}");
        }
        for text in ["1Kii", "--1", "1K", "1mm", "1m5", "1e"] {
            assert_eq!(canonical(text), Err(WRONG_SUFFIX), "{text}");
        }
    }
}
