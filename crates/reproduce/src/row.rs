//! One number of a claim: a paper's beside ours, and the verdict.

use serde::Serialize;

/// Unit of a row that is 1 when its quantity holds and 0 when it does not.
pub const HOLDS: &str = "1 = holds";

/// One number of a paper beside ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Id of the claim.
    pub id: &'static str,
    /// What is measured.
    pub quantity: String,
    /// Unit of all values of the row.
    pub unit: &'static str,
    /// The paper's number, or the least of its range.
    pub paper: Option<f64>,
    /// The largest number of the paper's range.
    pub paper_to: Option<f64>,
    /// Ours: the median over the seeds. Not a number, `null` in JSON, when the row was not run.
    pub ours: f64,
    /// The least and the largest of ours over the seeds; none for a single seed.
    pub range: Option<[f64; 2]>,
    /// Seeds behind `ours`.
    pub seeds: usize,
    /// Seeds whose own number lies in the band.
    pub seeds_inside: usize,
    /// What counts as reproduced or as reaching the goal. A row of `beyond.*` without a goal has none.
    pub band: Option<[f64; 2]>,
    /// Whether ours lies in the band; true of a row without one.
    pub inside: bool,
    /// What the row compares.
    pub kind: Kind,
    /// What the row counts as.
    pub verdict: Verdict,
    /// The free parameter that was chosen so that this very number comes out.
    pub calibrated: Option<String>,
    /// Why a row outside its band passes; None inside the band.
    pub deviation: Option<Deviation>,
    /// Whether the number is processor time, which differs between machines and runs.
    pub is_timing: bool,
    /// Whether no paper has the number.
    #[serde(skip)]
    is_own: bool,
    /// Whether the paper does not print the number: it follows from others of its numbers, or from its words.
    #[serde(skip)]
    is_derived: bool,
    /// What stands in for something that was never published or is not here, with the page where anyone gets
    /// it and its SHA-256.
    pub stands_in: Option<String>,
    /// Further numbers of the same run.
    pub note: Option<String>,
}

/// What a row compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A paper's number with a band on either side of it.
    Number,
    /// An order, a shape or a limit of a paper: yes or no.
    Shape,
    /// A measure or a goal of this project, or processor time.
    Own,
}

/// What a row counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A paper's number inside its band, predicted without looking at it.
    Reproduced,
    /// A paper's order, shape or limit that holds.
    Holds,
    /// A paper's number inside its band, for which a free parameter was chosen.
    Calibrated,
    /// Outside the band, within the tolerance of the value recorded with its reason.
    KnownDeviation,
    /// Inside the band on some seeds and outside on others, or near enough to it that others may be. The row
    /// proves nothing.
    Unsteady,
    /// A goal of this project that ours reaches.
    GoalReached,
    /// A number without a band.
    Measured,
    /// Outside the band and outside any known deviation: a failure.
    Drifted,
    /// A number of a generated trace in place of a public one that is missing: compared with nothing.
    StandIn,
    /// Something that the row needs is missing: a failure.
    NotRun,
}

/// A value outside the band that is known, and the reason for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deviation {
    /// Ours as it was recorded.
    pub value: f64,
    /// How far from it ours may lie on either side.
    pub tolerance: f64,
    /// Why ours differs from the paper's.
    pub reason: String,
}

impl Deviation {
    fn covers(&self, ours: f64) -> bool {
        (ours - self.value).abs() <= self.tolerance
    }
}

impl Verdict {
    /// Whether a row with it is no failure.
    pub fn passes(self) -> bool {
        !matches!(self, Self::Drifted | Self::NotRun)
    }

    /// Whether the number was found out at all.
    pub fn was_run(self) -> bool {
        self != Self::NotRun
    }

    /// The verdict in words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Holds => "holds",
            Self::Unsteady => "unsteady",
            Self::Calibrated => "calibrated",
            Self::KnownDeviation => "known deviation",
            Self::GoalReached => "goal reached",
            Self::Measured => "measured",
            Self::Drifted => "OUTSIDE",
            Self::StandIn => "stand-in",
            Self::NotRun => "NOT RUN",
        }
    }
}

