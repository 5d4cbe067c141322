//! TLS: our client and our server, and those in between who would rather have none.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use freewheel_live::nbd::{
    Access, Address, ClientLimits, Limits, ListenError, Memory, Server, ServerTls, Stop, TlsError,
};
use freewheel_nbd::{Command, Uri};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, SerialNumber, date_time_ymd,
};

use super::Asker;
use crate::common::held::{Held, answer};
use crate::common::pki::Pki;
use crate::common::{Client, Running, eventually, pattern};

fn load(pki: &Pki) -> ServerTls {
    ServerTls::load(pki.path(), false).unwrap()
}

fn memory(tls: ServerTls) -> Running {
    let disk = Arc::new(Memory::new("memory", 8 << 20));
    Running::encrypted(vec![disk], Limits::default(), Some(tls))
}

/// Connects with TLS and the certificates of this folder.
fn with(uri: &Uri, folder: &Path) -> Uri {
    let tls_certificates = Some(folder.to_str().unwrap().into());
    Uri { tls: true, tls_certificates, ..uri.clone() }
}

/// Error of a connection that fails, or does not answer.
fn refusal(uri: &Uri) -> String {
    let asker = match Asker::connect(uri, ClientLimits::default()) {
        Err(error) => return error.to_string(),
        Ok(asker) => asker,
    };
    if let Err(refused) = asker.client.submit(Command::read(0, 512), &mut Vec::new(), 0) {
        return refused.to_string();
    }
    asker.answer().result.unwrap_err().to_string()
}

#[test]
fn tls_reads_back_written_data() {
    let pki = Pki::new("localhost");
    let running = memory(load(&pki));
    let asker = Asker::of(&with(&running.uri(), pki.path()));
    // Many records, which end anywhere.
    let data = pattern(5_000_000, 1);
    asker.write(77, &data, 0);
    asker.answer().result.unwrap();
    (0..200).for_each(|at| asker.ask(Command::read(77 + at * 20_011, 20_011), at));
    for answer in asker.answers(200) {
        let from = answer.tag as usize * 20_011;
        answer.result.unwrap();
        assert!(answer.data == data[from..from + 20_011]);
    }
    assert!(Asker::of(&running.uri()).read(77, 5_000_000) == data);
    asker.client.close().unwrap();
    assert_eq!(running.stop().broken, 0);
}

#[test]
fn tls_answers_threads_in_any_order() {
    let pki = Pki::new("localhost");
    let held = Held::default();
    let services = vec![Arc::new(held.clone()) as _];
    let running = Running::encrypted(services, Limits::default(), Some(load(&pki)));
    let asker = Asker::of(&with(&running.uri(), pki.path()));
    for round in 0..20 {
        (0..8).for_each(|tag| asker.ask(Command::read(tag << 20, 30_000), tag));
        let taken = held.take(8).into_iter().rev();
        let answering = thread::spawn(move || taken.for_each(|request| answer(request, round)));
        assert!(asker.answers(8).into_iter().all(|answer| answer.data == vec![round; 30_000]));
        answering.join().unwrap();
    }
}

#[test]
fn tls_refuses_server_of_other_authority() {
    let (pki, other) = (Pki::new("localhost"), Pki::new("localhost"));
    let running = memory(load(&pki));
    let uri = running.uri();
    let stranger = refusal(&with(&uri, &other.anonymous()));
    assert!(stranger.contains("TLS") && stranger.contains("certificate"), "{stranger}");
    let renamed = Uri { tls_hostname: Some("elsewhere".into()), ..with(&uri, pki.path()) };
    let renamed = refusal(&renamed);
    assert!(renamed.contains("NotValidForName") || renamed.contains("not valid for"), "{renamed}");
    let given = Uri { tls_hostname: Some("localhost".into()), ..with(&uri, pki.path()) };
    Asker::of(&given).read(0, 512);
}

