use std::io::Read;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;

use freewheel_live::nbd::{Access, Address, Limits, ListenError, Memory, Server, Service, Stop};

use crate::common::{Client, Running};

fn memory(name: &str, size: u64) -> Arc<dyn Service> {
    Arc::new(Memory::new(name, size))
}

#[test]
fn export_found_by_name_or_first() {
    let running =
        Running::new(vec![memory("small", 1 << 20), memory("large", 1 << 30)], Limits::default());
    let size = |name| Client::connect(&running.socket(), name).info.size;
    assert_eq!([size("small"), size("large"), size("")], [1 << 20, 1 << 30, 1 << 20]);
}

#[test]
fn exports_do_not_share_data() {
    let running =
        Running::new(vec![memory("one", 1 << 20), memory("other", 1 << 20)], Limits::default());
    let mut one = Client::connect(&running.socket(), "one");
    let mut other = Client::connect(&running.socket(), "other");
    one.write(4096, &[7; 512], false).unwrap();
    assert_eq!(other.read(4096, 512).unwrap(), [0; 512]);
    assert_eq!(one.read(4096, 512).unwrap(), [7; 512]);
}

fn bind(address: &Address) -> Result<Server, ListenError> {
    Server::bind(
        address,
        Access::default(),
        vec![memory("memory", 1 << 20)],
        Limits::default(),
        |_| {},
    )
}

#[test]
fn public_address_refused_with_remedy() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:10809"] {
        let error = bind(&Address::Tcp(address.parse().unwrap())).err().unwrap().to_string();
        for text in [address, "TLS", "127.0.0.1", "ssh -L"] {
            assert!(error.contains(text), "{error}");
        }
    }
}

#[test]
fn loopback_port_is_served_and_said() {
    let server = bind(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let Address::Tcp(address) = *server.address() else { panic!("{}", server.address()) };
    assert_eq!(server.address().uri("x", false).to_string(), format!("nbd://{address}/x"));
    let stop = Stop::new().unwrap();
    thread::scope(|threads| {
        threads.spawn(|| server.run(&stop).unwrap());
        let mut greeting = [0; 8];
        std::net::TcpStream::connect(address).unwrap().read_exact(&mut greeting).unwrap();
        stop.stop();
        assert_eq!(&greeting, b"NBDMAGIC");
    });
}

#[test]
fn socket_replaced_only_if_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let server = bind(&Address::Unix(path.clone())).unwrap();
    let error = bind(&Address::Unix(path.clone())).err().unwrap();
    assert!(matches!(error, ListenError::InUse { .. }), "{error}");
    assert!(UnixStream::connect(&path).is_ok());
    drop(server);
    assert!(!path.exists());
}

#[test]
fn socket_path_of_other_file_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    std::fs::write(&path, "mine").unwrap();
    assert!(matches!(bind(&Address::Unix(path.clone())), Err(ListenError::NoSocket { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}
