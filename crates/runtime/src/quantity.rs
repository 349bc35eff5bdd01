//! Exact resource quantities, and how to get them from the types of k8s-openapi, which keep them as text.
//!
//! ```
//! use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
//! use windlass::quantity;
//!
//! let limit = Quantity("1.5Gi".to_owned());
//! assert_eq!(quantity::value(&limit), Some(1_610_612_736));
//! let both = quantity::parse(&limit)? * 2;
//! assert_eq!(quantity::to_api(&both), Quantity("3Gi".to_owned()));
//! # Ok::<(), windlass::quantity::ParseQuantityError>(())
//! ```

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
pub use windlass_schema::quantity::{Format, ParseQuantityError, Quantity};

/// The quantity in a field of an object.
///
/// # Errors
/// When its text is no quantity, which the API does not let pass.
pub fn parse(quantity: &ApiQuantity) -> Result<Quantity, ParseQuantityError> {
    quantity.0.trim().parse()
}

/// The text of a quantity, for a field of an object.
pub fn to_api(quantity: &Quantity) -> ApiQuantity {
    ApiQuantity(quantity.to_string())
}

/// In whole units, rounded away from zero, at most what 64 bits hold; none if it is no quantity.
pub fn value(quantity: &ApiQuantity) -> Option<i64> {
    parse(quantity).ok().map(|quantity| quantity.value())
}

/// In thousandths, rounded away from zero, at most what 64 bits hold; none if it is no quantity.
pub fn milli_value(quantity: &ApiQuantity) -> Option<i64> {
    parse(quantity).ok().map(|quantity| quantity.milli_value())
}