impl Row {
    pub(super) fn new(id: &'static str, quantity: &str, unit: &'static str, ours: f64) -> Self {
        Self {
            id,
            quantity: quantity.into(),
            unit,
            paper: None,
            paper_to: None,
            ours,
            range: None,
            seeds: 1,
            seeds_inside: 1,
            band: None,
            inside: true,
            kind: Kind::Own,
            verdict: Verdict::Measured,
            calibrated: None,
            deviation: None,
            is_timing: false,
            is_own: false,
            is_derived: false,
            stands_in: None,
            note: None,
        }
    }

    pub(super) fn within(mut self, band: [f64; 2]) -> Self {
        self.band = Some(band);
        self.inside = (band[0]..=band[1]).contains(&self.ours);
        self.seeds_inside = self.inside.into();
        self.judge()
    }

    /// The row with the paper's number, or the ends of its range.
    pub(super) fn of_paper(mut self, [least, most]: [f64; 2]) -> Self {
        self.paper = Some(least);
        self.paper_to = (most != least).then_some(most);
        self.judge()
    }

    /// A measure of this project in a paper's claim, such as a model held against its simulation.
    pub(super) fn own(mut self) -> Self {
        self.is_own = true;
        self.judge()
    }

    /// A number that the paper does not print. It counts as a shape, for it follows from numbers that count
    /// already, or from words.
    pub(super) fn derived(mut self) -> Self {
        self.is_derived = true;
        self.judge()
    }

    /// One row from those of several seeds: that with the median, and the range. Seeds that do not agree on
    /// which side of the band they lie leave the verdict open.
    pub(super) fn median(mut rows: Vec<Self>) -> Self {
        let seeds = rows.len();
        rows.sort_by(|a, b| a.ours.total_cmp(&b.ours));
        // A number that is missing sorts last, and is a failure of the row.
        if rows[seeds - 1].verdict == Verdict::NotRun {
            return rows.swap_remove(seeds - 1);
        }
        let range = [rows[0].ours, rows[seeds - 1].ours];
        let seeds_inside = rows.iter().filter(|row| row.inside).count();
        let lower = rows[(seeds - 1) / 2].ours;
        let mut middle = rows.swap_remove(seeds / 2);
        // What holds on half of the seeds holds on no more than that.
        middle.ours = if middle.unit == HOLDS { lower } else { f64::midpoint(lower, middle.ours) };
        middle.inside = middle.band.is_none_or(|[low, high]| (low..=high).contains(&middle.ours));
        let range = (seeds > 1 && middle.unit != HOLDS).then_some(range);
        let row = Self { range, seeds, seeds_inside, ..middle };
        if row.verdict == Verdict::StandIn { row } else { row.judge() }
    }

    /// A row that lacks something: `why` says what, and the way out.
    pub(super) fn not_run(mut self, why: String) -> Self {
        self.ours = f64::NAN;
        self.inside = false;
        self.verdict = Verdict::NotRun;
        self.note = Some(why);
        self
    }

    /// The row is no evidence: `parameter` was chosen so that its number comes out.
    pub(super) fn calibrated_by(mut self, parameter: &str) -> Self {
        self.calibrated = Some(parameter.into());
        self.judge()
    }

    /// Ours is known to lie `tolerance` around `value`, outside the band, for a reason. Inside the band
    /// the deviation is dropped.
    pub(super) fn deviates(
        mut self,
        value: f64,
        tolerance: f64,
        reason: impl Into<String>,
    ) -> Self {
        if !self.inside {
            self.deviation = Some(Deviation { value, tolerance, reason: reason.into() });
        }
        self.judge()
    }

    pub(super) fn standing_in(self, what: &str) -> Self {
        Self { stands_in: Some(what.into()), ..self }
    }

    /// The row is of a generated trace, which `what` says, and is compared with nothing.
    pub(super) fn generated(self, what: &str) -> Self {
        let row = Self::new(self.id, &self.quantity, self.unit, self.ours);
        let note = self.note;
        Self { verdict: Verdict::StandIn, stands_in: Some(what.into()), note, ..row }
    }

