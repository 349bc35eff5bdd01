//! The number of a quantity: an integer times a power of ten, exact at any size.

use super::digits::Digits;
use std::cmp::Ordering;

/// The smallest power of ten that parsing keeps.
pub(super) const NANO: i32 = -9;

/// Any number of fewer digits than this fits in 127 bits.
pub(super) const MOST_DIGITS: usize = 39;

/// Sums are exact as long as they take no more digits than this. Beyond, the smaller part is left out: an exponent of nine digits in
/// a request must not make a number of a billion.
const LONGEST_SUM: i64 = 10_000;

/// More places than this are beyond any floating-point number.
const LARGEST_FLOAT: usize = 320;

#[derive(Debug, Clone)]
pub(super) enum Amount {
    Short {
        value: i128,
        scale: i32,
        /// Whether Kubernetes keeps it in 64 bits, and not as a decimal of any length: CEL shows the difference.
        int64: bool,
    },
    /// What `Short` does not hold.
    Long { negative: bool, digits: Digits, scale: i32 },
}

impl Amount {
    pub(super) const fn whole(value: i64) -> Self {
        Self::scaled(value, 0)
    }

    pub(super) const fn scaled(value: i64, scale: i32) -> Self {
        // `i128::from` is not const.
        Self::Short { value: value as i128, scale, int64: true }
    }

    pub(super) const fn exact(value: i128, scale: i32) -> Self {
        Self::Short { value, scale, int64: false }
    }

    pub(super) fn long(digits: Digits, scale: i32) -> Self {
        match digits.to_number() {
            Some(value) => Self::exact(value, scale),
            None => Self::Long { negative: false, digits, scale },
        }
    }

    pub(super) fn sign(&self) -> Ordering {
        match self {
            Self::Short { value, .. } => value.cmp(&0),
            Self::Long { negative: true, .. } => Ordering::Less,
            Self::Long { .. } => Ordering::Greater,
        }
    }

    pub(super) fn scale(&self) -> i32 {
        match self {
            Self::Short { scale, .. } | Self::Long { scale, .. } => *scale,
        }
    }

    fn is_int64(&self) -> bool {
        matches!(self, Self::Short { int64: true, .. })
    }

    /// The digits without a sign.
    pub(super) fn digits(&self) -> Digits {
        match self {
            Self::Short { value, .. } => Digits::from_number(value.unsigned_abs()),
            Self::Long { digits, .. } => digits.clone(),
        }
    }

