//! Any text as a configuration file of nanoBench.
#![no_main]

use events::encode::encode;
use events::nanobench::import;
use events::processor::Processor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    match import(&text) {
        Ok(requests) => {
            let processor = Processor::intel(4, 8, 3);
            for request in requests {
                assert!(text[request.at..].starts_with(&request.text));
                let _ = encode(&request, &processor, None).map_err(|error| error.to_string());
            }
        }
        Err(error) => assert!(error.at <= text.len() && text.is_char_boundary(error.at)),
    }
});
