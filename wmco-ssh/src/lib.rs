//! SSH and SFTP transport to Windows hosts: sessions, host-key pinning, uploads, remote commands.
//!
//! # Not here
//! What to do on a host (`wmco-core`), and doing it there (`wmco-services`).

#![forbid(unsafe_code)]
