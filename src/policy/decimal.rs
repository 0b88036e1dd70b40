//! Numbers compared exactly, from their text: no rounding, whatever their size.

use std::cmp::Ordering;
use std::fmt;

/// Digits that a sum is kept with, before and after the point together.
const WIDTH: usize = 128;

/// A number of the JSON grammar as `0.DIGITS × 10^exponent`, without zeros at either end of the digits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decimal {
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

    /// Whether it is less than 0.
    pub const fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether it can be added to all others of which that is true: at least 0, with 40 digits before the point and 40
    /// behind it. Without a bound, one call with a hair of an amount would leave a sum that nothing can be added to.
    pub fn is_countable(&self) -> bool {
        !self.negative && (self.digits.is_empty() || (self.exponent <= 40 && self.last() >= -40))
    }

    /// The sum of two numbers of at least 0, exactly; none if it takes more than 128 digits.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let (one, two, exponent) = self.aligned(other)?;
        let mut carry = 0;
        let mut digits: Vec<u8> = one
            .iter()
            .zip(&two)
            .rev()
            .map(|(a, b)| {
                let sum = a + b + carry;
                carry = sum / 10;
                sum % 10
            })
            .collect();
        digits.push(carry);
        Some(Self::from_digits(&digits, exponent + 1))
    }

    /// This less another, both of at least 0, exactly; 0 if that would be less. None as for [`Decimal::plus`].
    pub fn minus(&self, other: &Self) -> Option<Self> {
        let (one, two, exponent) = self.aligned(other)?;
        let mut borrow = 0;
        let digits: Vec<u8> = one
            .iter()
            .zip(&two)
            .rev()
            .map(|(a, b)| {
                let taken = b + borrow;
                borrow = u8::from(*a < taken);
                a + 10 * borrow - taken
            })
            .collect();
        Some(if borrow > 0 { Self::from(0) } else { Self::from_digits(&digits, exponent) })
    }

    /// The digits of both over the same places, and the exponent of the first.
    fn aligned(&self, other: &Self) -> Option<(Vec<u8>, Vec<u8>, i64)> {
        if self.negative || other.negative {
            return None;
        }
        let some = [self, other].into_iter().filter(|number| !number.digits.is_empty());
        let high = some.clone().map(|number| number.exponent).max().unwrap_or(0);
        let low = some.map(Self::last).min().unwrap_or(0);
        let width = usize::try_from(high.checked_sub(low)?).ok().filter(|width| *width <= WIDTH)?;
        let over = |number: &Self| {
            let before = usize::try_from(high - number.exponent).unwrap_or(0).min(width);
            let zeros = std::iter::repeat_n(0, before);
            let digits = number.digits.iter().map(|digit| digit - b'0');
            zeros.chain(digits).chain(std::iter::repeat(0)).take(width).collect()
        };
        Some((over(self), over(other), high))
    }

    /// The place after the last digit.
    fn last(&self) -> i64 {
        self.exponent.saturating_sub(i64::try_from(self.digits.len()).unwrap_or(i64::MAX))
    }

    /// From digits 0 to 9, the last one first, and the exponent of the first.
    fn from_digits(reversed: &[u8], exponent: i64) -> Self {
        let leading = reversed.iter().rev().take_while(|digit| **digit == 0).count();
        let trailing = reversed.iter().take_while(|digit| **digit == 0).count();
        if leading == reversed.len() {
            return Self::from(0);
        }
        let significant = reversed.iter().rev().skip(leading).take(reversed.len() - leading - trailing);
        let digits = significant.map(|digit| digit + b'0').collect();
        Self { negative: false, digits, exponent: exponent.saturating_sub(i64::try_from(leading).unwrap_or(i64::MAX)) }
    }
}

impl From<u32> for Decimal {
    fn from(number: u32) -> Self {
        let text = number.to_string();
        let digits = text.trim_end_matches('0').as_bytes().into();
        let exponent = if number == 0 { 0 } else { i64::try_from(text.len()).unwrap_or(i64::MAX) };
        Self { negative: false, digits, exponent }
    }
}

/// In the JSON grammar: written out where it is short, else with an exponent.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = std::str::from_utf8(&self.digits).unwrap_or_default();
        if digits.is_empty() {
            return f.write_str("0");
        }
        if self.negative {
            f.write_str("-")?;
        }
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        let (places, exponent) = (i64::try_from(digits.len()).unwrap_or(i64::MAX), self.exponent);
        match exponent {
            1..=40 if exponent >= places => write!(f, "{digits}{}", zeros(exponent - places)),
            1..=40 => {
                let (whole, fraction) = digits.split_at(usize::try_from(exponent).unwrap_or(0));
                write!(f, "{whole}.{fraction}")
            }
            -40..=0 => write!(f, "0.{}{digits}", zeros(-exponent)),
            _ => write!(f, "{digits}e{}", self.last()),
        }
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
    fn sums_and_differences_are_exact() {
        let (add, sub) =
            (|a: &str, b: &str| number(a).plus(&number(b)), |a: &str, b: &str| number(a).minus(&number(b)));
        for (a, b, sum) in [
            ("0.1", "0.2", "0.3"),
            ("999.99", "0.01", "1000"),
            ("0", "0", "0"),
            ("0", "1.50", "1.5"),
            ("9007199254740993", "0.000000000000000001", "9007199254740993.000000000000000001"),
            ("1e100", "1", &format!("1{}1", "0".repeat(99))),
            ("5e-50", "5e-50", "1e-49"),
        ] {
            assert_eq!(add(a, b).unwrap(), number(sum), "{a} + {b}");
            assert_eq!(add(b, a).unwrap(), number(sum), "{b} + {a}");
            assert_eq!(sub(sum, b).unwrap(), number(a), "{sum} - {b}");
        }
        assert_eq!(sub("1", "1.5"), Some(number("0")));
        for (a, b) in [("1e200", "1"), ("-1", "2"), ("1", "1e-200"), ("1", "1e9000000000000000000")] {
            assert_eq!(add(a, b), None, "{a} + {b}");
        }
        for whole in [0, 1, 10, 100, 4_294_967_295] {
            assert_eq!(Decimal::from(whole), number(&whole.to_string()));
        }
    }

    #[test]
    fn a_number_survives_its_text() {
        for text in
            ["0", "1", "-1", "10", "0.5", "12.5", "100", "1e40", "1e60", "12345e-60", "0.0001", "-0.25", "1e-41"]
        {
            assert_eq!(number(&number(text).to_string()), number(text), "{text}");
        }
        for text in ["0", "1", "-1", "10", "0.5", "12.5", "100", "0.0001", "-0.25"] {
            assert_eq!(number(text).to_string(), text);
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
