//! The real program for Windows, under Wine.

mod bench;
mod windows;

pub(crate) use bench::Wine;
