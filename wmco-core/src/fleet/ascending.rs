//! Iterates over two lists that are sorted by the same address.

use std::cmp::Ordering;
use std::iter::{Peekable, from_fn};

/// Every address of both lists once, with the value of each list.
pub(super) fn side_by_side<'a, A, B>(
    left: impl Iterator<Item = (&'a str, A)>,
    right: impl Iterator<Item = (&'a str, B)>,
) -> impl Iterator<Item = (&'a str, Option<A>, Option<B>)> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (Some((a, _)), Some((b, _))) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let a = if order.is_le() { left.next() } else { None };
        let b = if order.is_ge() { right.next() } else { None };
        let address = a.as_ref().map(|(address, _)| *address);
        let address = address.or(b.as_ref().map(|(address, _)| *address))?;
        Some((address, a.map(|(_, value)| value), b.map(|(_, value)| value)))
    })
}

/// A sorted list for look-ups in ascending order.
pub(super) struct Ascending<I: Iterator> {
    rest: Peekable<I>,
}

impl<'a, T: Copy, I: Iterator<Item = (&'a str, T)>> Ascending<I> {
    pub(super) fn new(list: impl IntoIterator<IntoIter = I>) -> Self {
        Self { rest: list.into_iter().peekable() }
    }

    /// The value at `address`, which must not be less than the previous one.
    pub(super) fn at(&mut self, address: &str) -> Option<T> {
        while self.rest.next_if(|(passed, _)| *passed < address).is_some() {}
        self.rest.peek().filter(|(found, _)| *found == address).map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_comes_once_in_order() {
        let both =
            side_by_side([("a", 1), ("c", 3)].into_iter(), [("b", 'b'), ("c", 'c')].into_iter());
        let expected = [("a", Some(1), None), ("b", None, Some('b')), ("c", Some(3), Some('c'))];
        assert_eq!(both.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_address_may_be_asked_for_twice() {
        let mut list = Ascending::new([("a", 1), ("c", 3), ("d", 4)]);
        let found = ["b", "c", "c", "cc", "d", "e"].map(|address| list.at(address));
        assert_eq!(found, [None, Some(3), Some(3), None, Some(4), None]);
    }
}
