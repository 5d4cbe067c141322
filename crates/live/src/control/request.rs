//! A task that a server is asked for: an order, and what a server alone is told of its data.
//!
//! One JSON object has the keys of both. It is read without a tree of its contents, which would take a
//! hundred times its bytes; Serde's `flatten` makes one.

use std::fmt;

use freewheel_freeblock::TaskOrder;
use freewheel_freeblock::tasks::{Extent, TaskKind};
use freewheel_host::tasks::{ServedOrder, TaskParts};
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, SimTime};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::BlockRange;
use super::names::{OrderSchema, ServedKind};
use super::sample::{SampleRequest, draw};
use crate::extents::{ByteRange, Extents};

/// Keys of a request. Those of an order that an experiment alone has are unknown to a server.
const KEYS: [&str; 14] = [
    "kind",
    "start",
    "length",
    "extents",
    "skip",
    "skip_since_ns",
    "block_size",
    "priority",
    "deadline",
    "idle_after",
    "promote_tail",
    "repeat",
    "sample",
    "stream",
];

/// A task to begin.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TaskRequest {
    /// Kind, range and pace. Without `block_size` the server chooses about an eighth of a track of the drive,
    /// from 4 KiB to 64 KiB.
    #[serde(flatten)]
    #[schema(value_type = OrderSchema)]
    pub order: TaskOrder,
    /// The wanted parts of this range, in bytes from the beginning of the drive: at most 500,000, in any
    /// order. Each is widened to whole blocks of the task, and those that overlap are merged. All of the
    /// range when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extents: Option<Vec<ByteRange>>,
    /// Ranges to skip: whole blocks of the task, in ascending order and apart from each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub skip: Vec<BlockRange>,
    /// Skipped parts are read all the same where a client has written since this time after the begin of
    /// the server.
    #[schema(required = false)]
    pub skip_since_ns: u64,
    /// Reads a random sample alone, which is drawn when the task is begun: of a scan or scrub, without
    /// `skip` and `repeat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleRequest>,
    /// Waits up to a minute for a reader of its data at `/v1/tasks/{id}/data`, and ends with that request. A
    /// backup always does.
    #[schema(required = false)]
    pub stream: bool,
}

impl From<TaskOrder> for TaskRequest {
    /// All of its range, without a reader.
    fn from(order: TaskOrder) -> Self {
        Self {
            order,
            extents: None,
            skip: Vec::new(),
            skip_since_ns: 0,
            sample: None,
            stream: false,
        }
    }
}

impl TaskRequest {
    /// All of a drive, once, in blocks of the size that the server chooses.
    pub fn new(kind: TaskKind) -> Self {
        TaskOrder { kind, block_size: None, ..TaskOrder::default() }.into()
    }

    /// The server's form of the request, on a drive of this size; the default block has `usual_block` x
    /// 512 B.
    pub(super) fn ordered(
        &self,
        capacity: Blocks,
        usual_block: u32,
    ) -> Result<ServedOrder, String> {
        self.check_reader()?;
        let order = self.order.clone().completed(capacity, usual_block);
        order.check_served(capacity)?;
        let (range, size) = (order.range(), order.size());
        let wanted = self.extents.as_deref().map(|extents| wanted(extents, range, size));
        let wanted = wanted.transpose()?.unwrap_or_default();
        let (wanted, sample) = match &self.sample {
            None => (wanted, None),
            Some(sample) => {
                self.check_sample()?;
                let (sample, drawn) = draw((range, &wanted), sample, size)?;
                (drawn, Some(sample))
            }
        };
        let skip = self.skip.iter().map(|range| Extent::new(range.first_block, range.blocks));
        let (skip, skip_since) = (skip.collect(), SimTime::from_ns(self.skip_since_ns));
        let parts = TaskParts { wanted, skip, skip_since };
        Ok(ServedOrder { order, parts, has_reader: self.stream, sample })
    }