#[test]
fn tls_required_refuses_plain_client() {
    let pki = Pki::new("localhost");
    let running = memory(load(&pki).required());
    let error = refusal(&running.uri());
    for text in ["requires TLS", "nbds", "tls-certificates=DIR"] {
        assert!(error.contains(text), "{error}");
    }
    // ERR_TLS_REQD for every option, and the old way in is closed.
    for option in [3_u8, 6, 7, 8, 9, 10] {
        let mut stream = UnixStream::connect(running.socket()).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        let ask = [&[0, 0, 0, 3][..], b"IHAVEOPT\0\0\0", &[option], &[0; 4]].concat();
        stream.write_all(&ask).unwrap();
        let mut reply = [0; 20];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(reply[8..16], [0, 0, 0, option, 0x80, 0, 0, 5], "option {option}");
    }
    let mut stream = UnixStream::connect(running.socket()).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
    assert_eq!(stream.read(&mut [0; 16]).unwrap(), 0);
    Asker::of(&with(&running.uri(), pki.path())).read(0, 512);
}

#[test]
fn tls_client_refuses_plain_server() {
    let pki = Pki::new("localhost");
    let running = Running::of(Memory::new("memory", 1 << 20));
    let error = refusal(&with(&running.uri(), pki.path()));
    assert!(
        error.contains("STARTTLS") && error.contains("without TLS the client sends no request"),
        "{error}"
    );
}

/// Sits between a client and a server, and changes what the server says as it says it.
fn in_between(server: &Path, change: fn(&mut Vec<u8>)) -> (tempfile::TempDir, Uri) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let server = server.to_owned();
    thread::spawn(move || {
        let (client, server) = (listener.accept().unwrap().0, UnixStream::connect(server).unwrap());
        let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut from, &mut to));
        let (mut server, mut client) = (server, client);
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = server.read(&mut buffer) {
            let mut said = buffer[..length].to_vec();
            change(&mut said);
            if client.write_all(&said).is_err() {
                break;
            }
        }
        let _ = client.shutdown(std::net::Shutdown::Both);
        let _ = server.shutdown(std::net::Shutdown::Both);
    });
    (folder, Address::Unix(path).uri("", false))
}

fn is_starttls_ack(said: &[u8]) -> bool {
    said.len() == 20 && said[8..16] == [0, 0, 0, 5, 0, 0, 0, 1]
}

#[test]
fn tls_resists_downgrade_by_man_in_middle() {
    let pki = Pki::new("localhost");
    let running = memory(load(&pki));
    // The answer yes becomes a no.
    let refuse = |said: &mut Vec<u8>| {
        if is_starttls_ack(said) {
            said[12] = 0x80;
        }
    };
    let (_folder, uri) = in_between(&running.socket(), refuse);
    let error = refusal(&with(&uri, pki.path()));
    assert!(error.contains("without TLS the client sends no request"), "{error}");
}

#[test]
fn tls_ignores_text_injected_before_handshake() {
    let pki = Pki::new("localhost");
    let running = memory(load(&pki));
    // To the client: an answer to the GO that it has not asked yet.
    let say_more = |said: &mut Vec<u8>| {
        if is_starttls_ack(said) {
            said.extend(0x0003_e889_0455_65a9_u64.to_be_bytes());
            said.extend([0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0]);
        }
    };
    let (_folder, uri) = in_between(&running.socket(), say_more);
    let error = refusal(&with(&uri, pki.path()));
    assert!(error.contains("TLS handshake"), "{error}");
    // To the server: a LIST behind STARTTLS, which it takes for the handshake and never answers.
    let mut stream = UnixStream::connect(running.socket()).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    let option = |number: u8| [&b"IHAVEOPT\0\0\0"[..], &[number], &[0; 4]].concat();
    stream.write_all(&[&[0, 0, 0, 3][..], &option(5), &option(3)].concat()).unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    assert!(is_starttls_ack(&all[..20]));
    assert!(!all.windows(6).any(|bytes| bytes == b"memory"));
}

