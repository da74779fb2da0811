#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fake_apiserver_fuzz::inputs::certificate_request(input));
