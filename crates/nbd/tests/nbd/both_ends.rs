//! A client session and a server session talk to each other, over streams cut anywhere.

use std::collections::VecDeque;

use freewheel_nbd::client::{self, ExportInfo};
use freewheel_nbd::server::{self, Ticket};
use freewheel_nbd::{
    BlockSizes, Command, Errno, Export, Extent, Features, Limits, OptionCode, OptionError, Span,
};
use freewheel_units::Prng;
use proptest::prelude::*;

/// The shape of a conversation, apart from its contents.
struct World {
    prng: Prng,
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    /// The longest piece that a stream hands over at once.
    piece_max: usize,
}

impl World {
    fn new(seed: u64, piece_max: usize) -> Self {
        let (to_server, to_client) = (VecDeque::new(), VecDeque::new());
        Self { prng: Prng::new(seed, "both ends"), to_server, to_client, piece_max }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.prng.below(bound as u64) as usize
    }

    fn piece(&mut self, of_server: bool) -> Vec<u8> {
        let length = 1 + self.below(self.piece_max);
        let stream = if of_server { &mut self.to_client } else { &mut self.to_server };
        stream.drain(..length.min(stream.len())).collect()
    }
}

/// The export as bytes, and the server's end of the connection.
struct Server {
    session: server::Session,
    memory: Vec<u8>,
    waiting: Vec<server::Request>,
    closed: bool,
}

impl Server {
    fn take(&mut self, world: &mut World) {
        let piece = world.piece(false);
        let mut bytes = &piece[..];
        loop {
            while let Some(event) = self.session.feed(&mut bytes).unwrap() {
                self.event(world, event);
            }
            if bytes.is_empty() {
                break;
            }
            assert!(self.session.is_full(), "bytes are left though there is room");
            self.answer_one(world);
        }
        if world.prng.chance(0.5) {
            self.fill_in_place(world);
        }
    }

    fn event(&mut self, world: &mut World, event: server::Event) {
        match event {
            server::Event::Send(bytes) => world.to_client.extend(bytes),
            server::Event::Request(request) => self.waiting.push(request),
            server::Event::StartTls => self.session.tls_established(),
            server::Event::Start(_) => {}
            server::Event::Close(_) => self.closed = true,
        }
    }

    fn fill_in_place(&mut self, world: &mut World) {
        let length = match self.session.space() {
            Some(space) => {
                let piece: Vec<u8> =
                    world.to_server.drain(..space.len().min(world.to_server.len())).collect();
                space[..piece.len()].copy_from_slice(&piece);
                piece.len()
            }
            None => 0,
        };
        self.waiting.extend(self.session.filled(length));
    }

    /// Does a request that waits, any one, and replies.
    fn answer_one(&mut self, world: &mut World) {
        let index = world.below(self.waiting.len());
        let request = self.waiting.swap_remove(index);
        let span = request.command.span();
        let at = span.offset as usize..span.end() as usize;
        let ticket = request.ticket;
        let reply = match request.command {
            Command::Read { dont_fragment, .. } => {
                self.reply_read(world, ticket, span, dont_fragment)
            }
            Command::BlockStatus { .. } => ticket.status(&[zero_extent(span)]),
            Command::Write { .. } => {
                self.memory[at].copy_from_slice(&request.data);
                ticket.done().to_vec()
            }
            Command::WriteZeroes { fast: true, .. } => ticket.error(Errno::NotSup, "never fast"),
            Command::WriteZeroes { .. } | Command::Trim { .. } => {
                self.memory[at].fill(0);
                ticket.done().to_vec()
            }
            Command::Flush | Command::Cache { .. } => ticket.done().to_vec(),
        };
        world.to_client.extend(reply);
        self.session.answered(1);
        self.session.recycle(request.data);
    }

    fn reply_read(&self, world: &mut World, ticket: Ticket, span: Span, whole: bool) -> Vec<u8> {
        let at = span.offset as usize..span.end() as usize;
        let data = &self.memory[at];
        let chunks = if whole { None } else { ticket.chunks() };
        let Some(mut chunks) = chunks else { return [&ticket.data(), data].concat() };
        let (mut out, mut rest) = (Vec::new(), data);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(1 + world.below(rest.len()));
            if now.iter().all(|byte| *byte == 0) {
                out.extend_from_slice(&chunks.hole(now.len() as u32));
            } else {
                out.extend_from_slice(&chunks.data(now.len() as u32));
                out.extend_from_slice(now);
            }
            rest = later;
        }
        out.extend_from_slice(&chunks.end());
        out
    }
}

fn zero_extent(span: Span) -> Extent {
    Extent { length: span.length, hole: span.offset.is_multiple_of(2), zero: true }
}

/// Requests of the client without an answer so far, in the order of asking.
struct Client {
    session: client::Session,
    exports: Vec<client::ListedExport>,
    started: Option<ExportInfo>,
    refused: Vec<client::Refused>,
    replies: Vec<client::Reply>,
}