#[test]
fn tls_changed_byte_ends_connection() {
    let pki = Pki::new("localhost");
    let running = memory(load(&pki));
    let spoil = |said: &mut Vec<u8>| {
        if said.len() > 3000 {
            said[2000] ^= 1;
        }
    };
    let (_folder, uri) = in_between(&running.socket(), spoil);
    let asker = Asker::of(&with(&uri, &pki.anonymous()));
    asker.ask(Command::read(0, 20_000), 0);
    let error = asker.answer().result.unwrap_err().to_string();
    assert!(error.contains("connection lost") && error.contains("TLS"), "{error}");
}

#[test]
fn tls_verifies_client_authority() {
    let (pki, other) = (Pki::new("localhost"), Pki::new("localhost"));
    let running = memory(ServerTls::load(pki.path(), true).unwrap());
    let uri = running.uri();
    Asker::of(&with(&uri, pki.path())).read(0, 512);
    assert!(refusal(&uri).contains("requires TLS"));
    let anonymous = refusal(&with(&uri, &pki.anonymous()));
    assert!(anonymous.contains("CertificateRequired"), "{anonymous}");
    let stranger = other.path().join("mixed");
    std::fs::create_dir(&stranger).unwrap();
    for (from, name) in [(&pki, "ca-cert"), (&other, "client-cert"), (&other, "client-key")] {
        let name = format!("{name}.pem");
        std::fs::copy(from.path().join(&name), stranger.join(&name)).unwrap();
    }
    let stranger = refusal(&with(&uri, &stranger));
    assert!(stranger.contains("TLS"), "{stranger}");
}

#[test]
fn tls_refuses_revoked_client() {
    let pki = Pki::new("localhost");
    pki.revoke_client();
    let running = memory(ServerTls::load(pki.path(), true).unwrap());
    let error = refusal(&with(&running.uri(), pki.path()));
    assert!(error.contains("Revoked"), "{error}");
}

#[test]
fn tls_refuses_clients_not_currently_valid() {
    type Change = fn(&mut CertificateParams);
    let cases: [(&str, Change, &str); 4] = [
        ("expired", |of| of.not_after = date_time_ymd(2021, 2, 3), "certificate expired"),
        ("early", |of| of.not_before = date_time_ymd(2400, 1, 1), "certificate not valid yet"),
        (
            "a server's",
            |of| of.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth],
            "does not allow extended key usage for client authentication",
        ),
        (
            "an authority's",
            |of| of.is_ca = IsCa::Ca(BasicConstraints::Unconstrained),
            "CaUsedAsEndEntity",
        ),
    ];
    let pki = Pki::new("localhost");
    for (name, change, says) in cases {
        let running = memory(ServerTls::load(pki.path(), true).unwrap());
        let error = refusal(&with(&running.uri(), &pki.client(name, change)));
        assert!(error.contains("TLS: received fatal alert"), "{name}: {error}");
        let notices = || running.notices.lock().unwrap().join("\n");
        assert!(eventually(|| notices().contains(says)), "{name}: {}", notices());
        // Others go on.
        Asker::of(&with(&running.uri(), pki.path())).read(0, 512);
    }
}

#[test]
fn tls_bad_revocation_lists_refuse_clients() {
    let other = Pki::new("localhost");
    type Publish = fn(&Pki, &Pki);
    let cases: [(&str, Publish, bool); 4] = [
        (
            "its own list without it",
            |of, _| of.publish_list(|list| list.revoked_certs.clear()),
            true,
        ),
        ("its own list with it", |of, _| of.publish_list(|_| {}), false),
        (
            "a list out of date",
            |of, _| {
                of.publish_list(|list| {
                    list.revoked_certs.clear();
                    list.next_update = date_time_ymd(2021, 1, 1);
                });
            },
            false,
        ),
        (
            "another authority's list",
            |of, other| of.publish_list_of(other, |list| list.revoked_certs.clear()),
            false,
        ),
    ];
    for (name, publish, is_let_in) in cases {
        let pki = Pki::new("localhost");
        // The client looks at no list.
        let client = pki.client("client", |_| {});
        publish(&pki, &other);
        let running = memory(ServerTls::load(pki.path(), true).unwrap());
        let uri = with(&running.uri(), &client);
        if is_let_in {
            Asker::of(&uri).read(0, 512);
        } else {
            let error = refusal(&uri);
            assert!(error.contains("TLS"), "{name}: {error}");
        }
    }
}

