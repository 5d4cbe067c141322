//! `freewheel drive validate`.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use freewheel::experiments::TraceWorkload;
use freewheel::extraction::{
    FioValidation, GapReading, RateValidation, ValidationFit, fit_to_measured, is_fio, is_rates,
    validate_fio, validate_rates, validation_html,
};
use freewheel::files::read_text_up_to;
use freewheel::measures::{Bytes, grouped};
use freewheel::traces::Format;
use freewheel::{Error, ErrorKind, Validation, validate};

use crate::failure::Failure;
use crate::table::Table;
use crate::{file, output};

/// Hold a drive against a trace measured on the real one
///
/// The trace has one request at a time, with its response time. Each is sent as long after our
/// completion of the one before as in the trace. Of fio's output in JSON the random jobs run again,
/// and their rates and percentiles stand beside those of fio. A rate log of ddrescue, or a series of accesses,
/// is compared by zone.
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel drive validate atlas10k atlas10k.trace --report atlas10k.html
  fio --name=a --filename=/dev/sdx --readonly --direct=1 --rw=randread --bs=4k --iodepth=1 \
      --runtime=60 --time_based --output-format=json --output=fio.json
  freewheel drive validate barracuda-st2000dm006-2tb fio.json
  ddrescue --log-rates=rates.log /dev/sdx /dev/null --force
  freewheel drive validate barracuda-st2000dm006-2tb rates.log

A series of accesses begins with the line `# lbn ms`. Then each line has the first block of a read,
in blocks of 512 B, and its time in ms; a read ends where the next one begins.")]
pub struct ValidateArgs {
    /// Name of a shipped drive, or path of a drive file
    drive: String,
    /// The trace, fio's output in JSON, or sequential rates
    trace: PathBuf,
    /// Format of the trace, where its contents do not tell
    #[arg(long)]
    format: Option<Format>,
    /// Side of its request on which the delay of a record lies; as the spindle's phase tells if not given,
    /// and before it where that tells nothing
    #[arg(long, value_enum)]
    delays: Option<Delays>,
    /// Look for values of the drive file that the first half of the trace prefers, and judge them on the second
    #[arg(long, conflicts_with = "report")]
    fit: bool,
    /// Write the fitted drive file
    #[arg(short, long, value_name = "F.toml", requires = "fit")]
    output: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Write a page with both distributions
    #[arg(long, value_name = "F.html")]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Delays {
    /// Between the request before and it
    Before,
    /// Between it and the next request
    After,
}

impl From<Delays> for GapReading {
    fn from(delays: Delays) -> Self {
        match delays {
            Delays::Before => Self::AsRecorded,
            Delays::After => Self::OneLater,
        }
    }
}

/// Bytes at the beginning of a file that tell whether it is no trace: fio's version is among its first
/// keys, and the columns of rates stand below a few lines of remarks.
const HEAD: u64 = 4096;

/// Longest output of fio, and longest log of rates: a week of seconds has a tenth.
const TEXT_MAX: Bytes = Bytes::from_kib(64 << 10);

/// Kind of a file without single requests.
enum Summary {
    Fio(String),
    Rates(String),
}

impl ValidateArgs {
    pub fn run(self) -> Result<(), Failure> {
        if let Some(path) = &self.report {
            for read in [&self.trace, Path::new(&self.drive)] {
                file::ensure_not_read(path, read)?;
            }
            file::ensure_writable(path)?;
        }
        let trace = TraceWorkload {
            file: self.trace.clone(),
            format: self.format.map(|format| format.name().to_owned()),
            ..TraceWorkload::default()
        };
        if let Some(summary) = self.summary()? {
            return self.compare(&summary);
        }
        if self.fit {
            return self.fit(&trace);
        }
        let validation =
            validate(&self.drive, &trace, self.delays.map(GapReading::from)).map_err(explain)?;
        if let Some(path) = &self.report {
            file::write_together(&[(path, &validation_html(&validation))])?;
        }
        if self.json {
            return output::print_document(&validation);
        }
        output::print(&text(&validation))
    }

    /// The text of the file, if it is no trace.
    fn summary(&self) -> Result<Option<Summary>, Failure> {
        let mut beginning = Vec::new();
        let file = std::fs::File::open(&self.trace);
        // The reader of traces says what is wrong with a file that cannot be read.
        if file.and_then(|file| file.take(HEAD).read_to_end(&mut beginning)).is_err() {
            return Ok(None);
        }
        let beginning = String::from_utf8_lossy(&beginning);
        let (of, what): (fn(String) -> Summary, _) = match () {
            () if is_fio(&beginning) => (Summary::Fio, "fio's output has"),
            () if is_rates(&beginning) => (Summary::Rates, "sequential rates have"),
            () => return Ok(None),
        };
        if self.fit || self.report.is_some() || self.delays.is_some() {
            return Err(Failure::wrong_use(format!(
                "{what} no single requests: leave out --fit, --report and --delays"
            )));
        }
        let text = read_text_up_to(&self.trace, TEXT_MAX);
        text.map(|text| Some(of(text)))
            .map_err(|error| Failure::failed(format!("{}: {error}", self.trace.display())))
    }

