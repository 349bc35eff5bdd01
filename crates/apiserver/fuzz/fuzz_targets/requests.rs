//! libFuzzer's way into `requests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_apiserver_fuzz::requests(bytes));
