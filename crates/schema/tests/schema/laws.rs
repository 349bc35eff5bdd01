//! Laws that hold for every value.