    /// Err for what cannot be without a reader of the data, or with one.
    fn check_reader(&self) -> Result<(), String> {
        let is_backup = self.order.kind == TaskKind::Backup;
        if self.order.repeat && is_backup {
            return Err("repeat: a backup is of one moment; leave it out".into());
        }
        if !self.stream && is_backup {
            return Err("stream: a backup needs a reader of its data; set it to true and read \
                        /v1/tasks/{id}/data"
                .into());
        }
        if !self.stream && !self.skip.is_empty() {
            return Err("skip: only for a task with `stream`".into());
        }
        Ok(())
    }

    /// Err for what a sample cannot be.
    fn check_sample(&self) -> Result<(), String> {
        if self.order.kind == TaskKind::Backup {
            return Err("sample: a backup is of all blocks; leave it out, or begin a scan".into());
        }
        if self.order.repeat {
            return Err("repeat: a sample is drawn once; leave it out, or begin another task \
                        with another seed"
                .into());
        }
        if !self.skip.is_empty() {
            return Err("skip: not of a sample; name `extents` instead".into());
        }
        Ok(())
    }
}

/// The blocks of a range of the drive in which extents are, in whole blocks of `size` x 512 B.
fn wanted(extents: &[ByteRange], range: Extent, size: u32) -> Result<Vec<Extent>, String> {
    let allowed = match extents.len() {
        0 => Err("extents: an empty list: leave it out for all blocks".to_owned()),
        1..=Extents::MAX => Ok(()),
        all => Err(format!(
            "extents: {all} ranges: at most {} are allowed; join those that are close together",
            Extents::MAX
        )),
    };
    allowed?;
    let within = ByteRange::new(range.start.get() * BLOCK_BYTES, range.blocks.get() * BLOCK_BYTES);
    for (number, &ByteRange { offset_bytes, length_bytes }) in extents.iter().enumerate() {
        let end = offset_bytes.checked_add(length_bytes);
        let is_inside =
            offset_bytes >= within.offset_bytes && end.is_some_and(|end| end <= within.end());
        if !is_inside || length_bytes == 0 {
            return Err(format!(
                "extents[{number}]: {length_bytes} bytes from {offset_bytes} on: at least one is allowed, of \
                 bytes {} to {} of the task",
                within.offset_bytes,
                within.end()
            ));
        }
    }
    let whole = Extents::new(extents.to_vec()).widened(u64::from(size) * BLOCK_BYTES, within);
    Ok(whole
        .ranges()
        .iter()
        .map(|range| {
            Extent::new(range.offset_bytes / BLOCK_BYTES, range.length_bytes / BLOCK_BYTES)
        })
        .collect())
}

impl<'de> Deserialize<'de> for TaskRequest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_struct("TaskRequest", &KEYS, WholeRequest)
    }
}

struct WholeRequest;

impl<'de> Visitor<'de> for WholeRequest {
    type Value = TaskRequest;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TaskRequest, A::Error> {
        let mut own = OwnKeys::default();
        let keys = OrderKeys { map, own: &mut own };
        let order = TaskOrder::deserialize(MapAccessDeserializer::new(keys))?;
        let ServedKind(kind) = own.kind.ok_or_else(|| Error::missing_field("kind"))?;
        let block_size = own.block_size.flatten();
        Ok(TaskRequest {
            order: TaskOrder { kind, block_size, ..order },
            extents: own.extents.flatten(),
            skip: own.skip.unwrap_or_default(),
            skip_since_ns: own.skip_since_ns.unwrap_or_default(),
            sample: own.sample.flatten(),
            stream: own.stream.unwrap_or_default(),
        })
    }
}

/// Values of the keys of a request that are not read as an order's: those that an order lacks, and those that
/// have another default or other values in an experiment.
#[derive(Default)]
struct OwnKeys {
    kind: Option<ServedKind>,
    block_size: Option<Option<Bytes>>,
    extents: Option<Option<Vec<ByteRange>>>,
    skip: Option<Vec<BlockRange>>,
    skip_since_ns: Option<u64>,
    sample: Option<Option<SampleRequest>>,
    stream: Option<bool>,
}

