//! libFuzzer's way into `protobuf`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_schema_fuzz::protobuf(bytes));
