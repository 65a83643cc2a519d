//! The real program for Windows, under Wine.

mod bench;
mod real;
mod windows;

pub(crate) use bench::Wine;