impl Client {
    fn take(&mut self, world: &mut World) {
        let piece = world.piece(true);
        let mut bytes = &piece[..];
        while let Some(event) = self.session.feed(&mut bytes).unwrap() {
            self.event(world, event);
        }
        assert!(bytes.is_empty());
        if world.prng.chance(0.5)
            && let Some(space) = self.session.space()
        {
            let piece: Vec<u8> =
                world.to_client.drain(..space.len().min(world.to_client.len())).collect();
            space[..piece.len()].copy_from_slice(&piece);
            self.session.filled(piece.len());
        }
    }

    fn event(&mut self, world: &mut World, event: client::Event) {
        match event {
            client::Event::Send(bytes) => world.to_server.extend(bytes),
            client::Event::StartTls => self.session.tls_established(),
            client::Event::Exports(exports) => self.exports = exports,
            client::Event::Started(info) => self.started = Some(info),
            client::Event::Refused(refused) => self.refused.push(refused),
            client::Event::Reply(reply) => self.replies.push(reply),
            client::Event::Greeted | client::Event::Info(_) | client::Event::Aborted => {}
        }
    }
}

/// Lets both ends talk until the streams are empty and no end has bytes to send.
fn settle(world: &mut World, server: &mut Server, client: &mut Client) {
    server.take(world);
    while !world.to_client.is_empty() || !world.to_server.is_empty() || !server.waiting.is_empty() {
        match world.below(3) {
            0 => server.take(world),
            1 => client.take(world),
            _ if !server.waiting.is_empty() => server.answer_one(world),
            _ => {}
        }
    }
    client.take(world);
}

fn pair(settings: server::Settings, wishes: client::Settings, size: u64) -> (Server, Client) {
    let session = server::Session::new(settings).unwrap();
    let memory = vec![0; size as usize];
    let server = Server { session, memory, waiting: Vec::new(), closed: false };
    let client = Client {
        session: client::Session::new(wishes),
        exports: Vec::new(),
        started: None,
        refused: Vec::new(),
        replies: Vec::new(),
    };
    (server, client)
}

fn features() -> impl Strategy<Value = Features> {
    any::<[bool; 11]>().prop_map(|on| Features {
        read_only: on[0] && on[1],
        flush: on[1],
        fua: on[2],
        rotational: on[3],
        trim: on[4],
        write_zeroes: on[5],
        fast_zero: on[5] && on[6],
        cache: on[7],
        multi_conn: on[8],
        dont_fragment: on[9],
        block_status: on[10],
    })
}

fn export() -> impl Strategy<Value = Export> {
    let name = "[a-z/ ü]{0,20}";
    (name, "[A-Za-z ]{0,20}", 0..9_u32, 1..200_u64, features()).prop_map(
        |(name, description, order, blocks, features)| {
            let minimum = 1 << order;
            Export {
                name,
                description,
                size: blocks * u64::from(minimum),
                features,
                block_sizes: BlockSizes { minimum, preferred: 4096, payload_max: 1 << 16 },
                block_sizes_required: false,
            }
        },
    )
}

