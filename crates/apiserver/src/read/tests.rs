//! Lists and watches as clients see them.
