//! A hash of contents that is the same in every process and release: 64-bit FNV-1.

/// Takes in values one after the other; each is told from its neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hasher(u64);

impl Default for Hasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher {
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte);
        }
        self
    }

    /// A text. Its length comes first, so that two texts differ from one that is both.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64).bytes(text.as_bytes())
    }

    /// A number.
    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Yes or no.
    pub(crate) fn flag(&mut self, flag: bool) -> &mut Self {
        self.bytes(&[u8::from(flag)])
    }

    /// A value that may be absent.
    pub(crate) fn maybe(&mut self, text: Option<&str>) -> &mut Self {
        self.flag(text.is_some()).text(text.unwrap_or_default())
    }

    /// Several values, in their order.
    pub(crate) fn texts<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> &mut Self {
        let texts: Vec<&str> = texts.into_iter().collect();
        self.number(texts.len() as u64);
        for text in texts {
            self.text(text);
        }
        self
    }

    /// The hash of everything so far.
    pub(crate) const fn finish(self) -> u64 {
        self.0
    }
}

/// The hash of a text alone.
pub(crate) fn of_text(text: &str) -> u64 {
    Hasher::default().bytes(text.as_bytes()).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_function() {
        assert_eq!(of_text(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of_text("a"), 0xaf63_bd4c_8601_b7be);
    }

    #[test]
    fn neighbours_do_not_run_together() {
        let of = |texts: &[&str]| Hasher::default().texts(texts.iter().copied()).finish();
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["", "a"]), of(&["a", ""]));
    }
}
