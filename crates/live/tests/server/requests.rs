use std::thread;

use freewheel_live::nbd::Memory;
use freewheel_nbd::{Command, Errno, Span};
use freewheel_units::Prng;

use crate::common::held::{Held, answer};
use crate::common::{Running, pattern};

#[test]
fn data_read_back_across_piece_borders() {
    let running = Running::of(Memory::new("memory", 8 << 20));
    let mut client = running.client();
    let data = pattern(3 << 20, 1);
    client.write((1 << 20) - 777, &data, false).unwrap();
    assert!(client.read((1 << 20) - 777, 3 << 20).unwrap() == data);
    let span = Span { offset: 1 << 20, length: 1 << 20 };
    let zeroes = Command::WriteZeroes { span, fua: true, no_hole: false, fast: false };
    client.call(zeroes, &[]).result.unwrap();
    assert!(client.read(1 << 20, 1 << 20).unwrap() == vec![0; 1 << 20]);
    assert!(client.read((1 << 20) - 777, 777).unwrap() == data[..777]);
}

#[test]
fn reads_and_writes_match_plain_array() {
    const PIECE: u64 = 1 << 20;
    const SIZE: u64 = 4 * PIECE + 8192;
    let running = Running::of(Memory::new("memory", SIZE));
    let mut client = running.client();
    let mut array = vec![0; SIZE as usize];
    let mut prng = Prng::new(1, "requests");
    for step in 0..400 {
        // Whole pieces, and spans that ignore their borders.
        let length = [512, 4096, 64 << 10, PIECE, PIECE, 3 * PIECE][prng.below(6) as usize];
        let align = if prng.below(2) == 0 { length.min(PIECE) } else { 512 };
        let offset = prng.below((SIZE - length) / align + 1) * align;
        let span = Span { offset, length: length as u32 };
        let part = &mut array[offset as usize..][..length as usize];
        match prng.below(5) {
            0 => {
                client.call(Command::Trim { span, fua: false }, &[]).result.unwrap();
                part.fill(0);
            }
            1 | 2 => {
                part.copy_from_slice(&pattern(length as usize, step));
                client.write(offset, part, false).unwrap();
            }
            _ => assert!(client.read(offset, length as u32).unwrap() == part, "step {step}"),
        }
    }
}

#[test]
fn answer_keeps_data_under_later_writes() {
    let running = Running::of(Memory::new("memory", 8 << 20));
    let (mut slow, mut other) = (running.client(), running.client());
    let before = pattern(8 << 20, 1);
    other.write(0, &before, false).unwrap();
    // More than sockets hold: the rest of it is still to be sent.
    slow.ask(Command::read(0, 8 << 20), &[]);
    assert!(slow.is_told());
    for at in [0, 7 << 20] {
        other.write(at, &pattern(1 << 20, 2 + at), false).unwrap();
    }
    other.write((3 << 20) + 512, &pattern(4096, 4), false).unwrap();
    assert!(slow.reply().data == before);
    assert!(other.read(7 << 20, 1 << 20).unwrap() == pattern(1 << 20, 2 + (7 << 20)));
}

#[test]
fn requests_beyond_end_are_refused() {
    let running = Running::of(Held::default());
    let mut client = running.client();
    // The client's own check would keep it from asking: bytes by hand.
    use std::io::Write;
    let mut head = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0];
    head.extend(u64::MAX.to_be_bytes());
    head.extend((1u64 << 30).to_be_bytes());
    head.extend(1u32.to_be_bytes());
    client.stream.write_all(&head).unwrap();
    let mut reply = [0; 20];
    std::io::Read::read_exact(&mut client.stream, &mut reply).unwrap();
    assert_eq!(reply[8..16], u64::MAX.to_be_bytes());
    assert_eq!(reply[..4], [0x66, 0x8e, 0x33, 0xef]);
}

#[test]
fn answers_come_in_service_order() {
    let held = Held::default();
    let running = Running::of(held.clone());
    let mut client = running.client();
    let cookies: Vec<u64> =
        (0..8).map(|at| client.ask(Command::read(at * 4096, 4096), &[])).collect();
    let mut taken = held.take(8);
    for byte in [3, 0, 7, 1, 6, 2, 5, 4] {
        let at = taken.iter().position(|(command, _)| command.span().offset / 4096 == byte);
        let request = taken.remove(at.unwrap());
        thread::spawn(move || answer(request, byte as u8)).join().unwrap();
        let reply = client.reply();
        assert_eq!(reply.cookie, cookies[byte as usize]);
        assert_eq!(reply.data, vec![byte as u8; 4096]);
    }
}

#[test]
fn request_dropped_by_service_gets_error() {
    let held = Held::default();
    let running = Running::of(held.clone());
    let mut client = running.client();
    client.ask(Command::read(0, 4096), &[]);
    drop(held.take(1));
    assert_eq!(client.reply().result.unwrap_err().errno, Errno::Io);
}

#[test]
fn connections_see_each_others_writes() {
    let running = Running::of(Memory::new("memory", 1 << 20));
    let (mut one, mut other) = (running.client(), running.client());
    one.write(512, &[9; 1024], true).unwrap();
    assert_eq!(other.read(0, 2048).unwrap()[512..1536], [9; 1024]);
    other.flush().unwrap();
}
