//! A source of requests, which knows no clock, as clients over NBD in real time.

use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use freewheel_model::stats::Distribution;
use freewheel_nbd::{Command, Span, Uri};
use freewheel_sim::source::{Request, Source, SourceError};
use freewheel_units::{BLOCK_BYTES, Op, SimDuration, SimTime};
use thiserror::Error;

use crate::emulate::Clock;
use crate::nbd::{Answer, Client, ClientLimits, ConnectError, Refusal, RequestError};

/// Results of the requests.
#[derive(Debug, Clone)]
pub struct Played {
    /// Number of requests that were sent and answered.
    pub requests: u64,
    /// From the sending of each to its answer.
    pub responses: Distribution,
    /// From the beginning to the last answer.
    pub elapsed: SimDuration,
}

/// Reasons why requests could not be played.
#[derive(Debug, Error)]
pub enum PlayError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The source cannot go on.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A request was not done.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A request was not taken.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A tag of the source, and when its request was sent.
type Tag = (u64, SimTime);

/// Asks an export for what a source says, each request at its time, as long as that is within `length`;
/// ends when all are answered.
pub fn play(source: &mut impl Source, uri: &Uri, length: SimDuration) -> Result<Played, PlayError> {
    let (tell, answers) = mpsc::channel();
    let client = Client::connect(uri, ClientLimits::default(), move |answer| {
        // The caller may have stopped waiting.
        let _ = tell.send(answer);
    })?;
    let clock = Clock::start();
    let mut played =
        Played { requests: 0, responses: Distribution::default(), elapsed: SimDuration::ZERO };
    let end = SimTime::ZERO + length;
    let mut in_flight = 0_u32;
    loop {
        let next = source.next_arrival()?.filter(|&at| at < end);
        if next.is_none() && in_flight == 0 {
            return Ok(played);
        }
        let Some(answer) = wait(&answers, &clock, next) else {
            send(source.take(), &client, &clock)?;
            in_flight += 1;
            continue;
        };
        answer.result?;
        let (tag, sent) = answer.tag;
        let at = clock.at(answer.at);
        source.completed(tag, at);
        played.requests += 1;
        played.responses.record(at.saturating_since(sent));
        played.elapsed = played.elapsed.max(at - SimTime::ZERO);
        in_flight -= 1;
    }
}

/// The next answer; None when it is time for the next request.
fn wait(
    answers: &Receiver<Answer<Tag>>,
    clock: &Clock,
    until: Option<SimTime>,
) -> Option<Answer<Tag>> {
    let Some(until) = until else {
        // An answer comes at the latest when the connection is lost.
        return answers.recv().ok();
    };
    let left = Duration::from_nanos(until.saturating_since(clock.now()).ns());
    answers.recv_timeout(left).ok()
}

fn send(request: Request, client: &Client<Tag>, clock: &Clock) -> Result<(), PlayError> {
    let length = request.blocks.bytes().get();
    let span = Span { offset: request.start.get() * BLOCK_BYTES, length: length as u32 };
    let (command, mut data) = match request.op {
        Op::Read => (Command::Read { span, dont_fragment: false }, Vec::new()),
        Op::Write => (Command::Write { span, fua: false }, vec![0; length as usize]),
        Op::Flush => (Command::Flush, Vec::new()),
        Op::Trim => (Command::Trim { span, fua: false }, Vec::new()),
    };
    let tag = (request.tag, clock.now());
    client.submit(command, &mut data, tag).map_err(|refused| refused.why)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use freewheel_sim::source::{Closed, Pattern, PatternSpec, ThinkTime};
    use freewheel_units::Blocks;

    use super::*;
    use crate::nbd::{Access, Address, Limits, Memory, Server, Service, Stop};

    /// Clients of a disk in memory.
    fn play_to_memory(source: &mut Closed, blocks: Blocks, length: SimDuration) -> Played {
        let folder = tempfile::tempdir().unwrap();
        let address = Address::Unix(folder.path().join("socket"));
        let memory: Arc<dyn Service> = Arc::new(Memory::new("memory", blocks.bytes().get()));
        let server =
            Server::bind(&address, Access::default(), vec![memory], Limits::default(), |_| {})
                .unwrap();
        let stop = Stop::new().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| server.run(&stop).unwrap());
            let played = play(source, &address.uri("", false), length);
            stop.stop();
            played.unwrap()
        })
    }

    fn clients(blocks: Blocks, think_time: SimDuration, requests: u64) -> Closed {
        let pattern = Pattern::new(PatternSpec::default(), blocks, 1).unwrap();
        Closed::new(pattern, 3, ThinkTime::Constant(think_time), requests, 1)
    }

    #[test]
    fn load_answers_all_and_thinks_between() {
        let (blocks, think_time) = (Blocks::new(2048), SimDuration::from_ms(5));
        let mut source = clients(blocks, think_time, 30);
        let played = play_to_memory(&mut source, blocks, SimDuration::from_secs(600));
        assert_eq!((played.requests, played.responses.summary().count), (30, 30));
        // Ten times for each of the three.
        assert!(played.elapsed >= SimDuration::from_ms(50), "{}", played.elapsed);
    }

    #[test]
    fn load_sends_nothing_after_end() {
        let (blocks, think_time) = (Blocks::new(2048), SimDuration::from_ms(20));
        let mut source = clients(blocks, think_time, u64::MAX);
        let played = play_to_memory(&mut source, blocks, SimDuration::from_ms(90));
        // At 20, 40, 60 and 80 ms at most.
        assert!((1..=12).contains(&played.requests), "{}", played.requests);
    }
}
