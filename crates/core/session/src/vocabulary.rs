use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use llm::Message;

use crate::Payload;

/// The types that logs are read with. It only grows: one that forgot a type would make live logs foreign.
#[derive(Clone, Default)]
pub struct Vocabulary(HashMap<&'static str, &'static Kind, BuildHasherDefault<TagHasher>>);

/// Tags are short, the program's own, and looked up once a line.
#[derive(Clone, Copy, Default)]
struct TagHasher(u64);

/// Two payload types claim one tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two types claim the tag `{0}`")]
pub struct TagTaken(pub &'static str);

/// What one needs to know of a type to read its events.
pub(crate) struct Kind {
    pub tag: &'static str,
    pub id: TypeId,
    pub decisive: bool,
    pub shown: bool,
    pub decode: fn(&str) -> serde_json::Result<Box<dyn Any + Send + Sync>>,
    pub message: fn(&dyn Any) -> Option<Arc<Message>>,
}

/// One [`Kind`] a type, made at compile time.
struct Known<E>(std::marker::PhantomData<E>);

impl<E: Payload> Known<E> {
    const KIND: Kind = Kind {
        tag: E::TAG,
        id: TypeId::of::<E>(),
        decisive: E::DECISIVE,
        shown: E::SHOWN,
        decode: |data| Ok(Box::new(serde_json::from_str::<E>(data)?)),
        message: |payload| payload.downcast_ref::<E>()?.message(),
    };
}

impl Vocabulary {
    /// Adds a type. Adding it again changes nothing.
    pub fn learn<E: Payload>(&mut self) -> Result<(), TagTaken> {
        let kind: &'static Kind = &Known::<E>::KIND;
        match self.0.entry(E::TAG).or_insert(kind).id == kind.id {
            true => Ok(()),
            false => Err(TagTaken(E::TAG)),
        }
    }

    pub(crate) fn kind(&self, tag: &str) -> Option<&'static Kind> {
        self.0.get(tag).copied()
    }
}

impl Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // An odd number whose bits look random, so that every byte reaches the high bits, which the map looks at too.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(SPREAD);
        }
    }
}
