//! libFuzzer's way into `quantities`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_schema_fuzz::quantities(bytes));