    pub(super) fn noted(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// The row with one more number in its note.
    pub(super) fn also(mut self, more: &str) -> Self {
        self.note = Some(match self.note {
            Some(note) => format!("{note}; {more}"),
            None => more.into(),
        });
        self
    }

    /// The number is processor time.
    pub(super) fn timing(mut self) -> Self {
        self.is_timing = true;
        self.judge()
    }

    fn judge(mut self) -> Self {
        self.kind = self.find_kind();
        let is_known = self.deviation.as_ref().is_some_and(|known| known.covers(self.ours));
        let is_unsteady = !self.is_timing && (1..self.seeds).contains(&self.seeds_inside);
        self.verdict = match (self.band, self.inside) {
            (None, _) => Verdict::Measured,
            (Some(_), _) if is_unsteady || self.is_around_band() => Verdict::Unsteady,
            (Some(_), false) if is_known => Verdict::KnownDeviation,
            (Some(band), false) if self.scatters_too_far(band) => Verdict::Unsteady,
            (Some(_), false) => Verdict::Drifted,
            (Some(_), true) if self.kind == Kind::Own => Verdict::GoalReached,
            (Some(_), true) if self.calibrated.is_some() => Verdict::Calibrated,
            (Some(_), true) if self.kind == Kind::Number => Verdict::Reproduced,
            (Some(_), true) => Verdict::Holds,
        };
        self
    }

    /// True if no seed is inside the band, some being below it and some above.
    fn is_around_band(&self) -> bool {
        let ends = self.band.zip(self.range).filter(|_| !self.is_timing && self.seeds_inside == 0);
        ends.is_some_and(|([low, high], [least, most])| least < low && high < most)
    }

    /// True if no seed is inside the band, and other seeds would give another verdict: the band begins within half
    /// of the seeds' scatter, or the recorded deviation lies within all of it.
    fn scatters_too_far(&self, [low, high]: [f64; 2]) -> bool {
        let Some([least, most]) = self.range.filter(|_| !self.is_timing) else { return false };
        let scatter = most - least;
        let is_near = f64::max(least - high, low - most) < scatter / 2.0;
        let recorded = self.deviation.as_ref().map(|known| (self.ours - known.value).abs());
        is_near || recorded.is_some_and(|distance| distance <= scatter)
    }

    fn find_kind(&self) -> Kind {
        if self.id.starts_with(BEYOND) || self.is_timing || self.is_own || self.band.is_none() {
            return Kind::Own;
        }
        match (self.paper, self.band) {
            (Some(least), Some(band)) if self.unit != HOLDS && !self.is_derived => {
                let paper = [least, self.paper_to.unwrap_or(least)];
                if is_two_sided(band, paper, self.unit) { Kind::Number } else { Kind::Shape }
            }
            _ => Kind::Shape,
        }
    }
}

/// Whether a band around a paper's number can fail on either side. A band that reaches zero from a number
/// other than zero cannot, nor can one that reaches all of what there is.
fn is_two_sided([low, high]: [f64; 2], [least, most]: [f64; 2], unit: &str) -> bool {
    let reaches_zero = low <= 0.0 && 0.0 <= high && (least > 0.0 || most < 0.0);
    let reaches_all = unit == "%" && high == 100.0;
    low < least && most < high && !reaches_zero && !reaches_all
}

/// Beginning of the ids of what no paper claims.
pub const BEYOND: &str = "beyond.";

/// Rows by verdict. The first four are what a headline says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Papers' numbers inside a band on either side, predicted.
    pub numbers: usize,
    /// Papers' orders, shapes and limits that hold.
    pub shapes: usize,
    /// Goals of this project that are reached, and its measures without a goal.
    pub own: usize,
    /// Outside the band as recorded.
    pub known_deviations: usize,
    /// Papers' numbers, orders and shapes that a parameter was chosen for.
    pub calibrated: usize,
    /// The verdict hangs on the seed.
    pub unsteady: usize,
    /// Those of them whose median is outside the band.
    pub unsteady_outside: usize,
    /// Numbers of generated traces.
    pub stand_ins: usize,
    /// Failures: outside the band.
    pub drifted: usize,
    /// Failures: something is missing.
    pub not_run: usize,
}

