//! Numbers compared exactly, from their text: no rounding, whatever their size.

use std::cmp::Ordering;

/// A number of the JSON grammar as `0.DIGITS × 10^exponent`, without zeros at either end of the digits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Decimal {
    negative: bool,
    digits: Box<[u8]>,
    exponent: i64,
}

impl Decimal {
    /// Reads a number (RFC 8259, section 6); none for other texts and for exponents beyond 63 bits.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let digits_only = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty()
            || (whole.len() > 1 && whole.starts_with('0'))
            || !digits_only(whole)
            || !digits_only(fraction)
        {
            return None;
        }
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let leading = all.iter().take_while(|digit| **digit == b'0').count();
        let significant = all.get(leading..)?;
        let trailing = significant.iter().rev().take_while(|digit| **digit == b'0').count();
        let digits: Box<[u8]> = significant.get(..significant.len() - trailing)?.into();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        let point = i64::try_from(whole.len()).ok()?.checked_sub(i64::try_from(leading).ok()?)?;
        Some(Self { negative, digits, exponent: exponent.checked_add(point)? })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let magnitude = || self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then_with(|| if self.negative { magnitude().reverse() } else { magnitude() })
    }
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).unwrap_or_else(|| panic!("{text} is a number"))
    }

    #[test]
    fn equal_numbers_are_equal_however_written() {
        for (a, b) in [("1", "1.0"), ("100", "1e2"), ("100", "1E+2"), ("0", "-0"), ("0.1", "1e-1"), ("0", "0e99")] {
            assert_eq!(number(a), number(b), "{a} and {b}");
            assert_eq!(number(a).cmp(&number(b)), Ordering::Equal, "{a} and {b}");
        }
    }

    #[test]
    fn what_a_double_would_round_stays_apart() {
        let rising = [
            "-1e400",
            "-9007199254740993",
            "-9007199254740992",
            "-0.1",
            "0",
            "0.09999999999999999999",
            "0.1",
            "99.999999999999999999",
            "100",
            "100.00000000000000000001",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551616",
            "1e400",
        ];
        for pair in rising.windows(2) {
            assert!(number(pair[0]) < number(pair[1]), "{} < {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn what_json_calls_no_number_is_none() {
        for text in
            ["", "-", "+1", "01", ".5", "5.", "1e", "1e+", "0x10", "1_000", "NaN", " 1", "1e99999999999999999999"]
        {
            assert_eq!(Decimal::parse(text), None, "{text:?}");
        }
    }
}
