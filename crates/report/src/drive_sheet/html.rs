//! The page of a drive's data sheet.

use freewheel_units::grouped;
use maud::{Markup, html};

use super::{CheckRow, DriveSheet, SeekTime, in_unit};
use crate::chart;
use crate::numbers::{deviation, fine_ms, percent};
use crate::page::{self, prose, section, table};
use freewheel_study::figure::{Axes, Line};

impl DriveSheet {
    /// The page of `freewheel drive show --html`.
    pub fn html(&self) -> String {
        let of_one = if self.heading.has_actuators { " (one actuator)" } else { "" };
        page::page(
            &self.heading.model,
            &self.heading.lead,
            &html! {
                @for caution in &self.cautions { p { strong { "Warning: " } (prose(caution)) } }
                (section("As advertised, as modelled", &self.check_table()))
                (section(&format!("Seek curve{of_one}"), &self.seek_chart()))
                (section(&format!("Sustained rate over the capacity{of_one}"), &self.rate_chart()))
                @if self.zoned.is_some() {
                    (section("Shingled zones", &list(&self.shingled_words())))
                }
                @if !self.electronics.is_empty() {
                    (section(&format!("Electronics{of_one}"), &list(&self.electronics_words())))
                }
                @if !self.held_out.is_empty() {
                    (section("Held against the drive itself", &self.held_out_table()))
                }
                (section("Where each value comes from", &list(&self.source_words())))
            },
        )
    }

    fn check_table(&self) -> Markup {
        html! {
            div.scroll {
                table {
                    thead { tr {
                        th {} th { "advertised" } th { "modelled" } th { "deviation" } th { "allowed" } th {}
                    } }
                    tbody { @for row in &self.self_check { (check_row(row)) } }
                }
            }
            @if !self.miss_words().is_empty() {
                h3 { "Why the model is off" }
                (list(&self.miss_words()))
            }
        }
    }

    fn held_out_table(&self) -> Markup {
        let rows: Vec<Vec<String>> = self
            .held_out
            .iter()
            .map(|row| -> Vec<String> {
                let means = [row.measured_mean, row.foretold_mean, row.demerit];
                let times = means.into_iter().chain([row.mechanics_demerit]);
                let head = [row.requests.clone(), grouped(row.count)];
                head.into_iter().chain(times.map(|time| fine_ms(time.ns() as f64))).collect()
            })
            .collect();
        html! {
            (table(
                &["requests", "number", "mean, ms", "foretold, ms", "demerit, ms", "of the mechanics alone, ms"],
                &rows,
            ))
            p.note {
                "Requests from which no value of this file comes, timed on the drive and foretold by \
                 the file. A demerit is the root mean square of the horizontal distance between the \
                 two distributions of response times."
            }
        }
    }

    fn seek_chart(&self) -> Markup {
        let full = self.seek_curve.last().map_or(1, |seek| seek.distance_cylinders);
        let (scale, x) = match full {
            10_000.. => (1000.0, "distance, thousand cylinders"),
            _ => (1.0, "distance, cylinders"),
        };
        let line = |name: &str, time_ns: fn(&SeekTime) -> u64| Line {
            name: name.into(),
            points: self
                .seek_curve
                .iter()
                .map(|seek| {
                    (f64::from(seek.distance_cylinders) / scale, time_ns(seek) as f64 / 1e6)
                })
                .collect(),
            dots: false,
        };
        let lines = [line("before a read", |s| s.read_ns), line("before a write", |s| s.write_ns)];
        let axes = Axes { x, y: "time, ms", log_x: false };
        let rows: Vec<Vec<String>> = self.seeks.iter().map(seek_cells).collect();
        html! {
            (chart::lines(&lines, &axes))
            (table(&["cylinders", "read, ms", "write, ms"], &rows))
            p.note {
                "Mean over random pairs of cylinders: " (fine_ms(self.mean_seek_read_ns as f64)) " ms before a read, "
                (fine_ms(self.mean_seek_write_ns as f64)) " ms before a write. A change of heads takes "
                (fine_ms(self.head_switch_ns as f64)) " ms."
                @if let Some(words) = self.seek_table_words() { " " (words) }
            }
        }
    }

    fn rate_chart(&self) -> Markup {
        let line = Line { name: "sustained rate".into(), points: self.rate_steps(), dots: false };
        let axes = Axes { x: "share of the capacity, %", y: "rate, MB/s", log_x: false };
        html! {
            (chart::lines(&[line], &axes))
            p.note {
                (self.zones.len()) (if self.zones.len() == 1 { " zone" } else { " zones" })
                "; the rate of each includes every change of heads and cylinders."
            }
        }
    }

    /// Share of the capacity in % and rate in MB/s at both ends of every zone.
    fn rate_steps(&self) -> Vec<(f64, f64)> {
        let total: u64 = self.zones.iter().map(|zone| zone.blocks).sum();
        let mut steps = Vec::with_capacity(2 * self.zones.len());
        let mut before = 0;
        for zone in &self.zones {
            for blocks in [before, before + zone.blocks] {
                let share = blocks as f64 * 100.0 / total as f64;
                steps.push((share, zone.sustained_bytes_per_second as f64 / 1e6));
            }
            before += zone.blocks;
        }
        steps
    }
}

/// Names and their texts.
fn list<'a, N: maud::Render + 'a, T: AsRef<str> + 'a>(
    pairs: impl IntoIterator<Item = &'a (N, T)>,
) -> Markup {
    html! { dl { @for (name, text) in pairs { dt { (name) } dd { (prose(text.as_ref())) } } } }
}

fn check_row(row: &CheckRow) -> Markup {
    html! {
        tr {
            td { (row.title) }
            td { (row.advertised.map_or("-".into(), |value: u64| in_unit(value, row.unit))) }
            td { (in_unit(row.modelled, row.unit)) }
            td { (row.deviation_share.map_or(String::new(), deviation)) }
            td { (row.ok.map_or(String::new(), |_| percent(row.tolerance_share))) }
            td { @match row.ok {
                Some(true) => { span.inside { "ok" } },
                Some(false) => { span.outside { "off" } },
                None => {},
            } }
        }
    }
}

fn seek_cells(seek: &SeekTime) -> Vec<String> {
    vec![
        seek.distance_cylinders.to_string(),
        fine_ms(seek.read_ns as f64),
        fine_ms(seek.write_ns as f64),
    ]
}
