//! Sizes as Kubernetes writes them.

use std::str::FromStr;

/// A size of zero or more bytes.
///
/// Source: Kubernetes API conventions, "Quantity": a decimal number with a decimal suffix (`n` to
/// `E`), a binary suffix (`Ki` to `Ei`) or an exponent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Quantity {
    /// Billionths of a byte, the smallest unit.
    nano: u128,
}

const NANO: u128 = 1_000_000_000;
const NO_QUANTITY: &str = "is no quantity, write for example 100M or 1Gi";
const TOO_LARGE: &str = "is too large, write at most some exabytes";

/// Suffixes with how many billionths of a byte they stand for.
const SUFFIXES: [(&str, u128); 16] = [
    ("", NANO),
    ("n", 1),
    ("u", 1_000),
    ("m", 1_000_000),
    ("k", 1_000 * NANO),
    ("M", 1_000_000 * NANO),
    ("G", 1_000_000_000 * NANO),
    ("T", 1_000_000_000_000 * NANO),
    ("P", 1_000_000_000_000_000 * NANO),
    ("E", 1_000_000_000_000_000_000 * NANO),
    ("Ki", (1 << 10) * NANO),
    ("Mi", (1 << 20) * NANO),
    ("Gi", (1 << 30) * NANO),
    ("Ti", (1 << 40) * NANO),
    ("Pi", (1 << 50) * NANO),
    ("Ei", (1 << 60) * NANO),
];

impl Quantity {
    /// In units of 10^6 bytes, rounded up.
    pub(super) fn megabytes(self) -> u64 {
        u64::try_from(self.nano.div_ceil(1_000_000 * NANO)).unwrap_or(u64::MAX)
    }
}

impl FromStr for Quantity {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text.starts_with('-') {
            return Err("is negative, write a quantity of 0 or more");
        }
        let text = text.strip_prefix('+').unwrap_or(text);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(NO_QUANTITY);
        }
        let unit = match SUFFIXES.iter().find(|(name, _)| *name == suffix) {
            Some((_, unit)) => *unit,
            None => exponent(suffix)?,
        };
        let mut nano = if whole.is_empty() { Ok(0_u128) } else { whole.parse() }
            .map_err(|_| TOO_LARGE)?
            .checked_mul(unit)
            .ok_or(TOO_LARGE)?;
        // Each digit of the fraction is worth a tenth of the one before; what is left rounds up.
        let mut worth = unit;
        for digit in fraction.chars().filter_map(|c| c.to_digit(10)) {
            let part = (worth * u128::from(digit)).div_ceil(10);
            nano = nano.checked_add(part).ok_or(TOO_LARGE)?;
            worth = worth.div_ceil(10);
        }
        Ok(Self { nano })
    }
}

/// Billionths of a byte that `e6` or `E6` stands for.
fn exponent(suffix: &str) -> Result<u128, &'static str> {
    let digits = suffix.strip_prefix(['e', 'E']).ok_or(NO_QUANTITY)?;
    let exponent: i32 = digits.parse().map_err(|_| NO_QUANTITY)?;
    let power = u32::try_from(exponent.saturating_add(9)).unwrap_or(0);
    10_u128.checked_pow(power).ok_or(TOO_LARGE)
}
