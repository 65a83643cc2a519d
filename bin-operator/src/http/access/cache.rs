//! Answers that count for a while.

use std::collections::BTreeMap;

use tokio::time::Instant;
use wmco_core::limits;

/// Values with an end, at most [`limits::CLIENTS_KNOWN`] of them.
pub(super) struct Cache<K, V>(BTreeMap<K, (V, Instant)>);

// Not derived: that would ask for defaults of the keys.
impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Clone + Ord, V: Clone> Cache<K, V> {
    /// What counts at `now`.
    pub(super) fn get(&self, key: &K, now: Instant) -> Option<V> {
        self.0.get(key).filter(|(_, until)| now < *until).map(|(value, _)| value.clone())
    }

    /// Keeps a value; where there are too many, the one goes that would end next.
    pub(super) fn put(&mut self, key: K, value: V, until: Instant) {
        if self.0.len() >= limits::CLIENTS_KNOWN && !self.0.contains_key(&key) {
            let next = self.0.iter().min_by_key(|(_, (_, until))| *until);
            if let Some(next) = next.map(|(key, _)| key.clone()) {
                self.0.remove(&next);
            }
        }
        self.0.insert(key, (value, until));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn many_clients_take_no_more_room() {
        let (mut cache, now) = (Cache::default(), Instant::now());
        let later = |n: u64| now + Duration::from_secs(n);
        for number in 0..3 * limits::CLIENTS_KNOWN as u64 {
            cache.put(number, (), later(number + 1));
        }
        assert_eq!(cache.len(), limits::CLIENTS_KNOWN);
        let last = 3 * limits::CLIENTS_KNOWN as u64 - 1;
        assert_eq!(cache.get(&last, now), Some(()));
        assert_eq!(cache.get(&last, later(last + 1)), None, "it has ended");
    }
}
