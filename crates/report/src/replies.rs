//! Lateness of an emulated drive's replies, in numbers and tables.

use freewheel_model::stats::{Bucket, Distribution, Summary};
use freewheel_units::grouped;
use serde::{Deserialize, Serialize};

use crate::numbers::short_time;
use crate::plot::bar;
use crate::table::Table;

/// Columns of the longest bar.
const BAR: usize = 20;

/// Times of the drive's replies.
#[derive(Debug, Serialize, Deserialize)]
pub struct Replies {
    /// From the time of a reply until the drive hands it over.
    pub lateness: Times,
    /// Time of that hand-over.
    pub handing: Times,
}

/// Times in numbers, and how many of them were how long.
#[derive(Debug, Serialize, Deserialize)]
pub struct Times {
    /// Count, mean and quantiles.
    #[serde(flatten)]
    pub summary: Summary,
    /// By powers of two of microseconds.
    pub histogram: Vec<Bucket>,
}

impl From<&Distribution> for Times {
    fn from(times: &Distribution) -> Self {
        Self { summary: times.summary(), histogram: times.by_doubling() }
    }
}

impl Replies {
    /// The replies that were late by this, and handed over in that.
    pub fn new(lateness: &Distribution, handing: &Distribution) -> Self {
        Self { lateness: lateness.into(), handing: handing.into() }
    }

    fn both(&self) -> [(&'static str, &Times); 2] {
        [("late by", &self.lateness), ("handed over in", &self.handing)]
    }

    /// A table of quantiles and one of the histograms, below a name.
    pub fn tables(&self, name: &str) -> String {
        if self.lateness.summary.count == 0 {
            return format!("{name}: no request was answered\n");
        }
        format!("{}\n{}", self.quantiles(name), self.histograms(name))
    }

    fn quantiles(&self, name: &str) -> Table {
        let mut table = Table::new("lrrrrrr");
        table.row([name, "count", "median", "90 %", "99 %", "99.9 %", "most"]);
        for (name, times) in self.both() {
            let Summary { count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns, .. } = times.summary;
            let [p50, p90, p99, p999, most] =
                [p50_ns, p90_ns, p99_ns, p999_ns, max_ns].map(short_time);
            table.row([name.to_owned(), grouped(count), p50, p90, p99, p999, most]);
        }
        table
    }

    /// A row for each bucket that one of the two has.
    fn histograms(&self, name: &str) -> Table {
        let mut table = Table::new("lrlrl");
        let [(late, _), (handed, _)] = self.both();
        table.row([name, late, "", handed, ""]);
        let both = [&self.lateness.histogram, &self.handing.histogram];
        let mut rows: Vec<&Bucket> = both.into_iter().flatten().collect();
        rows.sort_by_key(|bucket| bucket.from_ns);
        rows.dedup_by_key(|bucket| bucket.from_ns);
        for row in rows {
            let [late, handed] = both.map(|buckets| {
                let of = buckets.iter().find(|bucket| bucket.from_ns == row.from_ns);
                let count = of.map_or(0, |bucket| bucket.count);
                let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0);
                [grouped(count), bar(count as f64 / most.max(1) as f64, BAR)]
            });
            table.row([range(row)].into_iter().chain(late).chain(handed));
        }
        table
    }
}

fn range(bucket: &Bucket) -> String {
    let Bucket { from_ns, below_ns, .. } = bucket;
    match from_ns {
        0 => format!("below {} us", below_ns / 1000),
        _ => format!("{} to {} us", from_ns / 1000, below_ns / 1000),
    }
}

/// Flushes and writes with FUA that waited for the file of an emulated drive.
#[derive(Debug, Serialize)]
pub struct Syncs {
    /// Number of these requests.
    pub requests: u64,
    /// Delay of the file after the drive, where there was one.
    pub late: Times,
}

impl Syncs {
    /// This number of requests, with the delays that there were.
    pub fn new(requests: u64, late: &Distribution) -> Self {
        Self { requests, late: late.into() }
    }

    /// A line, where anything waited for a file.
    pub fn text(&self) -> String {
        let Self { requests, late } = self;
        if *requests == 0 {
            return String::new();
        }
        let Times { summary, .. } = late;
        let most = match summary.count {
            0 => String::new(),
            _ => format!(", by {} at most", short_time(summary.max_ns)),
        };
        format!(
            "{} flushes and writes with FUA waited for the store, {} of them longer than for the drive{most}\n",
            grouped(*requests),
            grouped(summary.count)
        )
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::SimDuration;

    use super::*;

    fn replies() -> Replies {
        let (mut lateness, mut handing) = (Distribution::default(), Distribution::default());
        for us in [1, 1, 1, 1, 6] {
            lateness.record(SimDuration::from_us(us));
        }
        handing.record(SimDuration::from_ns(700));
        Replies::new(&lateness, &handing)
    }

    #[test]
    fn replies_histogram_rows_cover_both_distributions() {
        let text = replies().histograms("replies").to_string();
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        let whole = "█".repeat(BAR);
        assert_eq!(rows[1], ["below", "1", "us", "0", "1", &whole], "{text}");
        assert_eq!(rows[2], ["1", "to", "2", "us", "4", &whole, "0"], "{text}");
        assert_eq!(rows[3], ["2", "to", "4", "us", "0", "0"], "{text}");
        assert_eq!(rows[4], ["4", "to", "8", "us", "1", "█████", "0"], "{text}");
        assert_eq!(rows.len(), 5, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn replies_survive_json_round_trip() {
        let text = serde_json::to_string(&replies()).unwrap();
        let read: Replies = serde_json::from_str(&text).unwrap();
        assert_eq!(read.lateness.summary, replies().lateness.summary);
        assert_eq!(read.handing.histogram, replies().handing.histogram);
    }

    #[test]
    fn replies_without_any_have_no_buckets() {
        let none = Replies::new(&Distribution::default(), &Distribution::default());
        assert_eq!(none.histograms("replies").to_string().lines().count(), 1);
    }
}
