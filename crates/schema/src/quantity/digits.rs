//! Whole numbers of any length, digit by digit: for the few quantities that 128 bits do not hold.

use std::cmp::Ordering;
use std::fmt;

/// A whole number that is not negative. Its first digit is not zero; zero has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digits(Vec<u8>);

impl Digits {
    /// From ASCII digits, of which the first may be zeros.
    pub(super) fn from_text(text: impl Iterator<Item = u8>) -> Self {
        Self(text.map(|digit| digit - b'0').skip_while(|digit| *digit == 0).collect())
    }

    pub(super) fn from_number(number: u128) -> Self {
        Self::from_text(number.to_string().bytes())
    }

    /// The number, if 127 bits hold it.
    pub(super) fn to_number(&self) -> Option<i128> {
        self.0.iter().try_fold(0_i128, |number, digit| number.checked_mul(10)?.checked_add((*digit).into()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of zeros at its end.
    pub(super) fn trailing_zeros(&self) -> usize {
        self.0.iter().rev().take_while(|digit| **digit == 0).count()
    }

    #[must_use]
    pub(super) fn times(self, factor: u64) -> Self {
        let mut carry = 0_u128;
        let mut product: Vec<u8> = Vec::with_capacity(self.len() + 20);
        for digit in self.0.iter().rev() {
            carry += u128::from(*digit) * u128::from(factor);
            product.push((carry % 10) as u8);
            carry /= 10;
        }
        while carry > 0 {
            product.push((carry % 10) as u8);
            carry /= 10;
        }
        Self::from_reversed(product)
    }

    /// With zeros appended: times a power of ten.
    #[must_use]
    pub(super) fn shifted(mut self, zeros: usize) -> Self {
        if !self.0.is_empty() {
            self.0.resize(self.0.len() + zeros, 0);
        }
        self
    }

    /// Without its last digits: divided by a power of ten, rounded up.
    #[must_use]
    pub(super) fn cut(mut self, places: usize) -> Self {
        let kept = self.len().saturating_sub(places);
        let has_rest = self.0[kept..].iter().any(|digit| *digit != 0);
        self.0.truncate(kept);
        if has_rest { self.plus(&Self(vec![1])) } else { self }
    }

    #[must_use]
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut carry = 0;
        let mut sum = Vec::with_capacity(self.len().max(other.len()) + 1);
        for place in 0..self.len().max(other.len()) {
            carry += self.at(place) + other.at(place);
            sum.push(carry % 10);
            carry /= 10;
        }
        sum.push(carry);
        Self::from_reversed(sum)
    }

    /// The difference; the other must not be greater.
    #[must_use]
    pub(super) fn minus(&self, other: &Self) -> Self {
        let mut borrow = 0;
        let mut difference = Vec::with_capacity(self.len());
        for place in 0..self.len() {
            let (from, taken) = (self.at(place), other.at(place) + borrow);
            borrow = u8::from(from < taken);
            difference.push(from + 10 * borrow - taken);
        }
        Self::from_reversed(difference)
    }

    /// Divided by 1024, if nothing is left over.
    pub(super) fn divided_by_1024(&self) -> Option<Self> {
        let mut rest = 0_u32;
        let mut quotient = Vec::with_capacity(self.len());
        for digit in &self.0 {
            rest = rest * 10 + u32::from(*digit);
            quotient.push((rest / 1024) as u8 + b'0');
            rest %= 1024;
        }
        (rest == 0).then(|| Self::from_text(quotient.into_iter()))
    }

    /// The order of two numbers below one: of the digits behind the point.
    pub(super) fn compare_as_fractions(&self, other: &Self) -> Ordering {
        let length = self.len().max(other.len());
        let padded = |digits: &Self, index: usize| digits.0.get(index).copied().unwrap_or(0);
        (0..length)
            .map(|index| padded(self, index).cmp(&padded(other, index)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// The digit at a place, counted from the end.
    fn at(&self, place: usize) -> u8 {
        self.len().checked_sub(place + 1).map_or(0, |index| self.0[index])
    }

    fn from_reversed(mut digits: Vec<u8>) -> Self {
        while digits.last() == Some(&0) {
            digits.pop();
        }
        digits.reverse();
        Self(digits)
    }
}

impl PartialOrd for Digits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Digits {
    fn cmp(&self, other: &Self) -> Ordering {
        self.len().cmp(&other.len()).then_with(|| self.0.cmp(&other.0))
    }
}

impl fmt::Display for Digits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return out.write_str("0");
        }
        let text: String = self.0.iter().map(|digit| char::from(digit + b'0')).collect();
        out.write_str(&text)
    }
}