impl OwnKeys {
    /// Reads the value of such a key; false for another key.
    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "kind" => once("kind", &mut self.kind, map)?,
            "block_size" => once("block_size", &mut self.block_size, map)?,
            "extents" => once("extents", &mut self.extents, map)?,
            "skip" => once("skip", &mut self.skip, map)?,
            "skip_since_ns" => once("skip_since_ns", &mut self.skip_since_ns, map)?,
            "sample" => once("sample", &mut self.sample, map)?,
            "stream" => once("stream", &mut self.stream, map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    key: &'static str,
    value: &mut Option<T>,
    map: &mut A,
) -> Result<(), A::Error> {
    match value.replace(map.next_value()?) {
        None => Ok(()),
        Some(_) => Err(Error::duplicate_field(key)),
    }
}

/// The keys of an order in a request's object. It takes the others out of it.
struct OrderKeys<'a, A> {
    map: A,
    own: &'a mut OwnKeys,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for OrderKeys<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if self.own.read(&key, &mut self.map)? {
                continue;
            }
            if !KEYS.contains(&&*key) {
                return Err(Error::unknown_field(&key, &KEYS));
            }
            return seed.deserialize(key.into_deserializer()).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use freewheel_freeblock::PromoteTail;
    use freewheel_units::SimDuration;
    use utoipa::PartialSchema;

    use super::*;

    /// A request with another order.
    fn with(request: &TaskRequest, change: impl FnOnce(&mut TaskOrder)) -> TaskRequest {
        let mut request = request.clone();
        change(&mut request.order);
        request
    }

    fn refused(request: TaskRequest) -> String {
        request.ordered(Blocks::new(1 << 20), 8).unwrap_err()
    }

    #[test]
    fn order_and_server_keys_share_object() {
        let text =
            r#"{"skip_since_ns":5,"kind":"refresh","start":"4KiB","deadline":"8h","repeat":true}"#;
        let request: TaskRequest = serde_json::from_str(text).unwrap();
        let order = TaskOrder {
            kind: TaskKind::Refresh,
            block_size: None,
            start: Bytes::from_kib(4),
            deadline: Some(SimDuration::from_secs(8 * 3600)),
            repeat: true,
            ..TaskOrder::default()
        };
        assert_eq!(request, TaskRequest { skip_since_ns: 5, ..order.into() });
        let written = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<TaskRequest>(&written).unwrap(), request);
    }

    #[test]
    fn order_description_names_what_is_read() {
        let schema = serde_json::to_value(OrderSchema::schema()).unwrap();
        let keys = schema["properties"].as_object().unwrap();
        assert!(keys.keys().all(|key| KEYS.contains(&&**key)), "{keys:?}");
        assert_eq!(keys.len() + 5, KEYS.len(), "and five of a request");
    }

    #[test]
    fn times_beyond_clock_are_refused() {
        let (scrub, year) =
            (TaskRequest::new(TaskKind::Scrub), SimDuration::from_secs(365 * 24 * 3600));
        let beyond = Some(year + SimDuration::from_ns(1));
        let idle = with(&scrub, |order| order.idle_after = beyond);
        assert!(refused(idle).starts_with("`idle_after` is 31536000000000001ns: at most"));
        let deadline = with(&scrub, |order| order.deadline = beyond);
        assert!(refused(deadline).starts_with("`deadline` is "));
        let most = with(&scrub, |order| order.deadline = Some(year));
        assert!(most.ordered(Blocks::new(1 << 20), 8).is_ok());
    }

    #[test]
    fn extents_are_merged_and_widened_to_blocks() {
        let bytes = ByteRange::new;
        let spec = |first_block: u64, extents: Vec<ByteRange>| {
            let request =
                TaskRequest { extents: Some(extents), ..TaskRequest::new(TaskKind::Scan) };
            let start = Bytes::new(first_block * BLOCK_BYTES);
            with(&request, |order| order.start = start).ordered(Blocks::new(1003), 8)
        };
        let wanted = spec(3, vec![bytes(9000, 1), bytes(1003 * 512 - 1, 1), bytes(2000, 4000)]);
        let wanted = wanted.unwrap();
        assert_eq!(wanted.parts.wanted, [Extent::new(3, 16), Extent::new(995, 8)]);
        let cut = spec(0, vec![bytes(1002 * 512, 512)]).unwrap();
        assert_eq!(cut.parts.wanted, [Extent::new(1000, 3)], "at the end of the drive");
        let refused = |extents| spec(3, extents).unwrap_err();
        assert!(refused(vec![]).contains("leave it out for all blocks"));
        let many = vec![bytes(4096, 1); Extents::MAX + 1];
        assert!(refused(many).starts_with("extents: 500001 ranges: at most 500000 are allowed"));
        for extent in [bytes(1535, 1), bytes(4096, 0), bytes(1003 * 512, 1), bytes(u64::MAX, 2)] {
            let error = refused(vec![bytes(4096, 1), extent]);
            assert!(error.starts_with("extents[1]: "), "{error}");
            assert!(error.ends_with("of bytes 1536 to 513536 of the task"), "{error}");
        }
    }

    #[test]
    fn sample_is_drawn_and_counted_by_tenth() {
        let sample = SampleRequest { share: 0.25, unit_bytes: None, seed: 3 };
        let scan = TaskRequest { sample: Some(sample), ..TaskRequest::new(TaskKind::Scan) };
        let spec = scan.ordered(Blocks::new(8000), 8).unwrap();
        let blocks = |spec: &ServedOrder| -> u64 {
            spec.parts.wanted.iter().map(|extent| extent.blocks.get()).sum()
        };
        let counts = spec.sample.unwrap();
        assert_eq!((counts.population, counts.drawn, blocks(&spec)), (1000, 250, 2000));
        assert_eq!(counts.places.iter().map(|place| place.drawn).sum::<u64>(), 2000);
        let extents = Some(vec![ByteRange::new(40_960, 81_920)]);
        let part = TaskRequest { extents, ..scan.clone() }.ordered(Blocks::new(8000), 8).unwrap();
        let is_inside = |extent: &Extent| (80..240).contains(&extent.start.get());
        assert!(part.parts.wanted.iter().all(is_inside), "{:?}", part.parts.wanted);
        assert_eq!(blocks(&part), 40);
        let refused = |request: TaskRequest| request.ordered(Blocks::new(8000), 8).unwrap_err();
        for share in [0.0, -0.1, 1.1, f64::NAN] {
            let sample = Some(SampleRequest { share, ..sample });
            let error = refused(TaskRequest { sample, ..scan.clone() });
            assert!(error.starts_with("sample.share is "), "{error}");
        }
        for unit in [0, 512, 4097] {
            let sample = Some(SampleRequest { unit_bytes: Some(unit), ..sample });
            let error = refused(TaskRequest { sample, ..scan.clone() });
            assert!(error.contains("a multiple of 4096, the task's block"), "{error}");
        }
        assert!(refused(with(&scan, |order| order.repeat = true)).starts_with("repeat: "));
        let mut backup = with(&scan, |order| order.kind = TaskKind::Backup);
        backup.stream = true;
        assert!(refused(backup).starts_with("sample: a backup"));
        let mut all = with(&scan, |order| order.block_size = Some(Bytes::new(512)));
        all.sample = Some(SampleRequest { share: 1.0, ..sample });
        let error = all.ordered(Blocks::new(500_001), 8).unwrap_err();
        assert!(error.contains("500001 units: at most 500000 are allowed"), "{error}");
    }

    #[test]
    fn tail_cost_must_be_share_of_time() {
        let scrub = TaskRequest::new(TaskKind::Scrub);
        for cost in [0.0, -0.1, 1.1, f64::NAN] {
            let request = with(&scrub, |order| order.promote_tail = Some(PromoteTail::at(cost)));
            assert!(refused(request).starts_with("promote_tail: `cost` is "), "{cost}");
        }
    }

    #[test]
    fn backup_without_taker_is_refused() {
        let backup = TaskRequest::new(TaskKind::Backup);
        assert!(refused(backup.clone()).starts_with("stream: "));
        let taken = TaskRequest { stream: true, ..backup };
        assert!(taken.ordered(Blocks::new(1 << 20), 8).is_ok());
    }
}
