//! Arithmetic and order.

use super::Quantity;
use std::cmp::Ordering;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

impl AddAssign<&Quantity> for Quantity {
    /// Adds; zero takes the notation of the other.
    fn add_assign(&mut self, other: &Quantity) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.amount = self.amount.plus(&other.amount);
    }
}

impl SubAssign<&Quantity> for Quantity {
    /// Subtracts; zero takes the notation of the other.
    fn sub_assign(&mut self, other: &Quantity) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.amount = self.amount.plus(&other.amount.clone().negated());
    }
}

impl Add<&Quantity> for Quantity {
    type Output = Self;

    fn add(mut self, other: &Quantity) -> Self {
        self += other;
        self
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self + &other
    }
}

impl Sub<&Quantity> for Quantity {
    type Output = Self;

    fn sub(mut self, other: &Quantity) -> Self {
        self -= other;
        self
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self - &other
    }
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        Self { amount: self.amount.negated(), format: self.format }
    }
}

impl Mul<i64> for Quantity {
    type Output = Self;

    fn mul(self, factor: i64) -> Self {
        Self { amount: self.amount.times(factor), format: self.format }
    }
}

impl<'a> Sum<&'a Quantity> for Quantity {
    fn sum<I: Iterator<Item = &'a Quantity>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Quantity>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}
