//! The real program for Windows, under Wine.

mod bench;
mod contact;
mod keys;
mod real;
mod windows;

pub(crate) use bench::Wine;
