//! Validations as tables of a terminal.

use freewheel_extract::validate::{FioValidation, RateValidation, Validation, ValidationFit};
use freewheel_units::{Bytes, grouped};

use crate::numbers::{deviation, fine_ms, per_second, percent, rate, response, resultant_length};
use crate::table::Table;
use crate::text::Text;

/// Milliseconds to a thousandth: validations differ by little.
fn ms(ms: f64) -> String {
    format!("{} ms", fine_ms(ms * 1e6))
}

impl Text for FioValidation {
    fn text(&self) -> String {
        let mut table = Table::new("lrrrrrr");
        table.row(["job", "", "requests/s", "mean", "p50", "p99", "p99.9"]);
        for row in &self.rows {
            let size = Bytes::new(row.bytes).human();
            let name = format!("{}: {} of {size}, {} at once", row.job, row.op, row.depth);
            for (name, by, of) in
                [(name, "fio", row.measured), (String::new(), "file", row.simulated)]
            {
                let ms = [Some(of.mean_ms), of.p50_ms, of.p99_ms, of.p999_ms];
                let [mean, p50, p99, p999] =
                    ms.map(|ms| ms.map_or_else(|| "-".to_owned(), |ms| response(ms * 1e6)));
                let rate = per_second(of.requests_per_second);
                table.row([name, by.to_owned(), rate, mean, p50, p99, p999]);
            }
        }
        let advice = match self.advice.is_empty() {
            true => {
                "File and measurement agree: means of single reads within 5 %, rates within 15 %."
                    .to_owned()
            }
            false => self.advice.join("\n"),
        };
        let left_out = self.left_out.iter().map(|why| format!("\nleft out: {why}"));
        format!(
            "{} against {}\n\n{table}\n{advice}{}\n",
            self.drive,
            self.file,
            left_out.collect::<String>()
        )
    }
}

impl Text for RateValidation {
    fn text(&self) -> String {
        let mut table = Table::new("rrrrrr");
        table.row(["zone", "first block", "stretches", "measured", "file", "difference"]);
        for zone in &self.zones {
            let difference = zone.difference.map(deviation);
            table.row([
                zone.zone.to_string(),
                grouped(zone.first_block),
                grouped(zone.stretches),
                zone.measured.map_or_else(|| "-".into(), rate),
                rate(zone.simulated),
                difference.unwrap_or_else(|| "-".into()),
            ]);
        }
        let advice = match self.advice.is_empty() {
            true => "File and measurement agree within 3 % in every measured zone.".to_owned(),
            false => self.advice.join("\n"),
        };
        let left_out = self.left_out.iter().map(|left_out| {
            format!("\nstretches left out: {}: {}", grouped(left_out.stretches), left_out.why)
        });
        format!(
            "{} against {}\n\n{table}\n{advice}{}\n",
            self.drive,
            self.file,
            left_out.collect::<String>()
        )
    }
}

impl Text for ValidationFit {
    fn text(&self) -> String {
        format!("{}{}", values(self), angles(self))
    }
}

/// Angles that were looked for, and what the second half says of them.
fn angles(fit: &ValidationFit) -> String {
    if fit.angles.is_empty() {
        return "Angles of the spindle and of zones: the trace tells none.\n".into();
    }
    let mut table = Table::new("lrrrrrrl");
    table.row(["angles", "changed", "pairs", "R before", "after", "sd before", "after", "kept"]);
    for angle in &fit.angles {
        let [r_before, r_after] = angle.resultant_lengths.map(resultant_length);
        let [before, after] = angle.judged_sd_ms.map(ms);
        let kept = if angle.kept { "yes" } else { "no" };
        table.row([
            angle.key.to_owned(),
            angle.changes.len().to_string(),
            grouped(angle.pairs),
            r_before,
            r_after,
            before,
            after,
            kept.to_owned(),
        ]);
    }
    format!(
        "\n{table}\nR: agreement of the angles on the first half, 1 for all alike. sd: of the difference, \
         request by request, on the second half.\n"
    )
}

