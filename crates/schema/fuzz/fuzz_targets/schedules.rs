//! libFuzzer's way into `schedules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_schema_fuzz::schedules(bytes));
