//! A cluster moves over from the Go operator, and back again: what `docs/src/moving-over.md` and
//! `docs/src/going-back.md` say.
//!
//! # What stands in for the Go operator
//! Nothing here runs it. [`predecessor`] writes into the cluster and onto the hosts what the Go operator
//! leaves there, in its forms: texts of its own, user names encrypted by GnuPG, no record, open folders. Nobody's
//! agent and no operator of ours has been in that cluster before.
//!
//! | of the Go operator | here |
//! | --- | --- |
//! | its kubelet and its daemon run | those of a simulated host, started by its command lines; the daemon's decisions are ours, so what it would do otherwise is not seen |
//! | it works on hosts | [`predecessor`] puts the result there at once, without drains and without its order of steps |
//! | it decides what to do with what we leave | [`reader`] asks the rules of the contract, by code that uses none of our parsers; GnuPG reads user names |
//! | its programs | files that only differ from ours |
//! | the Operator Lifecycle Manager takes its objects away | a person deletes its Pod, and applies our manifests over its rights |
//!
//! Source: `docs/contract/nodes.md`, NODE8 to NODE21, and `docs/contract/lifecycle.md`, LIFE12 and LIFE29.

mod back;
mod begun;
mod gnupg;
mod over;
mod pins;
mod predecessor;
mod reader;
mod scenery;
