//! Base64 as in the data of secrets.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text for some bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let six = (word >> (18 - 6 * digit)) & 63;
            let shown = digit <= chunk.len();
            text.push(if shown { char::from(DIGITS[six as usize]) } else { '=' });
        }
    }
    text
}

/// How many bytes a text stands for; nothing when it is not base64.
pub(crate) fn decoded_len(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let fits = text.len().is_multiple_of(4) && padding <= 2;
    (fits && digits.bytes().all(|byte| DIGITS.contains(&byte))).then(|| text.len() / 4 * 3 - padding)
}

#[cfg(test)]
mod tests {
    use super::{decoded_len, encode};

    #[test]
    fn bytes_become_text_with_padding() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decoded_len(text), Some(bytes.len()));
        }
    }

    #[test]
    fn other_texts_are_not_base64() {
        assert_eq!(decoded_len("a"), None);
        assert_eq!(decoded_len("a-b_"), None);
    }
}