    fn compare(&self, summary: &Summary) -> Result<(), Failure> {
        let file = self.trace.display().to_string();
        match summary {
            Summary::Fio(text) => {
                let validation = validate_fio(&self.drive, &file, text)?;
                if self.json {
                    output::print_document(&validation)
                } else {
                    output::print(&text_of_fio(&validation))
                }
            }
            Summary::Rates(text) => {
                let validation = validate_rates(&self.drive, &file, text)?;
                if self.json {
                    output::print_document(&validation)
                } else {
                    output::print(&text_of_rates(&validation))
                }
            }
        }
    }

    fn fit(&self, trace: &TraceWorkload) -> Result<(), Failure> {
        self.output.as_deref().map_or(Ok(()), file::ensure_new)?;
        let gaps = self.delays.map(GapReading::from);
        let fit = fit_to_measured(&self.drive, trace, gaps).map_err(explain)?;
        if let Some(path) = &self.output {
            let toml = toml::to_string(&fit.spec)
                .map_err(|error| Failure::failed(format!("the drive: {error}")))?;
            file::write_together(&[(path, &toml)])?;
        }
        if self.json {
            return output::print_document(&fit);
        }
        output::print(&text_of_fit(&fit))
    }
}

fn text_of_fio(validation: &FioValidation) -> String {
    let mut table = Table::new("lrrrrrr");
    table.row(["job", "", "requests/s", "mean", "p50", "p99", "p99.9"]);
    for row in &validation.rows {
        let size = Bytes::new(row.bytes).human();
        let name = format!("{}: {} of {size}, {} at once", row.job, row.op, row.depth);
        for (name, by, of) in [(name, "fio", row.measured), (String::new(), "file", row.simulated)]
        {
            let ms = [Some(of.mean_ms), of.p50_ms, of.p99_ms, of.p999_ms];
            let [mean, p50, p99, p999] =
                ms.map(|ms| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2} ms")));
            let rate = format!("{:.0}", of.requests_per_second);
            table.row([name, by.to_owned(), rate, mean, p50, p99, p999]);
        }
    }
    let advice = if validation.advice.is_empty() {
        "File and measurement agree: means of single reads within 5 %, rates within 15 %."
            .to_owned()
    } else {
        validation.advice.join("\n")
    };
    let left_out = validation.left_out.iter().map(|why| format!("\nleft out: {why}"));
    format!(
        "{} against {}\n\n{table}\n{advice}{}\n",
        validation.drive,
        validation.file,
        left_out.collect::<String>()
    )
}

fn text_of_rates(validation: &RateValidation) -> String {
    let mb = |rate: f64| format!("{:.1} MB/s", rate / 1e6);
    let mut table = Table::new("rrrrrr");
    table.row(["zone", "first block", "stretches", "measured", "file", "difference"]);
    for zone in &validation.zones {
        let difference = zone.difference.map(|share| format!("{:+.1} %", share * 100.0));
        table.row([
            zone.zone.to_string(),
            grouped(zone.first_block),
            grouped(zone.stretches),
            zone.measured.map_or_else(|| "-".into(), mb),
            mb(zone.simulated),
            difference.unwrap_or_else(|| "-".into()),
        ]);
    }
    let advice = if validation.advice.is_empty() {
        "File and measurement agree within 3 % in every measured zone.".to_owned()
    } else {
        validation.advice.join("\n")
    };
    let left_out = validation.left_out.iter().map(|left_out| {
        format!("\nstretches left out: {}: {}", grouped(left_out.stretches), left_out.why)
    });
    format!(
        "{} against {}\n\n{table}\n{advice}{}\n",
        validation.drive,
        validation.file,
        left_out.collect::<String>()
    )
}

fn text_of_fit(fit: &ValidationFit) -> String {
    format!("{}{}", text_of_values(fit), text_of_angles(fit))
}

