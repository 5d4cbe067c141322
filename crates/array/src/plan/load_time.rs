//! Over which time the loads of a trace's devices are means.
//!
//! Rates of devices can be compared where they are means over the same time. A trace tells when a device was
//! recorded by its first and last request, and that only where it has some.

use serde::Serialize;

/// Fewer requests do not tell when a device was recorded. Of 20 at random times, all lie within half of the
/// time in one of 50,000 cases.
pub const REQUESTS_TELL: u64 = 20;

/// A common time that is shorter than this share of the shortest device's own time is none.
pub const COMMON_SHARE: f64 = 0.5;

/// A common time that is shorter than this share of the longest device's own time is none: a few seconds of
/// one device do not say how hours of another compare.
pub const COMMON_OF_LONGEST: f64 = 0.1;

/// The time over which the loads of a trace's devices are means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadTime {
    /// From the latest first request of a device to the earliest last one.
    #[default]
    Common,
    /// For each device from its first request to its last.
    Own,
    /// From the first request of all to the last: devices are idle before and after their own.
    Whole,
}

/// Time in which a device has its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceTime {
    first_ns: u64,
    last_ns: u64,
    requests: u64,
}

impl Default for DeviceTime {
    fn default() -> Self {
        Self { first_ns: u64::MAX, last_ns: 0, requests: 0 }
    }
}

impl DeviceTime {
    /// Counts a request.
    pub fn observe(&mut self, arrival_ns: u64) {
        self.first_ns = self.first_ns.min(arrival_ns);
        self.last_ns = self.last_ns.max(arrival_ns);
        self.requests += 1;
    }

    fn span_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }

    /// True if its first and last request tell when it was recorded.
    fn tells(&self) -> bool {
        self.requests >= REQUESTS_TELL && self.span_ns() > 0
    }

    /// The smallest time that holds both.
    fn and(self, other: Self) -> Self {
        Self {
            first_ns: self.first_ns.min(other.first_ns),
            last_ns: self.last_ns.max(other.last_ns),
            requests: self.requests + other.requests,
        }
    }
}

/// Over which time the loads are means, and what that leaves out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct LoadTimes {
    pub time: LoadTime,
    /// From the first request of the trace to its last, in seconds.
    pub whole_s: f64,
    /// The common time, in seconds after the first request of the trace: when it begins, and how long it is.
    /// None where loads are means over another time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_s: Option<(f64, f64)>,
    pub disks: Vec<DiskTime>,
    /// Common time as arrivals, both ends included.
    #[serde(skip)]
    common_ns: Option<(u64, u64)>,
}

/// Time in which a disk of a trace has its requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DiskTime {
    /// From its first request to its last, in seconds.
    pub span_s: f64,
    /// Over which its load is a mean, in seconds.
    pub load_span_s: f64,
    /// Requests of the disk in that time.
    pub requests: u64,
    /// True if it has enough requests to tell when it was recorded. One that has not counts as recorded all
    /// the time.
    pub tells_time: bool,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl LoadTimes {
    /// Err with the reason where devices have no such time.
    pub fn new(devices: &[(u32, DeviceTime)], time: LoadTime) -> Result<Self, String> {
        let whole = devices.iter().map(|(_, time)| *time).reduce(DeviceTime::and);
        let whole = whole.filter(|whole| whole.span_ns() > 0);
        let whole = whole.ok_or("its reads and writes have no two times, which tell no rate")?;
        let telling: Vec<&(u32, DeviceTime)> =
            devices.iter().filter(|(_, device)| device.tells()).collect();
        let common_ns = match time {
            LoadTime::Common => common(&telling)?,
            LoadTime::Own | LoadTime::Whole => None,
        };
        // A time without evidence is taken for the whole.
        let is_own = time == LoadTime::Own && !telling.is_empty();
        let time = match (common_ns, is_own) {
            (Some(_), _) => LoadTime::Common,
            (None, true) => LoadTime::Own,
            (None, false) => LoadTime::Whole,
        };
        Ok(Self {
            time,
            whole_s: seconds(whole.span_ns()),
            common_s: common_ns
                .map(|(from, to)| (seconds(from - whole.first_ns), seconds(to - from))),
            disks: devices
                .iter()
                .map(|(_, device)| {
                    let load_ns = match common_ns {
                        Some((from, to)) => to - from,
                        None if is_own && device.tells() => device.span_ns(),
                        None => whole.span_ns(),
                    };
                    DiskTime {
                        span_s: seconds(device.span_ns()),
                        load_span_s: seconds(load_ns),
                        requests: 0,
                        tells_time: device.tells(),
                    }
                })
                .collect(),
            common_ns: common_ns.filter(|common| *common != (whole.first_ns, whole.last_ns)),
        })
    }

    /// True if requests outside the common time do not count.
    pub fn leaves_requests_out(&self) -> bool {
        self.common_ns.is_some()
    }

    /// True if a request that arrives then counts.
    pub fn counts(&self, arrival_ns: u64) -> bool {
        self.common_ns.is_none_or(|(from, to)| (from..=to).contains(&arrival_ns))
    }
}