fn values(fit: &ValidationFit) -> String {
    if fit.changes.is_empty() {
        let [as_it_is, _] = fit.judged_ms;
        return format!(
            "No other value makes the first half of the trace 1 % nearer. Distance on the second half: {}.\n",
            ms(as_it_is)
        );
    }
    let mut changes = Table::new("lllrr");
    changes.row(["value", "file", "trace", "distance before", "after"]);
    for change in &fit.changes {
        let [before, after] = change.fitted_ms.map(ms);
        changes.row([change.key.to_owned(), change.from.clone(), change.to.clone(), before, after]);
    }
    let [before, after] = fit.judged_ms.map(ms);
    let verdict = if fit.holds() { "They hold" } else { "They do not hold" };
    format!(
        "{changes}\n{verdict}: on the second half, which no value comes from, the distance goes from {before} to {after}.\n\
         Distance: the demerits of reads and of writes, weighted by their numbers.\n"
    )
}

impl Text for Validation {
    fn text(&self) -> String {
        let mut sums = Table::new("lr");
        sums.row(["requests".to_owned(), grouped(self.requests)]);
        sums.row(["measured mean".to_owned(), ms(self.measured_mean_ms)]);
        let simulated =
            format!("{} ({})", ms(self.simulated_mean_ms), deviation(self.mean_error_share));
        sums.row(["simulated mean (error)".to_owned(), simulated]);
        let demerit = format!("{} ({})", ms(self.demerit_ms), percent(self.demerit_share));
        sums.row(["demerit figure (of the mean)".to_owned(), demerit]);
        sums.row([
            "sd of the difference, request by request".to_owned(),
            ms(self.per_request_error_sd_ms),
        ]);
        let mut parts = Table::new("lrrrr");
        parts.row(["served here as", "requests", "measured", "simulated", "sd of difference"]);
        for part in &self.parts {
            let means =
                [part.measured_mean_ms, part.simulated_mean_ms, part.per_request_error_sd_ms];
            let [measured, simulated, sd] = means.map(ms);
            parts.row([part.name.to_owned(), grouped(part.requests), measured, simulated, sd]);
        }
        let mut quantiles = Table::new("rrr");
        quantiles.row(["share", "measured", "simulated"]);
        for q in &self.quantiles {
            quantiles.row([percent(q.share), ms(q.measured_ms), ms(q.simulated_ms)]);
        }
        let phase = phase(self);
        let gaps = self.gaps_in_words();
        format!(
            "{} against {}\n\n{sums}\n{gaps}\n\n{parts}\n{quantiles}\n{phase}",
            self.drive, self.trace
        )
    }
}

/// Words about the spindle's phase in the trace, and the error that it leaves.
fn phase(validation: &Validation) -> String {
    let phase = &validation.phase;
    let mut floors = Table::new("lrrr");
    floors.row(["sd of the difference", "achieved", "phase unknown", "resynchronised"]);
    for class in &phase.classes {
        let [achieved, floor] = [class.achieved_sd_ms, class.floor_sd_ms].map(ms);
        floors.row([class.name.to_owned(), achieved, floor, ms_if_any(class.resynchronised_sd_ms)]);
    }
    let [achieved, floor] = [phase.achieved_sd_ms, phase.floor_sd_ms].map(ms);
    floors.row(["all".to_owned(), achieved, floor, ms_if_any(phase.resynchronised_sd_ms)]);
    let mut distances = Table::new("lrrrrrr");
    let (gaps, other) = ("R, gaps as", "R, gaps one");
    distances.row(["last on the media", "requests", gaps, other, "R by", "median", "resyn-"]);
    distances.row(["", "", "recorded", "later", "chance", "error", "chronised"]);
    for row in &phase.distances {
        let lengths = [
            row.as_recorded.resultant_length,
            row.one_later.resultant_length,
            row.as_recorded.resultant_length_by_chance,
        ];
        let [recorded, later, chance] = lengths.map(resultant_length);
        let (name, pairs) = (row.distance.name().to_owned(), grouped(row.as_recorded.pairs));
        let median = ms(row.achieved_median_ms);
        let resynchronised = ms_if_any(row.resynchronised_median_ms);
        distances.row([name, pairs, recorded, later, chance, median, resynchronised]);
    }
    let title = "Is the rotational phase recoverable?";
    let pairs = phase.pairs_in_words();
    let key = "R: how much the angle found after a gap depends on the angle before it: 1 wholly, 0 not\n\
               at all. Gaps one later: read as if each gap came after its request. Resynchronised: with\n\
               our spindle set to the measured one after every visit to the media.";
    format!("{title}\n{}\n{key}\n\n{distances}{pairs}\n\n{floors}", phase.verdict)
}

fn ms_if_any(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), ms)
}
