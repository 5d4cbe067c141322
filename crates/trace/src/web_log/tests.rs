//! Whole logs against what their lines are made from.

use freewheel_units::Prng;

use super::*;

fn log(text: &str, lenient: bool) -> Result<WebLog, TraceError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, text).unwrap();
    WebLog::open(&path, lenient)
}

const LINES: &str = "\
a - - [01/Aug/1995:23:59:59 -0400] \"GET /b.html HTTP/1.0\" 200 30
a - - [02/Aug/1995:04:00:01 +0000] \"GET /a.gif HTTP/1.0\" 200 1000 \"-\" \"a browser\"
a - - [02/Aug/1995:00:00:01 -0400] \"GET /a.gif HTTP/1.0\" 200 900
a - - [02/Aug/1995:00:00:00 -0400] \"HEAD /a.gif HTTP/1.0\" 200 0
a - - [02/Aug/1995:00:00:00 -0400] \"GET /a.gif HTTP/1.0\" 304 -
a - - [02/Aug/1995:00:00:00 -0400] \"GET /b.html\" 200 -
a - - [02/Aug/1995:00:00:00 -0400] \"GET /b.html HTTP/1.0\" 200 50
";

fn file(name: &str, bytes: u64) -> WebFile {
    WebFile { name: name.into(), bytes, is_whole: true }
}

#[test]
fn requests_ordered_and_spread_within_seconds() {
    let log = log(LINES, false).unwrap();
    let times: Vec<u64> = log.requests.iter().map(|request| request.arrival.ns()).collect();
    assert_eq!(times, [0, SECOND_NS, 2 * SECOND_NS, 2 * SECOND_NS + SECOND_NS / 2]);
    let files: Vec<u32> = log.requests.iter().map(|request| request.file).collect();
    assert_eq!(files, [0, 0, 1, 1]);
    assert_eq!(log.files, [file("/b.html", 50), file("/a.gif", 1000)]);
    let left_out = LeftOut { other_methods: 1, other_statuses: 1, without_bytes: 1, malformed: 0 };
    assert_eq!((log.left_out, log.parts), (left_out, PartAnswers::default()));
}

#[test]
fn times_finer_than_seconds_stay() {
    let line = |time: &str| {
        format!("{{\"ts\":{time},\"method\":\"GET\",\"uri\":\"/a\",\"size\":4,\"status\":200}}\n")
    };
    let log = log(&["7.25", "9", "8.5", "9"].map(line).concat(), false).unwrap();
    let times: Vec<u64> = log.requests.iter().map(|request| request.arrival.ns()).collect();
    assert_eq!(times, [0, 1_250_000_000, 1_750_000_000, 1_750_000_000]);
}

#[test]
fn malformed_line_named_or_counted() {
    let text = format!("{LINES}a - - [2 August] \"GET /a HTTP/1.0\" 200 1\n");
    let says = log(&text, false).unwrap_err().to_string();
    assert!(says.contains("line 8: time is `2 August`"), "{says}");
    assert_eq!(log(&text, true).unwrap().left_out.malformed, 1);
}

#[test]
fn wikipedia_numbers_are_names() {
    let text = "relative_unix\thashed_path_query\timage_type\tresponse_size\ttime_firstbyte\n\
                7\t-12\tjpeg\t100\t0.01\n9\t5\tpng\t0\t0.01\n8\t-12\tjpeg\t120\t0.2\n";
    for text in [text.to_owned(), text.replace('\t', " "), text.replace('\t', "   ")] {
        let log = log(&text, false).unwrap();
        assert_eq!(log.files, [file("-12", 120)]);
        assert_eq!((log.requests.len(), log.left_out.without_bytes), (2, 1));
        assert_eq!(log.requests[1].arrival.ns(), SECOND_NS);
    }
    // A type may be missing in a line.
    let log_of = log(&text.replace("\tpng\t0", "\t-\t7"), false).unwrap();
    assert_eq!(log_of.requests.len(), 3);
    // Columns of whole numbers are a block trace.
    for trace in ["100 0 4096 8 1\n200 0 8192 8 1\n", "0\t795128\t8\t1\n9\t26136\t8\t0\n"] {
        for trace in [trace.to_owned(), trace.replace(' ', "\t"), trace.replace('\t', " ")] {
            let says = log(&trace, false).unwrap_err().to_string();
            assert!(says.contains("is no web log"), "{says}");
        }
    }
}

