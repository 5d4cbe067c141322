//! A finding as data: what follows, one number, how sure, at what cost, one picture, and the rest.
//!
//! Terminal text, JSON and HTML are renderings of it. Tests assert these fields; the wording is in
//! snapshots.

use freewheel_study::figure::Figure;
use freewheel_units::{Bytes, grouped};
use serde::Serialize;

use crate::numbers::{ms, per_second, percent, rate, span};

/// One thing that follows from a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The subject of the finding.
    pub topic: Topic,
    /// Conclusion, in a line.
    pub headline: String,
    /// The number that matters most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
    /// Basis of the finding.
    pub confidence: Confidence,
    /// The cost of acting on it; absent where there is no action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The reader's next step; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The picture as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<Figure>,
    /// Further numbers and conditions, a paragraph each.
    pub details: Vec<String>,
}

/// The subject of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// Writes that a host-managed drive refuses.
    RefusedWrites,
    /// Shingled recording without its cache and cleaning.
    ShingledModel,
    /// Requests of the trace without a completion time.
    MissingCompletions,
    /// A load that the drive cannot serve.
    Overload,
    /// A trace that spans an unlikely time.
    LongTrace,
    /// A trace with an unlikely rate.
    FastTrace,
    /// A trace of less than a minute.
    ShortTrace,
    /// Requests that the replay delays.
    LateArrivals,
    /// Requests of an unlikely size.
    LargeRequests,
    /// Recorded responses that no drive takes.
    SlowResponses,
    /// Recorded responses faster than any drive.
    FastResponses,
    /// Requests for parts of blocks.
    PartialBlocks,
    /// Too few requests for a mean.
    FewRequests,
    /// A mean that a part of the trace makes.
    Burst,
    /// Recorded responses beside the simulated ones.
    RecordedResponses,
    /// A drive that was fitted to the recorded responses.
    FittedDrive,
    /// A scrub in the rotational gaps.
    Scrub,
    /// Changes that would help.
    Changes,
    /// Use of the head's time.
    HeadTime,
    /// Bandwidth of the gaps.
    Potential,
    /// A comparison of scheduling policies.
    Policy,
    /// Load of the drive.
    Load,
    /// Character of the requests.
    Workload,
    /// The drive's buffer.
    Buffer,
    /// Writes with force unit access.
    ForcedWrites,
    /// A drive modelled without its electronics.
    Electronics,
    /// Placement of the trace's addresses on the drive.
    Placement,
    /// Several devices on one drive.
    Devices,
    /// Assumed values of the drive file.
    AssumedValues,
    /// A damaged trace file.
    TraceFile,
    /// A trace whose clock starts again, or whose requests lie out of order.
    Order,
    /// A trace whose clock has long steps.
    CoarseTimes,
    /// A trace of a system that merged requests.
    Merged,
    /// PostMark with cleaning subtracted.
    IdealCleaner,
    /// PostMark's cleaning without gaps.
    CleanerGaps,
    /// A policy without a choice.
    NoChoice,
    /// A key of an experiment without an effect in it.
    WithoutEffect,
}

/// A quantity with its unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Number {
    /// The quantity in words.
    pub quantity: String,
    /// Value in the unit.
    pub value: f64,
    /// The unit of the value.
    pub unit: Unit,
}

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Seconds; `s` in JSON.
    #[serde(rename = "s")]
    Seconds,
    /// Nanoseconds; `ns` in JSON.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// A part of 1.
    #[serde(rename = "share")]
    Share,
    /// Bytes; `bytes` in JSON.
    #[serde(rename = "bytes")]
    Bytes,
    /// Bytes a second.
    #[serde(rename = "bytes/s")]
    BytesPerSecond,
    /// Requests a second.
    #[serde(rename = "requests/s")]
    RequestsPerSecond,
    /// A number of things.
    #[serde(rename = "count")]
    Count,
}

/// Basis of a finding, the firmest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Stated by the options or the drive file.
    Given,
    /// Counted in the trace.
    Counted,
    /// Simulated request by request, as far as the drive's model is right.
    Simulated,
    /// Extrapolated from simulated parts.
    Estimated,
    /// Simulated or estimated from too few requests.
    Hint,
}

/// Cost of acting on a finding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "class", rename_all = "kebab-case")]
pub enum Cost {
    /// Requests are served as before.
    Free,
    /// Another setting of the host or the drive.
    Setting,
    /// Requests wait longer.
    Response {
        /// Growth of the mean response time.
        added_ns: f64,
    },
    /// Another drive or another load.
    Hardware,
}

impl Finding {
    /// A finding of a line.
    pub(crate) fn new(topic: Topic, confidence: Confidence, headline: impl Into<String>) -> Self {
        Self {
            topic,
            headline: headline.into(),
            number: None,
            confidence,
            cost: None,
            action: None,
            figure: None,
            details: Vec::new(),
        }
    }

