//! Counts the round trips of a connection: consecutive waits for an answer.

use std::sync::atomic::{AtomicU64, Ordering};

/// The round trip of connecting; the accepting side has already taken part in it.
const CONNECT: u64 = 1;

/// Counts the round trips of a connection, for code that forwards its bytes.
///
/// A round trip is a wait of the client: it has received an answer and then sends a request that it could not have sent
/// before. So a request belongs to the round trip after the last one answered, an answer belongs to the last one that
/// has reached the server, and a round trip ends when its first answer arrives. Overlapping requests on all channels
/// count once; connecting is the first round trip. With a round-trip time of `t`, the count times `t` is spent waiting.
///
/// The count is exact if latency dominates the time that both ends need. Without latency it is an upper bound: an
/// answer can then overtake requests that have not waited for it.
///
/// ```
/// use wmco_sim::round_trips::RoundTrips;
///
/// let way = RoundTrips::connected();
/// let (first, second) = (way.of_request(), way.of_request());
/// way.request_arrives(first);
/// way.request_arrives(second);
/// way.answer_arrives(way.of_answer());
/// assert_eq!(way.count(), 2, "one to connect, one for both requests");
/// ```
#[derive(Debug)]
pub struct RoundTrips {
    seen: AtomicU64,
    heard: AtomicU64,
}

impl RoundTrips {
    /// Creates the counter of a new connection. The server learns of the connection together with the client's first
    /// bytes, so its first answer comes after those.
    pub const fn connected() -> Self {
        Self { seen: AtomicU64::new(CONNECT), heard: AtomicU64::new(CONNECT + 1) }
    }

    /// Returns the round trip of a request that the client sends now.
    pub fn of_request(&self) -> u64 {
        self.seen.load(Ordering::Relaxed) + 1
    }

    /// Records that a request of this round trip reaches the server.
    pub fn request_arrives(&self, round_trip: u64) {
        self.heard.fetch_max(round_trip, Ordering::Relaxed);
    }

    /// Returns the round trip of an answer that the server sends now.
    pub fn of_answer(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Records that an answer of this round trip reaches the client; returns whether that ends the round trip.
    pub fn answer_arrives(&self, round_trip: u64) -> bool {
        self.seen.fetch_max(round_trip, Ordering::Relaxed) < round_trip
    }

    /// Returns the number of finished round trips.
    pub fn count(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends requests of one round trip and answers each.
    fn go_round(way: &RoundTrips, requests: usize) {
        let sent: Vec<_> = (0..requests).map(|_| way.of_request()).collect();
        for request in sent {
            way.request_arrives(request);
            way.answer_arrives(way.of_answer());
        }
    }

    #[test]
    fn requests_that_wait_for_one_another_count_each() {
        let way = RoundTrips::connected();
        for _ in 0..5 {
            go_round(&way, 1);
        }
        assert_eq!(way.count(), CONNECT + 5);
    }

    #[test]
    fn requests_that_overlap_count_once() {
        let way = RoundTrips::connected();
        go_round(&way, 100);
        assert_eq!(way.count(), CONNECT + 1);
    }

    /// Like a window: each answer permits another request.
    #[test]
    fn a_window_costs_a_round_trip_each_time_it_is_used_up() {
        let way = RoundTrips::connected();
        let mut under_way: Vec<_> = (0..8).map(|_| way.of_request()).collect();
        for _ in 0..3 {
            // All of them arrive before the first answer.
            for request in &under_way {
                way.request_arrives(*request);
            }
            let answer = way.of_answer();
            under_way = under_way
                .iter()
                .map(|_| {
                    way.answer_arrives(answer);
                    way.of_request()
                })
                .collect();
        }
        assert_eq!(way.count(), CONNECT + 3);
    }

    #[test]
    fn what_the_server_says_unasked_is_no_round_trip() {
        let way = RoundTrips::connected();
        go_round(&way, 1);
        let before = way.count();
        assert!(!way.answer_arrives(way.of_answer()));
        assert_eq!(way.count(), before);
    }

    #[test]
    fn what_is_sent_and_not_answered_is_no_round_trip() {
        let way = RoundTrips::connected();
        go_round(&way, 1);
        let before = way.count();
        way.request_arrives(way.of_request());
        assert_eq!(way.count(), before);
    }
}