#[test]
fn answer_larger_than_files_breaks_format() {
    let line = |bytes: u64| {
        format!("a - - [01/Aug/1995:00:00:00 -0400] \"GET /a HTTP/1.0\" 200 {bytes}\n")
    };
    let text = line(5) + &line(u64::MAX);
    let says = log(&text, false).unwrap_err().to_string();
    assert!(says.contains("line 2") && says.contains("more than any file has"), "{says}");
    let rest = log(&text, true).unwrap();
    assert_eq!((rest.left_out.malformed, rest.files), (1, vec![file("/a", 5)]));
}

#[test]
fn partial_answers_give_least_file_size() {
    let line = |path: &str, status: u32, bytes: u64| {
        format!("a - - [01/Aug/1995:00:00:00 -0400] \"GET {path} HTTP/1.0\" {status} {bytes}\n")
    };
    let lines = [
        line("/film", 206, 700),
        line("/film", 206, 1000),
        line("/page", 206, 20),
        line("/page", 200, 90),
        line("/film", 206, 0),
        line("/film", 416, 10),
    ];
    let log = log(&lines.concat(), false).unwrap();
    let film = WebFile { is_whole: false, ..file("/film", 1000) };
    assert_eq!(log.files, [film, file("/page", 90)]);
    assert_eq!(log.parts, PartAnswers { answers: 3, files: 1 });
    assert_eq!(
        (log.requests.len(), log.left_out.without_bytes, log.left_out.other_statuses),
        (4, 1, 1)
    );
}

/// A request as a test makes it.
struct Made {
    second: u64,
    site: &'static str,
    path: String,
    bytes: u64,
    status: u32,
}

fn made(prng: &mut Prng) -> Made {
    const SITES: [&str; 3] = ["one.example", "two.example:8080", "203.0.113.80"];
    // Sites that are names are more than those that are addresses.
    let site = SITES[prng.below(5) as usize % 3];
    Made {
        second: prng.below(40),
        site,
        path: format!("/{}", prng.below(4)),
        bytes: 1 + prng.below(5000),
        status: [200, 206, 304][prng.below(3) as usize],
    }
}

/// The line of a request in each layout that names the site, and in one that does not.
fn lines_of(made: &Made) -> [String; 8] {
    let Made { second, site, path, bytes, status } = made;
    let time = format!("[05/Jan/2024:00:00:{second:02} +0000]");
    let request = format!("\"GET {path} HTTP/1.1\" {status} {bytes}");
    [
        format!("192.0.2.1 - - {time} {request} \"-\" \"x\""),
        format!("{site} 192.0.2.1 - - {time} {request} \"-\" \"x\""),
        format!("{site} 2001:db8::1 - frank van dyk {time} {request}"),
        format!("{site} - 192.0.2.1 - - {time} {request}"),
        format!("client.example - - {time} {request} {site}"),
        format!("192.0.2.1 - - {time} {request} \"-\" \"x y\" \"198.51.100.7\" \"{site}\" 0.002"),
        format!("2024-01-05 00:00:{second:02} GET {path} - {site} {status} {bytes}"),
        format!(
            "{{\"ts\":{}.0,\"request\":{{\"method\":\"GET\",\"host\":\"{site}\",\"uri\":\"{path}\"}},\"size\":{bytes},\"status\":{status}}}",
            1_704_412_800 + second
        ),
    ]
}

/// Requests, the largest answer, and whether it was sent whole, by name of the file.
type Files = BTreeMap<String, (u64, u64, bool)>;

fn files(log: &WebLog) -> Files {
    let mut files = Files::new();
    for request in &log.requests {
        let WebFile { name, bytes, is_whole } = log.files[request.file as usize].clone();
        files.entry(name).or_insert((0, bytes, is_whole)).0 += 1;
    }
    files
}

#[test]
fn layouts_give_same_files_and_requests() {
    let prng = &mut Prng::new(1, "web logs");
    for _ in 0..40 {
        let all: Vec<Made> = (0..120).map(|_| made(prng)).collect();
        let expected = |has_sites: bool| {
            let mut files = Files::new();
            for Made { site, path, bytes, status, .. } in &all {
                if *status == 304 {
                    continue;
                }
                let site = site.trim_end_matches(":8080");
                let name = if has_sites { format!("{site} {path}") } else { path.clone() };
                let (count, most, is_whole) = files.entry(name).or_default();
                *count += 1;
                *most = (*most).max(*bytes);
                *is_whole |= *status == 200;
            }
            files
        };
        for layout in 0..8 {
            let head = "#Fields: date time cs-method cs-uri-stem cs-uri-query cs-host sc-status sc-bytes\n";
            let lines: Vec<String> =
                all.iter().map(|made| lines_of(made)[layout].clone() + "\n").collect();
            let head = if layout == 6 { head } else { "" };
            let text = format!("{head}{}", lines.concat());
            let log = log(&text, false).unwrap();
            assert_eq!(files(&log), expected(layout != 0), "{}", lines[0]);
            let mut seconds: Vec<u64> =
                all.iter().filter(|made| made.status != 304).map(|made| made.second).collect();
            seconds.sort_unstable();
            let first = seconds[0];
            let arrivals =
                log.requests.iter().map(|request| request.arrival.ns() / SECOND_NS + first);
            assert!(arrivals.eq(seconds), "{}", lines[0]);
        }
    }
}

