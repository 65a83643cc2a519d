//! Finds the holders of a name or an address in one look-up, however many there are.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Keys with their holders; keys without holders are removed.
#[derive(Clone, Debug)]
pub(crate) struct Index<K, H> {
    holders: HashMap<K, BTreeSet<H>>,
}

impl<K, H> Default for Index<K, H> {
    fn default() -> Self {
        Self { holders: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash, H: Clone + Ord> Index<K, H> {
    pub(crate) fn add<'k>(&mut self, keys: impl IntoIterator<Item = &'k K>, holder: &H)
    where
        K: 'k,
    {
        for key in keys {
            match self.holders.get_mut(key) {
                Some(holders) => drop(holders.insert(holder.clone())),
                None => drop(self.holders.insert(key.clone(), [holder.clone()].into())),
            }
        }
    }

    pub(crate) fn remove<'k>(&mut self, keys: impl IntoIterator<Item = &'k K>, holder: &H)
    where
        K: 'k,
    {
        for key in keys {
            if let Some(holders) = self.holders.get_mut(key) {
                holders.remove(holder);
                if holders.is_empty() {
                    self.holders.remove(key);
                }
            }
        }
    }

    /// All holders of `key`.
    pub(crate) fn holders<'a, Q>(
        &'a self,
        key: &Q,
    ) -> impl Iterator<Item = &'a H> + use<'a, K, H, Q>
    where
        K: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.holders.get(key).into_iter().flatten()
    }
}