#[test]
fn tls_client_refuses_revoked_server() {
    let pki = Pki::new("localhost");
    let running = memory(load(&pki));
    let uri = with(&running.uri(), pki.path());
    Asker::of(&uri).read(0, 512);
    pki.publish_list(|list| list.revoked_certs[0].serial_number = SerialNumber::from(1));
    let error = refusal(&uri);
    assert!(error.contains("Revoked") || error.contains("revoked"), "{error}");
}

#[test]
fn tls_refuses_crl_file_without_list() {
    let pki = Pki::new("localhost");
    let list = pki.path().join("ca-crl.pem");
    for text in ["", "<html>not found</html>"] {
        std::fs::write(&list, text).unwrap();
        let error = ServerTls::load(pki.path(), true).unwrap_err().to_string();
        assert!(error.contains("ca-crl.pem") && error.contains("at least one list"), "{error}");
    }
    std::fs::remove_file(&list).unwrap();
    std::os::unix::fs::symlink(pki.path().join("gone"), &list).unwrap();
    let error = ServerTls::load(pki.path(), true).unwrap_err().to_string();
    assert!(error.contains("ca-crl.pem") && error.contains("No such file"), "{error}");
    std::fs::remove_file(&list).unwrap();
    ServerTls::load(pki.path(), true).unwrap();
}

#[test]
fn tls_expired_authority_admits_no_client() {
    let pki = Pki::with_authority("localhost", |of| of.not_after = date_time_ymd(2021, 2, 3));
    let error = ServerTls::load(pki.path(), true).unwrap_err().to_string();
    assert!(error.contains("ca-cert.pem") && error.contains("expired on 2021-02-03"), "{error}");
}

#[test]
fn tls_server_refuses_invalid_own_certificate() {
    type Change = fn(&mut CertificateParams);
    let cases: [(Change, &str); 2] = [
        (|of| of.not_after = date_time_ymd(2021, 2, 3), "expired on 2021-02-03 00:00:00 UTC"),
        (
            |of| of.not_before = date_time_ymd(2400, 2, 29),
            "is not valid before 2400-02-29 00:00:00 UTC",
        ),
    ];
    for (change, says) in cases {
        let pki = Pki::new("localhost");
        pki.renew_server("localhost", change);
        let error = ServerTls::load(pki.path(), false).unwrap_err().to_string();
        for text in ["server-cert.pem", says, "renew it"] {
            assert!(error.contains(text), "{error}");
        }
    }
    // Its own authority is judged by the clients.
    let pki = Pki::new("localhost");
    pki.renew_server("localhost", |of| of.is_ca = IsCa::ExplicitNoCa);
    ServerTls::load(pki.path(), true).unwrap();
}

/// A server of this machine at an address that others can reach, if it starts.
fn everywhere(tls: ServerTls) -> Result<Server, ListenError> {
    let services = vec![Arc::new(Memory::new("memory", 1 << 20)) as _];
    let address = Address::Tcp("0.0.0.0:0".parse().unwrap());
    Server::bind(&address, Access::encrypted(tls), services, Limits::default(), |_| {})
}