#[test]
fn single_site_stays_out_of_names() {
    let line = |site: &str, path: &str| {
        format!("{site} 192.0.2.1 - - [05/Jan/2024:00:00:00 +0000] \"GET {path} HTTP/1.1\" 200 5\n")
    };
    let one = log(&[line("One.example", "/a"), line("one.example", "/A")].concat(), false).unwrap();
    assert_eq!(one.files, [file("/a", 5), file("/A", 5)]);
    // A log of one site behind that of another server.
    let plain = line("one.example", "/a").replace("one.example ", "");
    let both = log(&[line("one.example:80", "/a"), plain].concat(), false).unwrap();
    assert_eq!(both.files, [file("one.example /a", 5), file("/a", 5)]);
    assert_eq!((one.sites.len(), both.sites), (0, vec!["one.example".to_owned()]));
    // Two ports of a site lead to one file.
    let ports = [
        line("one.example:80", "/a"),
        line("one.example:443", "/a"),
        line("two.example:443", "/a"),
    ];
    let ports = log(&ports.concat(), false).unwrap();
    assert_eq!(ports.files, [file("one.example /a", 5), file("two.example /a", 5)]);
    assert_eq!(ports.sites, ["one.example", "two.example"]);
}

#[test]
fn changed_columns_within_log_followed() {
    let text = "#Version: 1.0\n#Date: 2024-01-05 00:00:00\n#Fields: time cs-method cs-uri-stem sc-status sc-bytes\n\
                00:00:01 GET /a 200 10\n#Fields: sc-bytes sc-status cs-uri-stem cs-method time\n20 200 /a GET 00:00:03\n";
    let log = log(text, false).unwrap();
    assert_eq!(log.files, [file("/a", 20)]);
    assert_eq!(log.requests[1].arrival.ns(), 2 * SECOND_NS);
}

proptest::proptest! {
    #[test]
    fn damaged_line_is_entry_or_fault(at in 0..150usize, byte: u8, cut in 0..160usize) {
        let made = Made { second: 7, site: "one.example", path: "/a".into(), bytes: 5, status: 200 };
        let mut columns = w3c::Columns::default();
        columns.take_header(b"#Fields: date time cs-method cs-uri-stem cs-uri-query cs-host sc-status sc-bytes");
        let layouts = [
            LogLayout::Common(virtual_host::HostPlace::First),
            LogLayout::Common(virtual_host::HostPlace::Behind(3)),
            LogLayout::Wikipedia,
            LogLayout::W3c(columns),
            LogLayout::Json,
        ];
        for line in lines_of(&made).into_iter().chain(["18446744073709551615\t1\tpng\t5\t0.1".into()]) {
            let mut bytes = line.into_bytes();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(cut);
            for layout in &layouts {
                if let Ok(Entry::Request(asked)) = layout.parse(&bytes) {
                    proptest::prop_assert!(asked.time_ns.checked_add(SECOND_NS).is_some());
                }
            }
            let _ = layout::looks_like(&bytes);
            let _ = LogLayout::of(&bytes);
        }
    }
}

#[test]
fn non_web_log_refused_with_remedy() {
    let text = "a - - [01/Aug/1995:23:59:59 -0400] \"GET /b.html HTTP/1.0\" 404 30\n";
    let says = log(text, false).unwrap_err().to_string();
    assert!(says.contains("none of its 1 lines"), "{says}");
    for (text, texts) in [
        ("1,2,3\n", &["no web log", "Common"][..]),
        (
            "#Fields: date time cs-uri-stem\n2024-01-05 00:00:01 /a\n",
            &["no web log", "W3C Extended", "does not name cs-method, sc-status, sc-bytes"],
        ),
        (
            "{\"ts\":1,\"uri\":\"/a\",\"method\":\"GET\",\"status\":200}\n",
            &["no web log", "JSON lines without a key for size"],
        ),
        ("192.0.2.1 GET /a 0.003\n", &["no web log", "a log of requests"]),
    ] {
        let says = log(text, false).unwrap_err().to_string();
        assert!(texts.iter().all(|text| says.contains(text)), "{says}");
    }
}
