//! libFuzzer's way into `rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_schema_fuzz::rules(bytes));
