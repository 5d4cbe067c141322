//! Suggestion of an existing name for one that does not exist.

/// From how near on, by Jaro and Winkler (1 is the same), a name is taken for a slip of another:
/// `sptff` has 0.96 with `sptf`, `scan` and `scrub` have 0.71.
const NEAR: f64 = 0.8;

/// End of a message about an unknown name: `; did you mean` the nearest known name. Empty when none is
/// near. Upper and lower case are equal.
pub fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    let name = name.to_lowercase();
    let nearest = known
        .into_iter()
        .map(|other| (other, strsim::jaro_winkler(&name, &other.to_lowercase())))
        .filter(|&(_, near)| near >= NEAR);
    match nearest.reduce(|best, other| if other.1 > best.1 { other } else { best }) {
        Some((other, _)) => format!("; did you mean `{other}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn did_you_mean_names_nearest_or_none() {
        let policies = ["fcfs", "look", "clook", "sstf", "sstf-lw", "sptf", "sptf-sw", "asatf"];
        for (name, meant) in
            [("sptff", "sptf"), ("SPTF", "sptf"), ("spft", "sptf"), ("lok", "look")]
        {
            assert_eq!(did_you_mean(name, policies), format!("; did you mean `{meant}`?"));
        }
        for name in ["nosuch", "elevator", ""] {
            assert_eq!(did_you_mean(name, policies), "", "{name}");
        }
        assert_eq!(did_you_mean("scan", ["backup", "scrub"]), "");
        assert_eq!(did_you_mean("a", []), "");
    }

    #[test]
    fn did_you_mean_tie_names_first() {
        assert_eq!(did_you_mean("lok", ["lock", "look"]), "; did you mean `lock`?");
    }
}