    #[must_use]
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Short { value, scale, int64 } => match value.checked_neg() {
                Some(value) => Self::Short { value, scale, int64: int64 && i64::try_from(value).is_ok() },
                None => {
                    Self::Long { negative: false, digits: Digits::from_number(value.unsigned_abs()), scale }
                }
            },
            Self::Long { negative, digits, scale } => Self::Long { negative: !negative, digits, scale },
        }
    }

    #[must_use]
    pub(super) fn plus(&self, other: &Self) -> Self {
        if self.sign().is_eq() || other.sign().is_eq() {
            let mut sum = if other.sign().is_eq() { self.clone() } else { other.clone() };
            if let Self::Short { int64, .. } = &mut sum {
                *int64 = self.is_int64() && other.is_int64();
            }
            return sum;
        }
        self.plus_short(other).unwrap_or_else(|| self.plus_long(other))
    }

    fn plus_short(&self, other: &Self) -> Option<Self> {
        let scale = self.scale().min(other.scale());
        let (one, two) = (self.value_at(scale)?, other.value_at(scale)?);
        let value = one.checked_add(two)?;
        let fits = [one, two, value].into_iter().all(|value| i64::try_from(value).is_ok());
        Some(Self::Short { value, scale, int64: fits && self.is_int64() && other.is_int64() })
    }

    fn plus_long(&self, other: &Self) -> Self {
        let scale = self.scale().min(other.scale());
        let (one, two) = (self.digits(), other.digits());
        let top = top(&one, self.scale()).max(top(&two, other.scale()));
        if top - i64::from(scale) > LONGEST_SUM {
            return if self.compare_magnitude(other).is_ge() { self.clone() } else { other.clone() };
        }
        let aligned = |digits: Digits, own: i32| digits.shifted(usize::try_from(own - scale).unwrap_or(0));
        let (one, two) = (aligned(one, self.scale()), aligned(two, other.scale()));
        let (sum, sign) = match (self.sign() == other.sign(), one >= two) {
            (true, _) => (one.plus(&two), self.sign()),
            (false, true) => (one.minus(&two), self.sign()),
            (false, false) => (two.minus(&one), other.sign()),
        };
        Self::long(sum, scale).with_sign(sign)
    }

    #[must_use]
    pub(super) fn times(&self, factor: i64) -> Self {
        if let Self::Short { value, scale, int64 } = self
            && let Some(value) = value.checked_mul(factor.into())
        {
            return Self::Short { value, scale: *scale, int64: *int64 && i64::try_from(value).is_ok() };
        }
        let product = Self::long(self.digits().times(factor.unsigned_abs()), self.scale());
        product.with_sign(if factor < 0 { self.sign().reverse() } else { self.sign() })
    }

    /// Rounded away from zero to a multiple of a power of ten.
    #[must_use]
    pub(super) fn round_up(self, to: i32) -> Self {
        let Ok(places @ 1..) = u32::try_from(i64::from(to) - i64::from(self.scale())) else { return self };
        match self {
            Self::Short { value, int64, .. } => {
                let value = match 10_i128.checked_pow(places) {
                    Some(unit) => value / unit + value.signum() * i128::from(value % unit != 0),
                    None => value.signum(),
                };
                Self::Short { value, scale: to, int64 }
            }
            Self::Long { negative, digits, .. } => {
                let rounded = Self::long(digits.cut(usize::try_from(places).unwrap_or(usize::MAX)), to);
                if negative { rounded.negated() } else { rounded }
            }
        }
    }

    /// In billionths, unless they are very many: Kubernetes' decimals are, and their floating-point value comes from them.
    #[must_use]
    pub(super) fn in_nanos(self) -> Self {
        if let Some(value) = self.value_at(NANO) {
            return Self::exact(value, NANO);
        }
        match usize::try_from(i64::from(self.scale()) - i64::from(NANO)) {
            Ok(places @ 1..=LARGEST_FLOAT) => {
                Self::long(self.digits().shifted(places), NANO).with_sign(self.sign())
            }
            _ => self,
        }
    }

    /// The number of units of a power of ten, rounded away from zero, at most what 64 bits hold.
    pub(super) fn to_scale(&self, scale: i32) -> i64 {
        let most = if self.sign().is_lt() { i64::MIN } else { i64::MAX };
        let value = match self {
            Self::Short { scale: own, .. } if *own >= scale => self.value_at(scale),
            // One clone, of no more than two words.
            Self::Short { .. } => self.clone().round_up(scale).value_at(scale),
            Self::Long { digits, scale: own, .. } if top(digits, *own) - i64::from(scale) > 20 => None,
            Self::Long { .. } => self.clone().round_up(scale).value_at(scale),
        };
        value.and_then(|value| i64::try_from(value).ok()).unwrap_or(most)
    }

    /// Whether it is a multiple of a power of ten.
    pub(super) fn is_multiple_of(&self, scale: i32) -> bool {
        let Ok(places @ 1..) = u32::try_from(i64::from(scale) - i64::from(self.scale())) else { return true };
        match self {
            Self::Short { value, .. } => match 10_i128.checked_pow(places) {
                Some(unit) => value % unit == 0,
                None => *value == 0,
            },
            Self::Long { digits, .. } => {
                usize::try_from(places).is_ok_and(|places| digits.trailing_zeros() >= places)
            }
        }
    }

    pub(super) fn go_as_int64(&self) -> Option<i64> {
        match self {
            Self::Short { scale: 0.., int64: true, .. } => {
                self.value_at(0).and_then(|value| i64::try_from(value).ok())
            }
            _ => None,
        }
    }

    /// The mantissa as a floating-point number times the power of ten, as Go calculates it.
    pub(super) fn approximate(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // Which is what is asked for.
        let mantissa = match self {
            Self::Short { value: 0, .. } => return 0.0,
            Self::Short { value, .. } => *value as f64,
            Self::Long { negative, digits, .. } => {
                let number = digits.to_string().parse().unwrap_or(f64::INFINITY);
                if *negative { -number } else { number }
            }
        };
        if self.scale() == 0 { mantissa } else { mantissa * power_of_ten(self.scale()) }
    }

    /// The integer that it is with this power of ten, which must not be greater than its own.
    fn value_at(&self, scale: i32) -> Option<i128> {
        let Self::Short { value, scale: own, .. } = self else { return None };
        match u32::try_from(i64::from(*own) - i64::from(scale)).ok()? {
            0 => Some(*value),
            places => value.checked_mul(10_i128.checked_pow(places)?),
        }
    }

    fn with_sign(self, sign: Ordering) -> Self {
        if sign.is_lt() { self.negated() } else { self }
    }

    /// The order without the signs, of amounts that are not zero.
    fn compare_magnitude(&self, other: &Self) -> Ordering {
        let (one, two) = (self.digits(), other.digits());
        let tops = top(&one, self.scale()).cmp(&top(&two, other.scale()));
        tops.then_with(|| one.compare_as_fractions(&two))
    }
}

/// The power of ten just above a number.
fn top(digits: &Digits, scale: i32) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX).saturating_add(scale.into())
}

/// As Go's `math.Pow10`, which multiplies two of its table: the last bit is the same.
fn power_of_ten(exponent: i32) -> f64 {
    let exact = |exponent: i32| format!("1e{exponent}").parse().unwrap_or(f64::INFINITY);
    match exponent {
        0..=308 => exact(exponent / 32 * 32) * exact(exponent % 32),
        -323..0 => exact(exponent / 32 * 32) / exact(-exponent % 32),
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = self.sign();
        if sign != other.sign() || sign.is_eq() {
            return sign.cmp(&other.sign());
        }
        let scale = self.scale().min(other.scale());
        match (self.value_at(scale), other.value_at(scale)) {
            (Some(one), Some(two)) => one.cmp(&two),
            _ if sign.is_lt() => self.compare_magnitude(other).reverse(),
            _ => self.compare_magnitude(other),
        }
    }
}
