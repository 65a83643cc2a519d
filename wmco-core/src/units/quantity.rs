//! Sizes as Kubernetes writes them.

use std::str::FromStr;

/// A size of zero or more bytes, such as `100M` or `1.5Gi`.
///
/// Source: Kubernetes API conventions, "Quantity": a decimal number with a decimal suffix (`n` to
/// `E`), a binary suffix (`Ki` to `Ei`) or an exponent.
///
/// ```
/// use wmco_core::units::Quantity;
///
/// let size: Quantity = "100Mi".parse()?;
/// assert_eq!(size.megabytes(), 105);
/// Ok::<(), wmco_core::units::QuantityError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Quantity {
    /// Billionths of a byte, the smallest unit.
    nano: u128,
}

const NANO: u128 = 1_000_000_000;

/// Suffixes with their value in billionths of a byte.
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

/// Why a text is not a [`Quantity`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// A negative size.
    #[error("is negative, write a quantity of 0 or more")]
    Negative,
    /// The text is not in Kubernetes' notation.
    #[error("is no quantity, write for example 100M or 1Gi")]
    NoQuantity,
    /// The size is too large for any disk.
    #[error("is too large, write at most some exabytes")]
    TooLarge,
}

impl Quantity {
    /// The size in units of 10^6 bytes, rounded up.
    pub fn megabytes(self) -> u64 {
        u64::try_from(self.nano.div_ceil(1_000_000 * NANO)).unwrap_or(u64::MAX)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let size = text.strip_prefix(['+', '-']).unwrap_or(text);
        let end = size.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(size.len());
        let (number, suffix) = size.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(QuantityError::NoQuantity);
        }
        let unit = match SUFFIXES.iter().find(|(name, _)| *name == suffix) {
            Some((_, unit)) => *unit,
            None => exponent(suffix)?,
        };
        let mut nano = if whole.is_empty() { Ok(0_u128) } else { whole.parse() }
            .map_err(|_| QuantityError::TooLarge)?
            .checked_mul(unit)
            .ok_or(QuantityError::TooLarge)?;
        // Each digit of the fraction is worth a tenth of the digit before it; the remainder rounds up.
        let mut worth = unit;
        for digit in fraction.chars().filter_map(|c| c.to_digit(10)) {
            let part = (worth * u128::from(digit)).div_ceil(10);
            nano = nano.checked_add(part).ok_or(QuantityError::TooLarge)?;
            worth = worth.div_ceil(10);
        }
        if text.starts_with('-') && nano > 0 {
            return Err(QuantityError::Negative);
        }
        Ok(Self { nano })
    }
}

/// The billionths of a byte of an exponent such as `e6` or `E6`.
fn exponent(suffix: &str) -> Result<u128, QuantityError> {
    let digits = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::NoQuantity)?;
    let exponent: i32 = digits.parse().map_err(|_| QuantityError::NoQuantity)?;
    let power = u32::try_from(exponent.saturating_add(9)).unwrap_or(0);
    10_u128.checked_pow(power).ok_or(QuantityError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn size(text: &str, megabytes: u64) {
        assert_eq!(text.parse::<Quantity>().unwrap().megabytes(), megabytes, "{text}");
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
        use QuantityError::{Negative, NoQuantity, TooLarge};
        let texts = ["notaquantity", "", ".", "1.2.3", "1 M", "1MB", "1m5", "1e", "e6", "1ki", "٣"];
        for text in texts {
            assert_eq!(text.parse::<Quantity>(), Err(NoQuantity), "{text}");
        }
        for text in ["1e999", "9e99", "99999999999999999999999999999999999999999"] {
            assert_eq!(text.parse::<Quantity>(), Err(TooLarge), "{text}");
        }
        assert_eq!("-1n".parse::<Quantity>(), Err(Negative));
    }
}
