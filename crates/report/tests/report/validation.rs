//! The page of a validation.

use std::io::Write;

use freewheel_extract::validate::validate;
use freewheel_report::validation_html;
use freewheel_sim::config::TraceWorkload;

#[test]
fn validation_page_shows_both_distributions() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"R Hit 0 1 300 1000\nW Hit 7 1 20000 1000\n").unwrap();
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let page = validation_html(&validate("tr96", &trace, None).unwrap());
    assert!(page.contains("<svg") && page.contains("writes to the media"));
    assert!(page.contains("Is the rotational phase recoverable?"));
}
