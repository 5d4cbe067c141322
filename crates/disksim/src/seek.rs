//! Seek types to seek curves.

use freewheel_model::drive::spec::{CurveSpec, SeekSpec};
use freewheel_units::SimDuration;

use crate::error::{ImportError, Place, missing, wrong};
use crate::fields::{Fields, Report, list, number, text, whole};
use crate::lex::Texts;
use crate::number::Decimal;
use crate::parse::Param;

const CYLINDERS_MAX: u32 = 4_000_000;

/// Curve and write settling of a `dm_mech_g1` block.
pub(crate) fn seek_spec(
    fields: &mut Fields<'_>,
    cylinders: u32,
    texts: &mut Texts<'_>,
    report: &mut Report,
) -> Result<SeekSpec, ImportError> {
    let read = curve(fields, cylinders, texts, report)?;
    let (settle, param) = fields.need_number("Add. write settling delay")?;
    let mut spec = SeekSpec {
        read,
        write: None,
        write_settle: SimDuration::ZERO,
        tolerance: SimDuration::ZERO,
    };
    if settle.is_negative() {
        write_sooner(&mut spec, settle, param, report);
    } else {
        spec.write_settle = settle
            .ms(Decimal::ONE)
            .ok_or_else(|| wrong(&param.value.at, "a settling delay beyond 1000 s"))?;
    }
    Ok(spec)
}

/// Gives writes a separate curve when they settle faster than reads.
fn write_sooner(spec: &mut SeekSpec, settle: Decimal, param: &Param, report: &mut Report) {
    spec.write = Some(moved(&spec.read, settle.f64()));
    report.lost(
        param,
        "negative: the curve of writes is that much lower, but head changes without an arm \
         movement are not made shorter",
    );
}

/// The curve with `ms` added everywhere. Every form stays in its form.
fn moved(curve: &CurveSpec, ms: f64) -> CurveSpec {
    let mut moved = curve.clone();
    match &mut moved {
        CurveSpec::Table { cylinders_ms } => cylinders_ms.iter_mut().for_each(|(_, t)| *t += ms),
        CurveSpec::ThreePoint { single_ms, average_ms, full_ms } => {
            for time in [single_ms, average_ms, full_ms] {
                *time += ms;
            }
        }
        CurveSpec::Hp { first_ms, short_ms, long_ms, .. } => {
            first_ms.iter_mut().for_each(|t| *t += ms);
            *short_ms += ms;
            *long_ms += ms;
        }
        CurveSpec::PowerLinear { single_ms, break_ms, full_ms, .. } => {
            for time in [single_ms, break_ms, full_ms] {
                *time += ms;
            }
        }
    }
    moved
}

fn curve(
    fields: &mut Fields<'_>,
    cylinders: u32,
    texts: &mut Texts<'_>,
    report: &mut Report,
) -> Result<CurveSpec, ImportError> {
    let kind = fields.need("Seek type")?;
    let mut ms = |key: &str| -> Result<f64, ImportError> { Ok(fields.need_number(key)?.0.f64()) };
    match text(&kind.value, "Seek type")? {
        "constant" => {
            let time = ms("Constant seek time")?;
            Ok(CurveSpec::Table { cylinders_ms: vec![(1, time), (2, time)] })
        }
        "linear" => {
            let single = ms("Single cylinder seek time")?;
            let (average, full) = (ms("Average seek time")?, ms("Full strobe seek time")?);
            report.note(
                "seek type linear: straight lines through one cylinder, a third of all and all; \
                 DiskSim 4.0's own arithmetic drops fractions here",
            );
            Ok(linear(single, average, full, cylinders))
        }
        "curve" => {
            report.note(
                "seek type curve: as published by Lee and Katz; DiskSim 4.0 itself does not turn \
                 the three times into the coefficients of its formula",
            );
            Ok(CurveSpec::ThreePoint {
                single_ms: ms("Single cylinder seek time")?,
                average_ms: ms("Average seek time")?,
                full_ms: ms("Full strobe seek time")?,
            })
        }
        "hpl" => hp(fields, None),
        "hplplus10" => {
            let first = fields.need("First ten seek times")?;
            let first = times(first, 10)?;
            hp(fields, Some(first))
        }
        "extracted" => extracted(fields.need("Full seek curve")?, texts, report),
        other => {
            let rule = format!(
                "`Seek type` is `{other}`: constant, linear, curve, hpl, hplplus10 or extracted \
                 are expected"
            );
            Err(wrong(&kind.value.at, rule))
        }
    }
}

