//! Sizes and durations in the notations of Kubernetes files.

mod duration;
mod quantity;

pub use duration::{DurationError, GoDuration};
pub use quantity::{Quantity, QuantityError};
