//! Reproduced claims as tables of a terminal.

use freewheel_reproduce::{CLAIMS, Comparison, Reproduction, Row, Verdict};
use freewheel_units::four_digits;

use crate::table::Table;
use crate::text::Text;

/// Text about a row that fails.
pub(crate) fn fault(row: &Row) -> String {
    let what = format!("{} {}", row.id, row.quantity);
    if !row.verdict.was_run() {
        return format!("{what}: not run: {}", row.note.as_deref().unwrap_or_default());
    }
    let ours = format!("{} {}", four_digits(row.ours), row.unit);
    let known = row.deviation.as_ref().map_or(String::new(), |known| {
        let [value, tolerance] = [known.value, known.tolerance].map(four_digits);
        format!(", and the known deviation is {value} within {tolerance}")
    });
    format!("{what}: {ours} is outside {}{known}", band(row))
}

fn band(row: &Row) -> String {
    range(row.band)
}

fn range(ends: Option<[f64; 2]>) -> String {
    ends.map_or("-".into(), |ends| {
        let [low, high] = ends.map(four_digits);
        format!("{low} to {high}")
    })
}

fn paper(row: &Row) -> String {
    match (row.paper, row.paper_to) {
        (Some(least), Some(most)) => range(Some([least, most])),
        (paper, _) => paper.map_or("-".into(), four_digits),
    }
}

fn verdict(row: &Row) -> String {
    let title = row.verdict.title();
    match row.verdict {
        Verdict::Unsteady => format!("{title}, {} of {} inside", row.seeds_inside, row.seeds),
        _ => title.into(),
    }
}

/// A claim in real time beside virtual time.
impl Text for [Comparison] {
    fn text(&self) -> String {
        let mut table = Table::new("llrrrl");
        table.row(["quantity", "unit", "real time", "virtual time", "band", "inside"]);
        for row in self {
            table.row([
                row.quantity.to_owned(),
                row.unit.to_owned(),
                four_digits(row.real),
                four_digits(row.simulated),
                range(Some(row.band)),
                if row.inside { "yes" } else { "NO" }.to_owned(),
            ]);
        }
        table.to_string()
    }
}

/// A claim with its rows and what is to be noted about them.
pub(crate) fn text(reproduction: &Reproduction) -> String {
    let claim = CLAIMS.iter().find(|claim| claim.id == reproduction.id);
    let (title, setting) = claim.map_or(("", ""), |claim| (claim.title, claim.setting));
    let mut table = Table::new("llrrrrl");
    table.row(["quantity", "unit", "paper", "ours", "over seeds", "band", "verdict"]);
    reproduction.rows.iter().for_each(|row| table.row(cells(row)));
    let notes: String = reproduction.rows.iter().map(notes).collect();
    format!("{}: {title}\n{setting}\n\n{table}{notes}", reproduction.id)
}

fn cells(row: &Row) -> [String; 7] {
    [
        row.quantity.to_string(),
        row.unit.to_string(),
        paper(row),
        if row.ours.is_nan() { "-".into() } else { four_digits(row.ours) },
        range(row.range),
        band(row),
        verdict(row),
    ]
}

fn notes(row: &Row) -> String {
    let known = row.deviation.iter().map(|known| {
        let [value, tolerance] = [known.value, known.tolerance].map(four_digits);
        format!("known deviation, {value} within {tolerance}: {}", known.reason)
    });
    let calibrated = row.calibrated.iter().map(|parameter| format!("calibrated by {parameter}"));
    let stands_in = row.stands_in.iter().map(|text| format!("stands in: {text}"));
    let texts = known.chain(calibrated).chain(stands_in).chain(row.note.iter().cloned());
    texts.map(|text| format!("  {}: {text}\n", row.quantity)).collect()
}
