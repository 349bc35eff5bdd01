//! What a user of the library can say, each on the embedded API: one file per concept.

mod claim;
mod ground;
mod turns;
