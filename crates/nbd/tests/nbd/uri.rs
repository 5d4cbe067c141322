//! URIs: the forms of the document, round trips, and errors of wrong ones.

use freewheel_nbd::{Address, Uri};
use proptest::prelude::*;

fn tcp(host: &str, port: u16, export: &str) -> Uri {
    let address = Address::Tcp { host: host.into(), port };
    Uri { tls: false, address, export: export.into(), tls_hostname: None, tls_certificates: None }
}

fn unix(socket: &str, export: &str) -> Uri {
    Uri { address: Address::Unix { socket: socket.into() }, ..tcp("", 0, export) }
}

#[test]
fn uri_reads_documented_forms() {
    let cases = [
        ("nbd://example.com:1234/export", tcp("example.com", 1234, "export")),
        ("nbd://example.com/disk", tcp("example.com", 10809, "disk")),
        ("nbd://example.com/", tcp("example.com", 10809, "")),
        ("nbd://example.com", tcp("example.com", 10809, "")),
        ("nbd://example.com//disk", tcp("example.com", 10809, "/disk")),
        ("nbd://example.com/hello%20world", tcp("example.com", 10809, "hello world")),
        ("nbd:///disk", tcp("localhost", 10809, "disk")),
        ("nbd://[::1]:7/", tcp("::1", 7, "")),
        ("nbd://[fe80::1]/a/b", tcp("fe80::1", 10809, "a/b")),
        ("nbd+unix:///disk?socket=sock", unix("sock", "disk")),
        ("nbd+unix:///?socket=%00/abstract", unix("\0/abstract", "")),
        ("NBD+UNIX://?socket=/run/a%26b", unix("/run/a&b", "")),
        ("nbds://h/e", Uri { tls: true, ..tcp("h", 10809, "e") }),
        (
            "nbds+unix:///e?socket=s&tls-hostname=h",
            Uri { tls: true, tls_hostname: Some("h".into()), ..unix("s", "e") },
        ),
        (
            "nbds://h/e?tls-certificates=/etc/pki",
            Uri { tls: true, tls_certificates: Some("/etc/pki".into()), ..tcp("h", 10809, "e") },
        ),
    ];
    for (text, uri) in cases {
        assert_eq!(text.parse(), Ok(uri), "{text}");
    }
}

#[test]
fn uri_errors_name_what_is_allowed() {
    let cases = [
        ("http://h/", "it must begin with nbd://, nbds://, nbd+unix:// or nbds+unix://"),
        ("disk", "it must begin with nbd://, nbds://, nbd+unix:// or nbds+unix://"),
        ("nbd+unix:///disk", "it lacks the socket: append ?socket=PATH"),
        ("nbd+unix:///disk?socket=", "the socket's path is empty"),
        (
            "nbd+unix://disk?socket=s",
            "\"disk\" is in the place of the authority, which must be empty: three slashes, then the export's name",
        ),
        ("nbd://h/?socket=s", "a socket needs the scheme nbd+unix or nbds+unix"),
        ("nbd://h:70000/", "port \"70000\" is not one of 0 to 65535"),
        ("nbd://[::1/", "an IPv6 address stands in brackets, before a colon or alone"),
        ("nbd://me@h/", "a user name is not supported: leave out what is before the @"),
        (
            "nbd://h/%2",
            "the export's name: % must be followed by two hexadecimal digits; itself is %25",
        ),
        ("nbd://h/%ff", "the export's name is not UTF-8"),
        ("nbd://h/%00", "the export's name has a NUL"),
        ("nbd://h/a#b", "a fragment (#) has no meaning here: write %23 for the character"),
        (
            "nbd://h/?tls-type=anon",
            "parameter \"tls-type\" is not supported; socket, tls-hostname and tls-certificates are",
        ),
        (
            "nbds://h/?tls-psk-file=keys",
            "pre-shared keys (tls-psk-file) are not supported: use certificates, \
             tls-certificates=DIR",
        ),
        ("nbd+unix:///?socket=a&socket=b", "parameter \"socket\" is given twice"),
    ];
    for (text, fault) in cases {
        let error = text.parse::<Uri>().unwrap_err();
        assert_eq!(error.to_string(), format!("{text}: {fault}"));
    }
}

fn any_uri() -> impl Strategy<Value = Uri> {
    let host = prop_oneof!["[a-z0-9.-]{1,20}", "[0-9a-f]{1,4}::[0-9a-f]{1,4}"];
    let address = prop_oneof![
        (host, any::<u16>()).prop_map(|(host, port)| Address::Tcp { host, port }),
        ".{1,20}".prop_map(|socket| Address::Unix { socket }),
    ];
    let hostname = proptest::option::of("[a-z.]{0,9}");
    let certificates = proptest::option::of("[a-z/&= ]{0,9}");
    (any::<bool>(), address, "[^\0]{0,20}", hostname, certificates).prop_map(
        |(tls, address, export, tls_hostname, tls_certificates)| Uri {
            tls,
            address,
            export,
            tls_hostname,
            tls_certificates,
        },
    )
}

proptest! {
    #[test]
    fn uri_round_trips_through_text(uri in any_uri()) {
        prop_assert_eq!(uri.to_string().parse(), Ok(uri));
    }

    #[test]
    fn uri_parser_never_panics(text in "(nbds?(\\+unix)?://)?[\\[\\]:/?=&%@a-zé\0]{0,30}") {
        let _ = text.parse::<Uri>();
    }
}