/// The time that all devices have in common; none without a device. Err where it is too short.
fn common(devices: &[&(u32, DeviceTime)]) -> Result<Option<(u64, u64)>, String> {
    let last_to_begin = devices.iter().max_by_key(|(_, device)| device.first_ns);
    let first_to_end = devices.iter().min_by_key(|(_, device)| device.last_ns);
    let shortest = devices.iter().min_by_key(|(_, device)| device.span_ns());
    let (Some(begins), Some(ends), Some(shortest)) = (last_to_begin, first_to_end, shortest) else {
        return Ok(None);
    };
    let (from, to) = (begins.1.first_ns, ends.1.last_ns);
    let longest_ns = devices.iter().map(|(_, device)| device.span_ns()).max().unwrap_or_default();
    let of_shortest_ns = COMMON_SHARE * shortest.1.span_ns() as f64;
    let needed_ns = of_shortest_ns.max(COMMON_OF_LONGEST * longest_ns as f64);
    if to > from && (to - from) as f64 >= needed_ns {
        return Ok(Some((from, to)));
    }
    let begin = devices.iter().map(|(_, device)| device.first_ns).min().unwrap_or_default();
    let after = |ns: u64| format!("{} s", seconds(ns - begin));
    let times = match begins.0 == ends.0 {
        true => {
            format!("device {} has its requests between {} and {}", ends.0, after(from), after(to))
        }
        false => format!(
            "device {} has its last request after {}, and device {} its first after {}",
            ends.0,
            after(to),
            begins.0,
            after(from)
        ),
    };
    Err(format!(
        "its devices cannot be compared: {times}. They have to share at least {:.0} % of the {} s of device {}, which has the shortest time, and {:.0} % of the {} s of the longest. \
         Plan one with --device, or give --load-time own (each load is the mean over the device's own time) or --load-time whole (all were recorded all the time)",
        100.0 * COMMON_SHARE,
        seconds(shortest.1.span_ns()),
        shortest.0,
        100.0 * COMMON_OF_LONGEST,
        seconds(longest_ns),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device with enough requests to tell its time, from second to second.
    fn device(number: u32, from_s: u64, to_s: u64) -> (u32, DeviceTime) {
        let [first_ns, last_ns] = [from_s, to_s].map(|second| second * 1_000_000_000);
        (number, DeviceTime { first_ns, last_ns, requests: REQUESTS_TELL })
    }

    fn spans(devices: &[(u32, DeviceTime)], time: LoadTime) -> (LoadTime, Vec<f64>) {
        let times = LoadTimes::new(devices, time).unwrap();
        (times.time, times.disks.iter().map(|disk| disk.load_span_s).collect())
    }

    #[test]
    fn loads_are_means_over_common_time() {
        let devices = [device(0, 0, 100), device(1, 10, 24), device(2, 11, 90)];
        let common = LoadTimes::new(&devices, LoadTime::Common).unwrap();
        assert_eq!(common.common_s, Some((11.0, 13.0)));
        assert!(common.counts(11_000_000_000) && common.counts(24_000_000_000));
        assert!(!common.counts(10_999_999_999) && !common.counts(24_000_000_001));
        assert_eq!(spans(&devices, LoadTime::Common), (LoadTime::Common, vec![13.0; 3]));
        assert_eq!(spans(&devices, LoadTime::Own), (LoadTime::Own, vec![100.0, 14.0, 79.0]));
        assert_eq!(spans(&devices, LoadTime::Whole), (LoadTime::Whole, vec![100.0; 3]));
    }

    #[test]
    fn device_with_few_requests_is_ignored() {
        let few = |device: (u32, DeviceTime)| {
            (device.0, DeviceTime { requests: REQUESTS_TELL - 1, ..device.1 })
        };
        let devices = [device(0, 0, 100), few(device(1, 10, 11))];
        assert_eq!(spans(&devices, LoadTime::Common).1, [100.0; 2]);
        assert_eq!(spans(&devices, LoadTime::Own).1, [100.0; 2]);
        let all = devices.map(few);
        assert_eq!(spans(&all, LoadTime::Common), (LoadTime::Whole, vec![100.0; 2]));
    }

    #[test]
    fn devices_sharing_little_time_are_refused() {
        let just = [device(3, 0, 110), device(5, 98, 122)];
        assert_eq!(spans(&just, LoadTime::Common).1, [12.0; 2]);
        let all = [[device(3, 0, 109), device(5, 98, 122)], [device(3, 0, 9), device(5, 98, 99)]];
        for devices in all {
            let says = LoadTimes::new(&devices, LoadTime::Common).unwrap_err();
            for words in [
                "device 3 has its last request after",
                "device 5 its first after 98 s",
                "50 %",
                "--load-time own",
            ] {
                assert!(says.contains(words), "{words}: {says}");
            }
            assert_eq!(spans(&devices, LoadTime::Own).0, LoadTime::Own);
        }
        // Within the longest, of which it is less than a tenth.
        let within = [device(3, 0, 120), device(5, 98, 102)];
        let says = LoadTimes::new(&within, LoadTime::Common).unwrap_err();
        assert!(says.contains("device 5 has its requests between 98 s and 102 s"), "{says}");
        assert!(says.contains("10 % of the 120 s of the longest"), "{says}");
    }
}
