//! Tests of the crate through its public API.

// Clippy lets tests unwrap, and tells them by this attribute.
#[cfg(test)]
mod broken;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod docket;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod form;
#[cfg(test)]
mod further_names;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod machines;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod outcomes;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod told;
#[cfg(test)]
mod truth;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod witnesses;
