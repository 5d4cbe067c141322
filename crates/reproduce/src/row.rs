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
    /// The paper's number, where it gives one and not a range.
    pub paper: Option<f64>,
    /// Ours; not a number, `null` in JSON, when the row was not run.
    pub ours: f64,
    /// What counts as reproduced or as reaching the goal. A row of `beyond.*` without a goal has none.
    pub band: Option<[f64; 2]>,
    /// Whether ours lies in the band; true of a row without one.
    pub inside: bool,
    /// What the row counts as.
    pub verdict: Verdict,
    /// The free parameter that was chosen so that this very number comes out.
    pub calibrated: Option<String>,
    /// Why a row outside its band passes; None inside the band.
    pub deviation: Option<Deviation>,
    /// Whether the number is processor time, which differs between machines and runs.
    pub is_timing: bool,
    /// What stands in for something that was never published or is not here, with the page where anyone gets
    /// it and its SHA-256.
    pub stands_in: Option<String>,
    /// Further numbers of the same run.
    pub note: Option<String>,
}

/// What a row counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A paper's number inside its band, predicted without looking at it.
    Reproduced,
    /// A paper's number inside its band, for which a free parameter was chosen.
    Calibrated,
    /// Outside the band, within the tolerance of the value recorded with its reason.
    KnownDeviation,
    /// A goal of `beyond.*` that ours reaches.
    GoalReached,
    /// A number of `beyond.*` without a goal.
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
            ours,
            band: None,
            inside: true,
            verdict: Verdict::Measured,
            calibrated: None,
            deviation: None,
            is_timing: false,
            stands_in: None,
            note: None,
        }
    }

    /// The row with this band.
    pub(super) fn within(mut self, band: [f64; 2]) -> Self {
        self.band = Some(band);
        self.inside = (band[0]..=band[1]).contains(&self.ours);
        self.judge()
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
    pub(super) fn timing(self) -> Self {
        Self { is_timing: true, ..self }
    }

    fn judge(mut self) -> Self {
        let is_paper = !self.id.starts_with(BEYOND);
        let is_known = self.deviation.as_ref().is_some_and(|known| known.covers(self.ours));
        self.verdict = match (self.band, self.inside) {
            (None, _) => Verdict::Measured,
            (Some(_), false) if is_known => Verdict::KnownDeviation,
            (Some(_), false) => Verdict::Drifted,
            (Some(_), true) if !is_paper => Verdict::GoalReached,
            (Some(_), true) if self.calibrated.is_some() => Verdict::Calibrated,
            (Some(_), true) => Verdict::Reproduced,
        };
        self
    }
}

/// Beginning of the ids of what no paper claims.
pub const BEYOND: &str = "beyond.";

/// Rows by verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Papers' numbers, predicted.
    pub reproduced: usize,
    /// Papers' numbers that a parameter was chosen for.
    pub calibrated: usize,
    /// Outside the band as recorded.
    pub known_deviations: usize,
    /// Goals of `beyond.*` that are reached.
    pub goals_reached: usize,
    /// Numbers of `beyond.*` without a goal.
    pub measured: usize,
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
            *match row.verdict {
                Verdict::Reproduced => &mut counts.reproduced,
                Verdict::Calibrated => &mut counts.calibrated,
                Verdict::KnownDeviation => &mut counts.known_deviations,
                Verdict::GoalReached => &mut counts.goals_reached,
                Verdict::Measured => &mut counts.measured,
                Verdict::StandIn => &mut counts.stand_ins,
                Verdict::Drifted => &mut counts.drifted,
                Verdict::NotRun => &mut counts.not_run,
            } += 1;
        }
        counts
    }

    /// The counts that are not zero, in words: "23 reproduced, 4 calibrated".
    pub fn words(&self) -> String {
        let counts = [
            (self.reproduced, "reproduced", "reproduced"),
            (self.calibrated, "calibrated", "calibrated"),
            (self.goals_reached, "goal reached", "goals reached"),
            (self.measured, "measured without a goal", "measured without a goal"),
            (self.known_deviations, "known deviation", "known deviations"),
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

    #[test]
    fn a_number_in_its_band_is_reproduced_and_keeps_no_excuse() {
        let known = row(15.0).deviates(25.0, 1.0, "no reason");
        assert_eq!(known, row(15.0));
        assert_eq!(known.verdict, Verdict::Reproduced);
    }

    #[test]
    fn a_number_outside_passes_as_the_recorded_deviation_alone() {
        let with = |ours| row(ours).deviates(25.0, 1.0, "a wrong model").verdict;
        assert_eq!(with(24.5), Verdict::KnownDeviation);
        // 5 % of drift.
        assert_eq!(with(25.0 * 1.05), Verdict::Drifted);
        assert_eq!(row(24.5).noted("a note is no reason").verdict, Verdict::Drifted);
        assert_eq!(with(f64::NAN), Verdict::Drifted);
    }

    #[test]
    fn a_calibrated_number_is_no_reproduced_one_and_may_still_drift() {
        assert_eq!(row(15.0).calibrated_by("jitter").verdict, Verdict::Calibrated);
        assert_eq!(row(21.0).calibrated_by("jitter").verdict, Verdict::Drifted);
    }

    #[test]
    fn beyond_the_papers_a_band_is_a_goal_and_a_number_may_have_none() {
        let beyond = Row::new("beyond.fig0", "share", "%", 15.0);
        assert_eq!(beyond.verdict, Verdict::Measured);
        assert_eq!(beyond.clone().within([10.0, 20.0]).verdict, Verdict::GoalReached);
        assert_eq!(beyond.within([16.0, 20.0]).verdict, Verdict::Drifted);
    }

    #[test]
    fn a_number_of_a_generated_trace_is_neither_reproduced_nor_a_failure() {
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
    fn what_is_missing_is_counted_apart_and_is_a_failure() {
        let missing = row(15.0).not_run("no recording".into());
        assert!(!missing.verdict.passes());
        let rows = [missing, row(12.0), row(13.0), row(1.0)];
        let counts = Counts::of(&rows);
        assert_eq!(counts, Counts { reproduced: 2, drifted: 1, not_run: 1, ..Counts::default() });
        assert_eq!(counts.words(), "2 reproduced, 1 OUTSIDE its band, 1 NOT RUN");
    }
}