impl Counts {
    /// Counts these rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut counts = Self::default();
        for row in rows {
            if row.verdict == Verdict::Unsteady && !row.inside {
                counts.unsteady_outside += 1;
            }
            *match row.verdict {
                Verdict::Reproduced => &mut counts.numbers,
                Verdict::Holds => &mut counts.shapes,
                Verdict::GoalReached | Verdict::Measured => &mut counts.own,
                Verdict::KnownDeviation => &mut counts.known_deviations,
                Verdict::Calibrated => &mut counts.calibrated,
                Verdict::Unsteady => &mut counts.unsteady,
                Verdict::StandIn => &mut counts.stand_ins,
                Verdict::Drifted => &mut counts.drifted,
                Verdict::NotRun => &mut counts.not_run,
            } += 1;
        }
        counts
    }

    /// The counts that are not zero, in words: "23 numbers reproduced, 4 calibrated".
    pub fn words(&self) -> String {
        let counts = [
            (self.numbers, "number reproduced", "numbers reproduced"),
            (self.shapes, "order or shape holds", "orders and shapes hold"),
            (self.own, "own measure or goal", "own measures and goals"),
            (self.known_deviations, "known deviation", "known deviations"),
            (self.calibrated, "calibrated", "calibrated"),
            (self.unsteady, "unsteady over the seeds", "unsteady over the seeds"),
            (self.unsteady_outside, "of it outside", "of them outside"),
            (self.stand_ins, "on a generated stand-in", "on generated stand-ins"),
            (self.drifted, "OUTSIDE its band", "OUTSIDE their bands"),
            (self.not_run, "NOT RUN", "NOT RUN"),
        ];
        let some = counts.into_iter().filter(|(count, ..)| *count > 0);
        let words = some
            .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
        words.collect::<Vec<String>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: f64) -> Row {
        Row::new("osdi00.fig0", "share", "%", ours).within([10.0, 20.0])
    }

    fn paper(ours: f64) -> Row {
        row(ours).of_paper([15.0; 2])
    }

    #[test]
    fn row_in_band_is_reproduced() {
        let known = paper(15.0).deviates(25.0, 1.0, "no reason");
        assert_eq!(known, paper(15.0));
        assert_eq!(known.verdict, Verdict::Reproduced);
    }

    #[test]
    fn row_outside_passes_as_known_deviation() {
        let with = |ours| row(ours).deviates(25.0, 1.0, "a wrong model").verdict;
        assert_eq!(with(24.5), Verdict::KnownDeviation);
        // 5 % of drift.
        assert_eq!(with(25.0 * 1.05), Verdict::Drifted);
        assert_eq!(row(24.5).noted("a note is no reason").verdict, Verdict::Drifted);
        assert_eq!(with(f64::NAN), Verdict::Drifted);
    }

    #[test]
    fn row_calibrated_may_still_drift() {
        assert_eq!(row(15.0).calibrated_by("jitter").verdict, Verdict::Calibrated);
        assert_eq!(row(21.0).calibrated_by("jitter").verdict, Verdict::Drifted);
    }

    #[test]
    fn row_goals_and_measures_are_own() {
        let beyond = Row::new("beyond.fig0", "share", "%", 15.0);
        assert_eq!(beyond.verdict, Verdict::Measured);
        assert_eq!(beyond.clone().within([10.0, 20.0]).verdict, Verdict::GoalReached);
        assert_eq!(beyond.within([16.0, 20.0]).verdict, Verdict::Drifted);
        assert_eq!(paper(15.0).timing().verdict, Verdict::GoalReached);
        assert_eq!(paper(15.0).own().verdict, Verdict::GoalReached);
    }

    #[test]
    fn row_number_needs_two_sided_band() {
        let kind = |paper: [f64; 2], band| {
            Row::new("osdi00.fig0", "share", "%", 15.0).within(band).of_paper(paper).kind
        };
        assert_eq!(kind([15.0; 2], [10.0, 20.0]), Kind::Number);
        assert_eq!(kind([12.0, 18.0], [10.0, 20.0]), Kind::Number);
        assert_eq!(kind([0.0; 2], [-2.0, 20.0]), Kind::Number);
        for band in [[0.0, 20.0], [-1.0, 20.0], [15.0, 20.0], [10.0, 100.0]] {
            assert_eq!(kind([15.0; 2], band), Kind::Shape, "{band:?}");
        }
        assert_eq!(row(15.0).kind, Kind::Shape);
    }

    #[test]
    fn row_verdict_is_of_median() {
        let of = |ours: &[f64]| Row::median(ours.iter().map(|&ours| paper(ours)).collect());
        let row = of(&[19.0, 11.0, 15.0, 12.0, 18.0]);
        assert_eq!((row.ours, row.range), (15.0, Some([11.0, 19.0])));
        assert_eq!((row.seeds, row.seeds_inside), (5, 5));
        assert_eq!(row.verdict, Verdict::Reproduced);
        assert_eq!(of(&[21.5, 22.0, 22.5]).verdict, Verdict::Drifted);
        let known = |ours: f64| paper(ours).deviates(25.0, 1.0, "a wrong model");
        let row = Row::median([21.0, 24.5, 29.0].map(known).into());
        assert_eq!((row.ours, row.verdict), (24.5, Verdict::KnownDeviation));
        assert_eq!(of(&[11.0, 12.0, 16.0, 19.0]).ours, 14.0);
        // Of seeds that scatter more than it drifts, a deviation is not known.
        let row = Row::median([28.0, 29.0, 33.0].map(known).into());
        assert_eq!(row.verdict, Verdict::Unsteady);
        let row = Row::median([28.0, 29.0, 31.0].map(known).into());
        assert_eq!(row.verdict, Verdict::Drifted);
        assert_eq!(of(&[15.0]).range, None);
    }

    #[test]
    fn row_disagreeing_seeds_leave_verdict_open() {
        for ours in [[15.0, 15.0, 21.0], [15.0, 21.0, 21.0]] {
            let row = Row::median(ours.map(paper).into());
            assert_eq!(row.verdict, Verdict::Unsteady);
            assert!(row.verdict.passes());
        }
        // Time differs between runs, too.
        let timed = |ours| paper(ours).timing();
        assert_eq!(Row::median([15.0, 15.0, 21.0].map(timed).into()).verdict, Verdict::GoalReached);
        // None is inside, and another one well may be.
        assert_eq!(Row::median([21.0, 23.0, 24.0].map(paper).into()).verdict, Verdict::Unsteady);
        assert_eq!(Row::median([23.0, 24.0, 25.0].map(paper).into()).verdict, Verdict::Drifted);
        let known = |ours: f64| paper(ours).deviates(25.0, 1.0, "a wrong model");
        assert_eq!(Row::median([9.0, 25.0, 26.0].map(known).into()).verdict, Verdict::Unsteady);
        let missing = paper(15.0).not_run("no recording".into());
        let row = Row::median(vec![paper(15.0), missing, paper(15.0)]);
        assert_eq!(row.verdict, Verdict::NotRun);
    }

    #[test]
    fn row_of_generated_trace_is_stand_in() {
        for ours in [15.0, 21.0] {
            let paper = Row { paper: Some(15.0), ..row(ours).deviates(21.0, 1.0, "a wrong model") };
            let generated = paper.noted("hot").generated("a generated trace, seed 1");
            assert!(generated.verdict.passes());
            assert_eq!(
                (generated.paper, generated.band, &generated.deviation),
                (None, None, &None)
            );
            assert_eq!((generated.ours, generated.note.as_deref()), (ours, Some("hot")));
            let counts = Counts::of(&[generated]);
            assert_eq!(counts, Counts { stand_ins: 1, ..Counts::default() });
            assert_eq!(counts.words(), "1 on a generated stand-in");
        }
    }

    #[test]
    fn row_missing_is_counted_as_failure() {
        let missing = row(15.0).not_run("no recording".into());
        assert!(!missing.verdict.passes());
        let rows = [missing, paper(12.0), row(13.0), row(1.0)];
        let counts = Counts::of(&rows);
        let expected =
            Counts { numbers: 1, shapes: 1, drifted: 1, not_run: 1, ..Counts::default() };
        assert_eq!(counts, expected);
        let words = "1 number reproduced, 1 order or shape holds, 1 OUTSIDE its band, 1 NOT RUN";
        assert_eq!(counts.words(), words);
    }
}