    pub(crate) fn number(mut self, quantity: impl Into<String>, value: f64, unit: Unit) -> Self {
        self.number = Some(Number { quantity: quantity.into(), value, unit });
        self
    }

    pub(crate) fn cost(self, cost: Cost) -> Self {
        Self { cost: Some(cost), ..self }
    }

    pub(crate) fn action(self, action: impl Into<String>) -> Self {
        Self { action: Some(action.into()), ..self }
    }

    pub(crate) fn figure(self, figure: Figure) -> Self {
        Self { figure: Some(figure), ..self }
    }

    /// One more paragraph; an empty one is left out.
    pub(crate) fn detail(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.details.push(text);
        }
        self
    }

    /// The finding as one from too few requests. What is given or counted stays as firm as it was.
    pub(crate) fn into_hint(mut self) -> Self {
        if matches!(self.confidence, Confidence::Simulated | Confidence::Estimated) {
            self.confidence = Confidence::Hint;
        }
        self
    }

    /// Number, confidence and cost in a line.
    pub fn facts(&self) -> String {
        let number = self.number.as_ref().map(Number::text);
        let cost = self.cost.map(|cost| format!("cost: {}", cost.text()));
        let confidence = Some(self.confidence.text().to_owned());
        [number, confidence, cost].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// The finding for a terminal: headline, facts and action. Details stay in the page and in JSON.
    pub fn text(&self) -> String {
        let action = self.action.as_ref().map_or(String::new(), |action| format!("  {action}\n"));
        format!("{}\n  {}\n{action}", self.headline, self.facts())
    }
}

impl Number {
    /// Quantity, value and unit.
    pub fn text(&self) -> String {
        format!("{}: {}", self.quantity, self.unit.text(self.value))
    }
}

impl Unit {
    /// A value in this unit, rounded for people.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Seconds => span(value),
            Self::Nanoseconds => format!("{} ms", ms(value)),
            Self::Share => percent(value),
            Self::Bytes => Bytes::new(value as u64).human(),
            Self::BytesPerSecond => rate(value),
            Self::RequestsPerSecond => format!("{}/s", per_second(value)),
            Self::Count => grouped(value as u64),
        }
    }
}

impl Confidence {
    /// The confidence in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Given => "as set",
            Self::Counted => "counted in the trace",
            Self::Simulated => "simulated",
            Self::Estimated => "estimated",
            Self::Hint => "a hint from few requests",
        }
    }
}

impl Cost {
    /// Smallest growth of the mean response that is written as a number.
    const VISIBLE_NS: f64 = 5_000.0;

    /// The cost in words.
    pub fn text(self) -> String {
        match self {
            Self::Free => "none".into(),
            Self::Setting => "another setting".into(),
            Self::Response { added_ns } if added_ns < Self::VISIBLE_NS => {
                "mean response +less than 0.01 ms".into()
            }
            Self::Response { added_ns } => format!("mean response +{} ms", ms(added_ns)),
            Self::Hardware => "another drive or load".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(confidence: Confidence) -> Finding {
        Finding::new(Topic::Scrub, confidence, "It ends.")
    }

    #[test]
    fn finding_names_number_confidence_and_cost() {
        let full = finding(Confidence::Estimated)
            .number("time", 3.25 * 86_400.0, Unit::Seconds)
            .cost(Cost::Response { added_ns: 320_000.0 });
        assert_eq!(full.facts(), "time: 3.2 days; estimated; cost: mean response +0.32 ms");
        assert_eq!(finding(Confidence::Given).facts(), "as set");
        let few = full.cost(Cost::Response { added_ns: 4_000.0 }).facts();
        assert!(few.ends_with("+less than 0.01 ms"), "{few}");
    }

    #[test]
    fn finding_of_few_requests_is_weakened() {
        let hint = |confidence| finding(confidence).into_hint().confidence;
        assert_eq!(hint(Confidence::Estimated), Confidence::Hint);
        assert_eq!(hint(Confidence::Simulated), Confidence::Hint);
        assert_eq!(hint(Confidence::Counted), Confidence::Counted);
        assert_eq!(hint(Confidence::Given), Confidence::Given);
    }

    #[test]
    fn finding_empty_paragraph_is_no_detail() {
        assert_eq!(finding(Confidence::Given).detail("").detail("a").details, ["a"]);
    }

    #[test]
    fn finding_document_has_units_omits_absent() {
        let finding = finding(Confidence::Simulated).number("share", 0.5, Unit::Share);
        let json = serde_json::to_value(&finding).unwrap();
        assert_eq!(json["number"]["unit"], "share");
        assert_eq!((&json["topic"], &json["confidence"]), (&"scrub".into(), &"simulated".into()));
        assert!(json.get("cost").is_none() && json.get("figure").is_none());
    }
}
