//! Pairs causes with their effects, for the arrows between them.

use std::collections::BTreeMap;

/// Flows that have begun and not ended, by what identifies them in the trace.
///
/// A second cause before the effect joins the first: an interrupt line that is high, and a message that has not been
/// read, can't be told twice.
pub struct Flows<K> {
    open: BTreeMap<K, u64>,
}

impl<K: Ord> Flows<K> {
    /// No flow.
    pub fn new() -> Self {
        Self { open: BTreeMap::new() }
    }

    /// A cause: its flow, which gets the number that `number` makes if it is a new one.
    pub fn begin(&mut self, key: K, number: impl FnOnce() -> u64) -> u64 {
        *self.open.entry(key).or_insert_with(number)
    }

    /// A step on the way: the flow that it belongs to. `None` if the cause is not in the trace.
    pub fn step(&self, key: &K) -> Option<u64> {
        self.open.get(key).copied()
    }

    /// The effect: the flow, which has ended now.
    pub fn end(&mut self, key: &K) -> Option<u64> {
        self.open.remove(key)
    }
}
