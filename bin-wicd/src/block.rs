//! The environment block that the Service Control Manager gave this process.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use wmco_services::windows::Inherited;

/// The environment block of this process. Values may be secret.
pub struct Block {
    /// By name in upper case; `None` for what is no text.
    values: BTreeMap<String, Option<String>>,
    /// Names that tell nothing of what other services get.
    own: BTreeSet<String>,
}

impl Block {
    /// From the variables of this process and those, each as `NAME=VALUE`, that the manager gives this
    /// service alone.
    ///
    /// ```
    /// use bin_wicd::block::Block;
    /// use wmco_services::windows::Inherited;
    ///
    /// let block = [("Path", "a;b"), ("HTTP_PROXY", "mine")].map(|(n, v)| (n.into(), v.into()));
    /// let block = Block::new(block.into_iter(), &["http_proxy=mine".to_owned()]);
    /// assert_eq!(block.get("PATH"), Inherited::Value("a;b".to_owned()));
    /// assert_eq!(block.get("NO_PROXY"), Inherited::Nothing);
    /// assert_eq!(block.get("HTTP_PROXY"), Inherited::Unknown);
    /// ```
    pub fn new(variables: impl Iterator<Item = (OsString, OsString)>, own: &[String]) -> Self {
        let values = variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?.to_uppercase(), value.into_string().ok()))
        });
        let own = own.iter().filter_map(|pair| Some(pair.split_once('=')?.0.to_uppercase()));
        Self { values: values.collect(), own: own.collect() }
    }

    /// What all services get of a variable.
    pub fn get(&self, name: &str) -> Inherited {
        let name = name.to_uppercase();
        if self.own.contains(&name) {
            return Inherited::Unknown;
        }
        match self.values.get(&name) {
            None => Inherited::Nothing,
            Some(None) => Inherited::Unknown,
            Some(Some(value)) => Inherited::Value(value.clone()),
        }
    }
}
