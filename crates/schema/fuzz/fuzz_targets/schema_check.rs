//! libFuzzer's way into `schema_check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_schema_fuzz::schema_check(bytes));
