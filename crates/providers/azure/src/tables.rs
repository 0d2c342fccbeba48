//! Tables that are part of the product.

use std::io::Read;

use flate2::read::GzDecoder;

/// A table of ours, unpacked.
pub(crate) fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).expect("the table was packed before it was compiled in");
    text
}
