//! The web server's log in `data/weblogs`, against its description.

use std::path::Path;

use freewheel_trace::WebLog;

#[test]
fn web_server_1995_has_described_file_count() {
    let name = "../../data/weblogs/nasa-1995-08-01.log.gz";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let log = WebLog::open(&path, false).unwrap();
    assert_eq!((log.requests.len(), log.files.len()), (27_824, 1731));
    let footprint: u64 = log.files.iter().map(|file| file.bytes).sum();
    assert_eq!(footprint >> 20, 104);
    assert!(log.requests.is_sorted_by_key(|request| request.arrival));
    assert_eq!(log.left_out.malformed, 0);
}
