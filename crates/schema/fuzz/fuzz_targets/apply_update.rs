//! libFuzzer's way into `apply_update`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_schema_fuzz::apply_update(bytes));
