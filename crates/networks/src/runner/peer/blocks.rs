//! The blocks that a peer keeps: so many bytes, and the oldest go first.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use super::id::cid;

/// The most bytes that are kept.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a block costs beside its bytes. Without it, small ones would be without number.
const OVERHEAD: usize = 512;

#[derive(Default)]
pub(super) struct Blocks {
    by_cid: HashMap<String, Bytes>,
    oldest_first: VecDeque<String>,
    cost: usize,
}

impl Blocks {
    /// Keeps a block and gives its name.
    pub(super) fn put(&mut self, block: Bytes) -> String {
        let name = cid(&block);
        if !self.by_cid.contains_key(&name) {
            self.cost += block.len() + OVERHEAD;
            self.by_cid.insert(name.clone(), block);
            self.oldest_first.push_back(name.clone());
        }
        while self.cost > BYTES_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            let size = self.by_cid.remove(&oldest).map_or(0, |block| block.len());
            self.cost -= size + OVERHEAD;
        }
        name
    }

    pub(super) fn get(&self, cid: &str) -> Option<Bytes> {
        self.by_cid.get(cid).cloned()
    }

    pub(super) fn count(&self) -> usize {
        self.by_cid.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_blocks_go_when_there_are_too_many() {
        let mut blocks = Blocks::default();
        let block = |byte: u8| Bytes::from(vec![byte; 1024 * 1024]);
        let names: Vec<String> = (0..100).map(|byte| blocks.put(block(byte))).collect();
        assert_eq!(blocks.get(&names[99]), Some(block(99)));
        assert_eq!(blocks.get(&names[0]), None);
        assert_eq!(blocks.count(), 63);
        assert!(blocks.cost <= BYTES_MAX);
        // What is there already changes nothing.
        blocks.put(block(99));
        assert_eq!((blocks.count(), blocks.oldest_first.len()), (63, 63));
    }

    #[test]
    fn small_blocks_are_bounded_too() {
        let mut blocks = Blocks::default();
        for number in 0..140_000_u32 {
            blocks.put(Bytes::copy_from_slice(&number.to_le_bytes()));
        }
        assert!(blocks.count() < 131_072, "{}", blocks.count());
    }
}
