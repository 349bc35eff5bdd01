//! libFuzzer's way into `selectors`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_schema_fuzz::selectors(bytes));
