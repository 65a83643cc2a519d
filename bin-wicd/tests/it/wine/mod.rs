//! The real program for Windows, under Wine.

mod bench;
mod contact;
mod real;
mod windows;

pub(crate) use bench::Wine;
