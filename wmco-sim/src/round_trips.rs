//! Counts what a way costs: waits for an answer that came one after the other.

use std::sync::atomic::{AtomicU64, Ordering};

/// The round trip in which a connection is made; whoever accepts one has been part of it already.
const CONNECT: u64 = 1;

/// The round trips of one connection, for whoever carries its bytes.
///
/// A round trip is a wait of the client: it has seen an answer and sends what it could not have sent
/// before. So what a client sends belongs to the round trip after the last one that it saw an answer
/// of, an answer belongs to the last one that the server has heard of, and a round trip is over when
/// the first answer of it arrives. Whatever overlaps counts once, on all channels together; to make
/// the connection is the first one. A way that takes `t` there and back takes this many `t`.
///
/// The count is exact where the way is long beside what both ends do. On a way that takes no time it
/// is an upper bound: there an answer overtakes requests that had not waited for it.
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
    /// Of a connection that was just made. The server hears of that together with the client's first
    /// words, and speaks then at the earliest.
    pub const fn connected() -> Self {
        Self { seen: AtomicU64::new(CONNECT), heard: AtomicU64::new(CONNECT + 1) }
    }

    /// The one of what the client sends now.
    pub fn of_request(&self) -> u64 {
        self.seen.load(Ordering::Relaxed) + 1
    }

    /// The server gets what was sent in this one.
    pub fn request_arrives(&self, round_trip: u64) {
        self.heard.fetch_max(round_trip, Ordering::Relaxed);
    }

    /// The one of what the server says now.
    pub fn of_answer(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// The client gets what was said in this one; returns whether that ends it.
    pub fn answer_arrives(&self, round_trip: u64) -> bool {
        self.seen.fetch_max(round_trip, Ordering::Relaxed) < round_trip
    }

    /// How many are over.
    pub fn count(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of one round trip, each answered.
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

    /// As a window does: each answer lets one more request go.
    #[test]
    fn a_window_costs_a_round_trip_each_time_it_is_used_up() {
        let way = RoundTrips::connected();
        let mut under_way: Vec<_> = (0..8).map(|_| way.of_request()).collect();
        for _ in 0..3 {
            // All of them arrive before the first answer is back.
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
