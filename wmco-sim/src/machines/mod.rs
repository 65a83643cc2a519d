//! stub
mod boot;
