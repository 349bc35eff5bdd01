//! libFuzzer's way into `merges`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_schema_fuzz::merges(bytes));
