#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fake_apiserver_fuzz::inputs::patch_merge(input));