fn linear(single: f64, average: f64, full: f64, cylinders: u32) -> CurveSpec {
    let mut points = vec![(1, single)];
    for (distance, time) in [(cylinders / 3, average), (cylinders.saturating_sub(1), full)] {
        if points.last().is_some_and(|last| last.0 < distance) {
            points.push((distance, time));
        }
    }
    if points.len() == 1 {
        points.push((2, full));
    }
    CurveSpec::Table { cylinders_ms: points }
}

fn times(param: &Param, count: usize) -> Result<Vec<f64>, ImportError> {
    let items = list(&param.value, &param.key)?;
    if items.len() < count {
        let rule = format!("`{}` has {} values, {count} are expected", param.key, items.len());
        return Err(wrong(&param.value.at, rule));
    }
    items.iter().take(count).map(|item| Ok(number(item, &param.key)?.f64())).collect()
}

/// Coefficients: break in cylinders; constant and root factor below it; constant and slope from there
/// on. Last the time of one cylinder, -1 if the curve holds for it (Ruemmler and Wilkes 1994).
fn hp(fields: &mut Fields<'_>, first: Option<Vec<f64>>) -> Result<CurveSpec, ImportError> {
    let param = fields.need("HPL seek equation values")?;
    let values = times(param, 6)?;
    let break_at = whole(&list(&param.value, &param.key)?[0], &param.key, CYLINDERS_MAX)?;
    let single = (values[5] != -1.0).then_some(values[5]);
    Ok(CurveSpec::Hp {
        first_ms: first.unwrap_or_else(|| single.into_iter().collect()),
        break_cylinders: break_at,
        short_ms: values[1],
        short_sqrt_ms: values[2],
        long_ms: values[3],
        long_slope_ms: values[4],
    })
}

fn extracted(
    param: &Param,
    texts: &mut Texts<'_>,
    report: &mut Report,
) -> Result<CurveSpec, ImportError> {
    let name = text(&param.value, &param.key)?;
    let text = texts.get(name).ok_or_else(|| missing(&param.value.at, name))?;
    let mut table = SeekTable::default();
    for (index, line) in text.lines().enumerate() {
        table.read_line(line.trim(), &Place::new(name, index as u32 + 1))?;
    }
    table.finish(name, report)
}

/// A file of measured seeks: `Seek distances measured: N`, then `cylinders, ms[, deviation]`.
#[derive(Default)]
struct SeekTable {
    announced: Option<usize>,
    points: Vec<(u32, f64)>,
    deviations: usize,
}

impl SeekTable {
    fn read_line(&mut self, line: &str, at: &Place) -> Result<(), ImportError> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(count) = line.strip_prefix("Seek distances measured:") {
            self.announced = count.trim().parse().ok();
            return Ok(());
        }
        let mut parts = line.split(',').map(str::trim);
        let distance =
            parts.next().and_then(|part| part.parse::<u32>().ok()).ok_or_else(|| form(at, line))?;
        let time = parts.next().and_then(Decimal::parse).ok_or_else(|| form(at, line))?.f64();
        self.deviations += usize::from(parts.next().is_some());
        if distance > CYLINDERS_MAX {
            return Err(wrong(at, format!("a distance beyond {CYLINDERS_MAX} cylinders")));
        }
        if distance == 0 {
            return Ok(());
        }
        match self.points.last() {
            Some(&(last, _)) if last >= distance => {
                Err(wrong(at, format!("distances must ascend, {distance} comes after {last}")))
            }
            None if distance > 1 => {
                Err(wrong(at, format!("the first distance is {distance}, 1 is expected")))
            }
            _ => {
                self.points.push((distance, time));
                Ok(())
            }
        }
    }

    fn finish(mut self, name: &str, report: &mut Report) -> Result<CurveSpec, ImportError> {
        let found = self.points.len();
        if let Some(announced) = self.announced.filter(|announced| *announced != found) {
            report.note(format!("{name}: {announced} distances announced, {found} found"));
        }
        if self.deviations > 0 {
            let lines = self.deviations;
            report.note(format!("{name}: standard deviations in {lines} lines are not used"));
        }
        match self.points.as_slice() {
            [] => return Err(wrong(&Place::new(name, 0), "no line `CYLINDERS, MS` in it")),
            &[(_, time)] => self.points.push((2, time)),
            _ => {}
        }
        Ok(CurveSpec::Table { cylinders_ms: self.points })
    }
}

fn form(at: &Place, line: &str) -> ImportError {
    wrong(at, format!("expected `CYLINDERS, MS`, found `{line}`"))
}
