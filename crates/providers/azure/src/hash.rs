//! FNV hashes that stand in names and annotations, so that they must come out the same for ever.

/// FNV-1 with 64 bits: multiply, then xor.
pub(crate) fn fnv1_64(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| hash.wrapping_mul(PRIME) ^ u64::from(*byte))
}

/// FNV-1a with 32 bits: xor, then multiply.
pub(crate) fn fnv1a_32(bytes: &[u8]) -> u32 {
    const OFFSET_BASIS: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(PRIME))
}

/// The last six digits of a number in base 36.
pub(crate) fn six_digits(mut number: u64) -> String {
    let mut digits = [0_u8; 6];
    for digit in digits.iter_mut().rev() {
        let value = u8::try_from(number % 36).unwrap_or_default();
        *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
        number /= 36;
    }
    digits.iter().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_published_functions() {
        assert_eq!(fnv1_64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1_64(b"a"), 0xaf63_bd4c_8601_b7be);
        assert_eq!(fnv1a_32(b""), 0x811c_9dc5);
        assert_eq!(fnv1a_32(b"a"), 0xe40c_292c);
    }

    #[test]
    fn digits_are_those_of_base_36_with_leading_zeros() {
        assert_eq!(six_digits(0), "000000");
        assert_eq!(six_digits(35), "00000z");
        assert_eq!(six_digits(36), "000010");
        assert_eq!(six_digits(fnv1_64(b"3456789")), "zc32rh");
    }
}