/// Angles that were looked for, and what the second half says of them.
fn text_of_angles(fit: &ValidationFit) -> String {
    if fit.angles.is_empty() {
        return "Angles of the spindle and of zones: the trace tells none.\n".into();
    }
    let mut table = Table::new("lrrrrrrl");
    table.row(["angles", "changed", "pairs", "R before", "after", "sd before", "after", "kept"]);
    for angle in &fit.angles {
        let [r_before, r_after] = angle.resultant_lengths.map(|length| format!("{length:.3}"));
        let [before, after] = angle.judged_sd_ms.map(|value| format!("{value:.3} ms"));
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

fn text_of_values(fit: &ValidationFit) -> String {
    let ms = |value: f64| format!("{value:.3} ms");
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

/// The way out, which is not to read less of the trace.
fn explain(error: Error) -> Failure {
    use ErrorKind::{DamagedHeader, DamagedTrace, MalformedHeader, MalformedRecord, OtherFormat};
    match error.kind() {
        // A measured trace is complete: each request follows the one before after its own time.
        DamagedHeader
        | MalformedHeader
        | MalformedRecord { .. }
        | OtherFormat { .. }
        | DamagedTrace { .. } => Failure::failed(error).with_help(
            "a measured trace has to be whole: mend that record, or copy the file again",
        ),
        _ => error.into(),
    }
}

fn text(v: &Validation) -> String {
    let ms = |value: f64| format!("{value:.3} ms");
    let share = |value: f64| format!("{:.2} %", value * 100.0);
    let mut sums = Table::new("lr");
    sums.row(["requests".to_owned(), grouped(v.requests)]);
    sums.row(["measured mean".to_owned(), ms(v.measured_mean_ms)]);
    let simulated = format!("{} ({})", ms(v.simulated_mean_ms), share(v.mean_error_share));
    sums.row(["simulated mean (error)".to_owned(), simulated]);
    let demerit = format!("{} ({})", ms(v.demerit_ms), share(v.demerit_share));
    sums.row(["demerit figure (of the mean)".to_owned(), demerit]);
    sums.row([
        "sd of the difference, request by request".to_owned(),
        ms(v.per_request_error_sd_ms),
    ]);
    let mut parts = Table::new("lrrrr");
    parts.row(["served here as", "requests", "measured", "simulated", "sd of difference"]);
    for part in &v.parts {
        let means = [part.measured_mean_ms, part.simulated_mean_ms, part.per_request_error_sd_ms];
        let [measured, simulated, sd] = means.map(ms);
        parts.row([part.name.to_owned(), grouped(part.requests), measured, simulated, sd]);
    }
    let mut quantiles = Table::new("rrr");
    quantiles.row(["share", "measured", "simulated"]);
    for q in &v.quantiles {
        quantiles.row([format!("{:.0} %", q.share * 100.0), ms(q.measured_ms), ms(q.simulated_ms)]);
    }
    let phase = phase(v);
    let gaps = v.gaps_in_words();
    format!("{} against {}\n\n{sums}\n{gaps}\n\n{parts}\n{quantiles}\n{phase}", v.drive, v.trace)
}

/// Words about the spindle's phase in the trace, and the error that it leaves.
fn phase(validation: &Validation) -> String {
    let phase = &validation.phase;
    let ms = |value: f64| format!("{value:.3} ms");
    let if_any = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), ms);
    let mut floors = Table::new("lrrr");
    floors.row(["sd of the difference", "achieved", "phase unknown", "resynchronised"]);
    for class in &phase.classes {
        let [achieved, floor] = [class.achieved_sd_ms, class.floor_sd_ms].map(ms);
        floors.row([class.name.to_owned(), achieved, floor, if_any(class.resynchronised_sd_ms)]);
    }
    let [achieved, floor] = [phase.achieved_sd_ms, phase.floor_sd_ms].map(ms);
    floors.row(["all".to_owned(), achieved, floor, if_any(phase.resynchronised_sd_ms)]);
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
        let [recorded, later, chance] = lengths.map(|length| format!("{length:.3}"));
        let (name, pairs) = (row.distance.name().to_owned(), grouped(row.as_recorded.pairs));
        let median = ms(row.achieved_median_ms);
        let resynchronised = if_any(row.resynchronised_median_ms);
        distances.row([name, pairs, recorded, later, chance, median, resynchronised]);
    }
    let title = "Is the rotational phase recoverable?";
    let pairs = phase.pairs_in_words();
    let key = "R: how much the angle found after a gap depends on the angle before it: 1 wholly, 0 not\n\
               at all. Gaps one later: read as if each gap came after its request. Resynchronised: with\n\
               our spindle set to the measured one after every visit to the media.";
    format!("{title}\n{}\n{key}\n\n{distances}{pairs}\n\n{floors}", phase.verdict)
}