/// Any command within the export; some are not offered by it, which the client's session refuses.
fn command(prng: &mut Prng, size: u64, minimum: u32) -> Command {
    let blocks = size / u64::from(minimum);
    let first = prng.below(blocks);
    let length = 1 + prng.below((blocks - first).min(1 << 16 >> minimum.ilog2()));
    let span = Span { offset: first * u64::from(minimum), length: length as u32 * minimum };
    let [fua, b, c] = [prng.chance(0.2), prng.chance(0.2), prng.chance(0.2)];
    match prng.below(8) {
        0 | 1 => Command::Read { span, dont_fragment: b },
        2 | 3 => Command::Write { span, fua },
        4 => Command::Flush,
        5 => Command::Trim { span, fua },
        6 => Command::WriteZeroes { span, fua, no_hole: b, fast: c },
        _ if b => Command::Cache { span },
        _ => Command::BlockStatus { span, one: c },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn session_reads_back_whatever_is_offered(
        export in export(),
        structured in any::<bool>(),
        tls in any::<bool>(),
        in_flight_max in 1_u32..8,
        seed in any::<u64>(),
        piece_max in prop_oneof![Just(1_usize), Just(7), Just(100), Just(100_000)],
    ) {
        let mut world = World::new(seed, piece_max);
        let size = export.size;
        let limits = Limits { in_flight_max, ..Limits::default() };
        let offered = if tls { server::Tls::Required } else { server::Tls::Off };
        let settings = server::Settings { exports: vec![export.clone()], tls: offered, limits };
        let wishes = client::Settings { structured, block_status: true, limits: Limits::default() };
        let (mut server, mut client) = pair(settings, wishes, size);
        settle(&mut world, &mut server, &mut client);
        if tls {
            world.to_server.extend(client.session.start_tls().unwrap());
            settle(&mut world, &mut server, &mut client);
        }
        world.to_server.extend(client.session.list().unwrap());
        settle(&mut world, &mut server, &mut client);
        let Export { name, description, .. } = export.clone();
        prop_assert_eq!(&client.exports, &[client::ListedExport { name, description }]);
        world.to_server.extend(client.session.go(&export.name).unwrap());
        settle(&mut world, &mut server, &mut client);
        check_info(&export, structured, client.started.as_ref().unwrap())?;
        converse(&mut world, &mut server, &mut client, &export)?;
        world.to_server.extend(client.session.disconnect().unwrap().iter());
        while !world.to_server.is_empty() {
            server.take(&mut world);
        }
        prop_assert!(server.closed);
        prop_assert_eq!(server.session.ended(), Ok(()));
    }
}

fn check_info(export: &Export, structured: bool, info: &ExportInfo) -> Result<(), TestCaseError> {
    let features = Features {
        dont_fragment: structured && export.features.dont_fragment,
        block_status: structured && export.features.block_status,
        ..export.features
    };
    let expected = ExportInfo {
        name: export.name.clone(),
        description: export.description.clone(),
        size: export.size,
        features,
        block_sizes: export.block_sizes,
    };
    prop_assert_eq!(info, &expected);
    Ok(())
}

/// Requests one by one against a model of the memory, and some at once where order is free.
fn converse(
    world: &mut World,
    server: &mut Server,
    client: &mut Client,
    export: &Export,
) -> Result<(), TestCaseError> {
    let mut model = vec![0; export.size as usize];
    for _ in 0..30 {
        let command = command(&mut world.prng, export.size, export.block_sizes.minimum);
        let Ok((cookie, head)) = client.session.request(command, Vec::new()) else { continue };
        world.to_server.extend(head.iter());
        let at = command.span().offset as usize..command.span().end() as usize;
        match command {
            Command::Write { .. } => {
                model[at.clone()].fill_with(|| world.prng.below(256) as u8);
                world.to_server.extend(&model[at.clone()]);
            }
            Command::Trim { .. } | Command::WriteZeroes { fast: false, .. } => {
                model[at.clone()].fill(0);
            }
            _ => {}
        }
        settle(world, server, client);
        let replies: Vec<_> = client.replies.drain(..).collect();
        prop_assert_eq!(replies.len(), 1);
        prop_assert_eq!((replies[0].cookie, replies[0].command), (cookie, command));
        match command {
            Command::WriteZeroes { fast: true, .. } => {
                let failed = replies[0].result.as_ref().map_err(|failure| failure.errno);
                prop_assert_eq!(failed, Err(Errno::NotSup));
                continue;
            }
            Command::Read { .. } => prop_assert_eq!(&replies[0].data, &model[at]),
            Command::BlockStatus { span, .. } => {
                prop_assert_eq!(&replies[0].extents, &[zero_extent(span)]);
            }
            _ => {}
        }
        prop_assert_eq!(&replies[0].result, &Ok(()));
    }
    reads_at_once(world, server, client, &model)
}

fn reads_at_once(
    world: &mut World,
    server: &mut Server,
    client: &mut Client,
    model: &[u8],
) -> Result<(), TestCaseError> {
    let minimum = client.started.as_ref().unwrap().block_sizes.minimum;
    let mut asked = Vec::new();
    for at in (0..model.len() as u64).step_by(minimum as usize).take(20) {
        let (cookie, head) =
            client.session.request(Command::read(at, minimum), Vec::new()).unwrap();
        world.to_server.extend(head.iter());
        asked.push((cookie, at as usize));
    }
    settle(world, server, client);
    prop_assert_eq!(client.replies.len(), asked.len());
    for reply in client.replies.drain(..) {
        let at = asked.iter().find(|(cookie, _)| *cookie == reply.cookie).map(|(_, at)| *at);
        let at = at.unwrap();
        prop_assert_eq!(&reply.data[..], &model[at..at + minimum as usize]);
    }
    Ok(())
}

#[test]
fn session_missing_export_allows_another() {
    let mut world = World::new(1, 5);
    let export = Export { name: "disk".into(), size: 512, ..Export::default() };
    let settings = server::Settings { exports: vec![export], ..server::Settings::default() };
    let (mut server, mut client) = pair(settings, client::Settings::default(), 512);
    settle(&mut world, &mut server, &mut client);
    world.to_server.extend(client.session.go("tape").unwrap());
    settle(&mut world, &mut server, &mut client);
    let refused = client.refused.pop().unwrap();
    assert_eq!((refused.option, refused.error), (OptionCode::GO, OptionError::Unknown));
    assert_eq!(
        refused.to_string(),
        "the server refused GO: it has no such export: there is no export \"tape\" here"
    );
    world.to_server.extend(client.session.go("disk").unwrap());
    settle(&mut world, &mut server, &mut client);
    assert_eq!(client.started.unwrap().size, 512);
}