#[test]
fn tls_public_address_needs_client_certificates() {
    let pki = Pki::new("127.0.0.1");
    let error = everywhere(load(&pki)).err().unwrap();
    assert!(matches!(error, ListenError::ClientsNotVerified { .. }), "{error}");
    let error = error.to_string();
    for text in ["--tls-verify-peer", "ca-cert.pem", "--allow-clients-without-certificate"] {
        assert!(error.contains(text), "{error}");
    }
    let error = everywhere(load(&pki).required()).err().unwrap();
    assert!(matches!(error, ListenError::ClientsNotVerified { .. }), "{error}");
    for (tls, lets_anybody_in) in [
        (ServerTls::load(pki.path(), true).unwrap(), false),
        (load(&pki).allow_clients_without_certificate(), true),
    ] {
        let server = everywhere(tls).unwrap();
        assert!(server.tls_is_required());
        let Address::Tcp(at) = *server.address() else { panic!("{}", server.address()) };
        let uri: Uri = format!("nbd://127.0.0.1:{}", at.port()).parse().unwrap();
        let stop = Stop::new().unwrap();
        thread::scope(|threads| {
            threads.spawn(|| server.run(&stop).unwrap());
            let plain = refusal(&uri);
            let anonymous = with(&uri, &pki.anonymous());
            let anonymous = if lets_anybody_in {
                Asker::of(&anonymous).read(0, 512);
                None
            } else {
                Some(refusal(&anonymous))
            };
            let read = Asker::of(&with(&uri, pki.path())).read(0, 4096);
            stop.stop();
            assert!(plain.contains("requires TLS"), "{plain}");
            assert!(anonymous.is_none_or(|error| error.contains("CertificateRequired")));
            assert_eq!(read, vec![0; 4096]);
        });
    }
}

#[test]
fn tls_unfinished_handshake_is_cut_off() {
    let pki = Pki::new("localhost");
    let limits = Limits { negotiation: Duration::from_millis(500), ..Limits::default() };
    let disk = Arc::new(Memory::new("memory", 1 << 20));
    let running = Running::encrypted(vec![disk], limits, Some(load(&pki)));
    let mut stream = UnixStream::connect(running.socket()).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x05\0\0\0\0").unwrap();
    stream.read_exact(&mut [0; 20]).unwrap();
    // The beginning of a record of 16 KiB, byte by byte.
    stream.write_all(&[22, 3, 1, 0x40, 0]).unwrap();
    let sent = (0..100).take_while(|_| {
        thread::sleep(Duration::from_millis(20));
        stream.write_all(&[1]).is_ok()
    });
    let sent = sent.count();
    assert!(sent < 100, "it may go on for ever");
    Client::connect(&running.socket(), "").read(0, 512).unwrap();
    let notices = || running.notices.lock().unwrap().join("\n");
    assert!(eventually(|| notices().contains("500ms")), "{}", notices());
}

#[test]
fn tls_bad_certificates_named_by_file() {
    let pki = Pki::new("localhost");
    let message = |error: TlsError| error.to_string();
    let load = |path: &Path, verify| ServerTls::load(path, verify).map(|_| ()).map_err(message);
    let empty = tempfile::tempdir().unwrap();
    let missing = load(empty.path(), false).unwrap_err();
    assert!(missing.contains("server-cert.pem") && missing.contains("No such file"), "{missing}");
    std::fs::write(pki.path().join("server-key.pem"), "no key").unwrap();
    let nonsense = load(pki.path(), false).unwrap_err();
    assert!(nonsense.contains("server-key.pem") && nonsense.contains("private key"), "{nonsense}");
    let client_key = pki.path().join("client-key.pem");
    std::fs::copy(client_key, pki.path().join("server-key.pem")).unwrap();
    let wrong = load(pki.path(), false).unwrap_err();
    assert!(wrong.contains("server-key.pem"), "{wrong}");
    let none: Uri = "nbds+unix:///?socket=/nowhere".parse().unwrap();
    let none = refusal(&none);
    assert!(none.contains("tls-certificates=DIR") && none.contains("pre-shared"), "{none}");
}
