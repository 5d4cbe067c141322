//! Lines of a web server's log that are left out, its gaps, and the sites that it tells apart.

use freewheel_trace::{LeftOut, PartAnswers};
use freewheel_units::grouped;

/// Sentences for it; none where every line is a request of a whole file of one site.
pub(super) fn left_out(
    lines: Option<LeftOut>,
    parts: Option<PartAnswers>,
    sites: &[String],
) -> Vec<String> {
    let left_out = lines.and_then(left_out_lines);
    let sites = told_apart(sites);
    left_out.into_iter().chain(parts.and_then(of_parts)).chain(sites).collect()
}

/// Sites that a sentence names.
const SITES_NAMED: usize = 3;

fn told_apart(sites: &[String]) -> Option<String> {
    let named = sites.iter().take(SITES_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match sites.len() {
        0 => None,
        1 => Some(format!("Files of {named} are told apart from those of lines without a site.")),
        count => {
            let others = if count > SITES_NAMED { " and others" } else { "" };
            let count = grouped(count as u64);
            Some(format!("Files of {count} sites are told apart: {named}{others}."))
        }
    }
}

fn left_out_lines(lines: LeftOut) -> Option<String> {
    let LeftOut { other_methods, other_statuses, without_bytes, malformed } = lines;
    let parts = [
        (other_statuses, "answers other than 200 and 206"),
        (other_methods, "requests other than GET"),
        (without_bytes, "answers without a byte"),
        (malformed, "lines that break the format"),
    ];
    let there = parts.into_iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> =
        there.map(|(count, what)| format!("{} {what}", grouped(count))).collect();
    (!words.is_empty()).then(|| format!("Left out of the log: {}.", words.join(", ")))
}

fn of_parts(parts: PartAnswers) -> Option<String> {
    let PartAnswers { answers, files } = parts;
    let of_answers = match answers {
        0 => return None,
        1 => "1 answer 206 is a part of a file, and counts as a request of its bytes.".to_owned(),
        answers => format!(
            "{} answers 206 are parts of files, and count as requests of their bytes.",
            grouped(answers)
        ),
    };
    let sizes = match files {
        0 => String::new(),
        1 => " 1 file was never sent whole: its size is a lower bound, its largest part.".into(),
        files => format!(
            " {} files were never sent whole: their sizes are lower bounds, their largest parts.",
            grouped(files)
        ),
    };
    Some(of_answers + &sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_out_parts_make_sizes_lower_bounds() {
        let says =
            |answers, files| left_out(None, Some(PartAnswers { answers, files }), &[]).concat();
        assert_eq!(says(0, 0), "");
        let one = "1 answer 206 is a part of a file, and counts as a request of its bytes.";
        assert_eq!(says(1, 0), one);
        let many = says(1200, 2);
        assert!(many.starts_with("1,200 answers 206 are parts of files, and count"), "{many}");
        assert!(
            many.ends_with(
                "2 files were never sent whole: their sizes are lower bounds, their largest parts."
            ),
            "{many}"
        );
    }

    #[test]
    fn left_out_names_distinct_sites() {
        let sites: Vec<String> = (1..=4).map(|number| format!("s{number}.example")).collect();
        let says = |count| left_out(None, None, &sites[..count]).concat();
        assert_eq!(says(0), "");
        assert_eq!(says(2), "Files of 2 sites are told apart: s1.example, s2.example.");
        assert!(says(4).ends_with("s3.example and others."), "{}", says(4));
        assert!(says(1).contains("lines without a site"));
    }
}
