//! libFuzzer's way into `json_read`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_schema_fuzz::json_read(bytes));
