//! A persistent vector: clones share everything, and a prefix costs one leaf.
//!
//! *Owns:* the one data structure that logs, projections and model requests have in common.
//! *Never:* locks, I/O, or anything that knows what it holds.
//!
//! A vector is a tree of full leaves and one growing tail. A clone is two counters; the first push after it copies the
//! tail (fewer than 32 values) and nothing else, so a fork of a million events costs what a fork of ten does.
//!
//! ```
//! let mut log: pvec::PVec<u32> = (0..100).collect();
//! let fork = log.first(40);
//! log.push(100);
//! assert_eq!((log.len(), fork.len(), fork.get(39)), (101, 40, Some(&39)));
//! ```

use std::sync::Arc;

const BITS: usize = 5;
const WIDTH: usize = 1 << BITS;

/// An append-only vector whose clones and prefixes share their storage.
#[derive(Clone)]
pub struct PVec<T> {
    root: Option<Arc<Node<T>>>,
    /// Levels of branches above the leaves.
    height: usize,
    /// Values in the tree that count. What lies beyond belongs to a longer vector this one was cut from.
    sealed: usize,
    tail: Arc<Vec<T>>,
}

#[derive(Clone)]
enum Node<T> {
    Branch(Vec<Arc<Node<T>>>),
    Leaf(Vec<T>),
}

impl<T> Default for PVec<T> {
    fn default() -> Self {
        Self { root: None, height: 0, sealed: 0, tail: Arc::default() }
    }
}

impl<T: std::fmt::Debug + Clone> std::fmt::Debug for PVec<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Clone> PVec<T> {
    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.sealed + self.tail.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `index`, in O(log₃₂ n).
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.sealed {
            return self.tail.get(index - self.sealed);
        }
        self.leaf(index)?.get(index % WIDTH)
    }

    /// The last value.
    pub fn last(&self) -> Option<&T> {
        self.get(self.len().checked_sub(1)?)
    }

    /// The first `len` values (all of them if there are fewer): shares all but one leaf, whatever the length.
    pub fn first(&self, len: usize) -> Self {
        let len = len.min(self.len());
        let sealed = len - len % WIDTH;
        let open = self.leaf(sealed).unwrap_or(&self.tail);
        let tail = Arc::new(open[..len - sealed].to_vec());
        match sealed {
            0 => Self { tail, ..Self::default() },
            _ => Self { root: self.root.clone(), height: self.height, sealed, tail },
        }
    }

    /// Appends, in amortised O(1). A tail shared with a clone is copied first.
    pub fn push(&mut self, value: T) {
        let tail = Arc::make_mut(&mut self.tail);
        tail.push(value);
        if tail.len() == WIDTH {
            let leaf = Arc::new(Node::Leaf(std::mem::take(tail)));
            self.seal(leaf);
        }
    }

    /// Every value in order; also from the back.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.iter_from(0)
    }

    /// The values from `start` on.
    pub fn iter_from(&self, start: usize) -> impl DoubleEndedIterator<Item = &T> {
        let start = start.min(self.len());
        let block = start - start % WIDTH;
        (block..self.len()).step_by(WIDTH).flat_map(move |at| {
            let values = if at < self.sealed { self.leaf(at).unwrap_or(&[]) } else { &self.tail[..] };
            &values[start.saturating_sub(at).min(values.len())..]
        })
    }

    fn leaf(&self, index: usize) -> Option<&[T]> {
        if index >= self.sealed {
            return None;
        }
        let mut node = self.root.as_ref()?;
        for level in (1..=self.height).rev() {
            let Node::Branch(children) = &**node else { unreachable!("leaves are at level 0") };
            node = &children[(index >> (BITS * level)) % WIDTH];
        }
        match &**node {
            Node::Leaf(values) => Some(values),
            Node::Branch(_) => unreachable!("branches are above level 0"),
        }
    }

    fn seal(&mut self, leaf: Arc<Node<T>>) {
        let index = self.sealed;
        self.sealed += WIDTH;
        let Some(root) = self.root.take() else {
            self.root = Some(leaf);
            return;
        };
        let full = index == WIDTH << (BITS * self.height);
        let mut root = if full { Arc::new(Node::Branch(vec![root])) } else { root };
        self.height += usize::from(full);
        if self.height == 0 {
            // Cut to nothing sealed and grown again: the old leaf is not ours.
            self.root = Some(leaf);
            return;
        }
        graft(&mut root, self.height, index, leaf);
        self.root = Some(root);
    }
}

/// Hangs `leaf` at `index`, dropping whatever a longer vector had from there on.
fn graft<T: Clone>(node: &mut Arc<Node<T>>, level: usize, index: usize, leaf: Arc<Node<T>>) {
    let Node::Branch(children) = Arc::make_mut(node) else { unreachable!("only branches take a leaf") };
    let slot = (index >> (BITS * level)) % WIDTH;
    if index.is_multiple_of(1 << (BITS * level)) {
        children.truncate(slot);
        children.push((1..level).fold(leaf, |below, _| Arc::new(Node::Branch(vec![below]))));
    } else {
        children.truncate(slot + 1);
        graft(&mut children[slot], level - 1, index, leaf);
    }
}

impl<T: Clone> Extend<T> for PVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl<T: Clone> FromIterator<T> for PVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut all = Self::default();
        all.extend(values);
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any mix of pushes and cuts, beside a plain vector doing the same; every version kept stays as it was.
        #[test]
        fn behaves_like_a_vector(ops in proptest::collection::vec((0usize..3_000, any::<bool>(), 0usize..4_000), 1..12)) {
            let mut versions: Vec<(PVec<usize>, Vec<usize>)> = vec![Default::default()];
            for (grow, from_last, cut) in ops {
                let (mut ours, mut plain) = versions[if from_last { versions.len() - 1 } else { cut % versions.len() }].clone();
                ours.extend(plain.len()..plain.len() + grow);
                plain.extend(plain.len()..plain.len() + grow);
                let short = (ours.first(cut), plain[..cut.min(plain.len())].to_vec());
                versions.extend([(ours, plain), short]);
            }
            for (ours, plain) in &versions {
                prop_assert_eq!(ours.len(), plain.len());
                prop_assert!(ours.iter().eq(plain));
                prop_assert!(ours.iter().rev().eq(plain.iter().rev()));
                for start in [0, 1, 31, 32, 33, 1_023, 1_024, 1_025, plain.len()] {
                    prop_assert!(ours.iter_from(start).eq(&plain[start.min(plain.len())..]), "from {}", start);
                }
                prop_assert_eq!(ours.last(), plain.last());
                prop_assert_eq!(ours.get(plain.len()), None);
            }
        }
    }

    #[test]
    fn a_million_values_and_their_prefixes() {
        let all: PVec<usize> = (0..1_000_000).collect();
        for len in [0, 1, 32, 1_024, 1_056, 32_768, 32_800, 999_999, 2_000_000] {
            let mut cut = all.first(len);
            let len = len.min(1_000_000);
            cut.extend(len..len + 2_100);
            assert!(cut.iter().copied().eq(0..len + 2_100), "{len}");
        }
        assert!((0..1_000_000).step_by(997).all(|n| all.get(n) == Some(&n)));
    }
}
