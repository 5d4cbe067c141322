//! Site of a line of Common or Combined Log Format.
//!
//! Several sites of one server write one log, and `/` of two of them are two files. The usual places:
//!
//! ```text
//! one.example:443 192.0.2.1 - - [...] "GET / HTTP/1.1" 200 3783       Apache's %v:%p, Debian's other_vhosts
//! one.example 192.0.2.1 - - [...] "GET / HTTP/1.1" 200 3783           Apache's %v, nginx's $host
//! 192.0.2.1 - - [...] "GET / HTTP/1.1" 200 3783 one.example           behind the bytes
//! 192.0.2.1 - - [...] "GET / HTTP/1.1" 200 3783 "-" "x" "one.example" behind the agent
//! ```
//! In front a client may stand alone (`host ident user`, where users have blanks), or a proxy's client
//! before the proxy (`203.0.113.7 10.0.0.1 - -`). So a first word is a site only before a client's
//! address, and if it is a name in most lines: proxies write addresses. One that looks names up writes those of
//! its clients (`client.isp.example 10.0.0.1 - -`): then there are more names than addresses behind them, while
//! a site has many clients.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;

use super::entry::lower;
use super::parts::Parts;

/// Place of the site in a log's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostPlace {
    /// In no line, but for one that begins as `name:port` before a client.
    Nowhere,
    /// The first word, where a client follows.
    First,
    /// The word of this number after the bytes.
    Behind(usize),
}

/// Words after the bytes that are looked at.
const BEHIND_MAX: usize = 12;
/// After the bytes, quoted: referer and agent, which anybody chooses.
const REFERER_AND_AGENT: usize = 2;

impl HostPlace {
    /// The place on which the lines of a log agree.
    pub fn of(lines: &[Parts<'_>]) -> Self {
        let firsts: Vec<&[u8]> =
            lines.iter().filter_map(|line| before_client(line.front)).collect();
        let names = firsts.iter().filter(|first| is_name(first)).count();
        let are_most = names > 0 && 2 * firsts.len() >= lines.len() && 2 * names >= firsts.len();
        if are_most && !are_clients(lines) {
            return Self::First;
        }
        (0..BEHIND_MAX)
            .find(|at| {
                let of_lines: Option<Vec<&[u8]>> =
                    lines.iter().map(|line| behind(line.rest, *at)).collect();
                of_lines.is_some_and(|words| all_sites(&words))
            })
            .map_or(Self::Nowhere, Self::Behind)
    }

    /// The site of a line; empty where it names none.
    pub fn host<'a>(&self, line: &Parts<'a>) -> Cow<'a, [u8]> {
        let host = match self {
            Self::First => before_client(line.front),
            Self::Behind(at) => behind(line.rest, *at).filter(|host| *host != b"-"),
            Self::Nowhere => {
                before_client(line.front).filter(|first| is_name(first) && port(first).is_some())
            }
        };
        lower(host.unwrap_or_default())
    }
}

/// So few names are sites even where a single client asks for all of them.
const FEW: usize = 3;

/// True if the names before a client are those of clients, before proxies. A client has no port here.
fn are_clients(lines: &[Parts<'_>]) -> bool {
    let (mut names, mut behind) = (BTreeSet::new(), BTreeSet::new());
    for line in lines {
        let Some(first) = before_client(line.front).filter(|first| is_name(first)) else {
            continue;
        };
        if port(first).is_some() {
            return false;
        }
        names.insert(lower(first));
        behind.extend(words(line.front).skip(1).find(|word| *word != b"-"));
    }
    names.len() > FEW && names.len() > behind.len()
}

/// The first word where it can name a site and a client follows: an address, or before ident and user
/// any name.
fn before_client(front: &[u8]) -> Option<&[u8]> {
    let words: Vec<&[u8]> = words(front).collect();
    let (&first, &second) = (words.first()?, words.get(1)?);
    let is_client = is_address(second)
        || second == b"-" && words.len() >= 4 && is_address(words[2])
        || second != b"-" && words.len() >= 4 && (port(first).is_some() || is_domain(second));
    (is_client && (is_name(first) || is_address(without_port(first)))).then_some(first)
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}

/// A word after the bytes; none for referer and agent.
fn behind(rest: &[u8], at: usize) -> Option<&[u8]> {
    let mut rest = rest;
    for number in 0..=at {
        rest = rest.trim_ascii_start();
        let is_quoted = rest.first() == Some(&b'"');
        let end = if is_quoted {
            closing_quote(rest)?
        } else {
            rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len())
        };
        let word = &rest[usize::from(is_quoted)..end];
        rest = rest.get(end + usize::from(is_quoted)..).unwrap_or_default();
        if number == at {
            let is_chosen_by_clients = is_quoted && at < REFERER_AND_AGENT;
            return Some(word).filter(|word| !word.is_empty() && !is_chosen_by_clients);
        }
    }
    None
}

/// End of a quoted text. A quote within has a backslash before it.
fn closing_quote(text: &[u8]) -> Option<usize> {
    (1..text.len()).find(|&at| text[at] == b'"' && text[at - 1] != b'\\')
}

/// True if these words name sites: domains in most lines, and addresses or no name in the others.
fn all_sites(words: &[&[u8]]) -> bool {
    let names = words.iter().filter(|word| is_domain(word)).count();
    let others =
        words.iter().filter(|word| *word == b"-" || is_address(without_port(word))).count();
    names > 0 && 2 * names >= words.len() && names + others == words.len()
}

/// True if a word can be a host's name, with or without a port.
fn is_name(word: &[u8]) -> bool {
    let host = without_port(word);
    host.iter().any(u8::is_ascii_alphabetic)
        && host.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
        // What proxies write for a client that they do not know.
        && host != b"unknown"
}

/// True if a word is a name of several labels, of which the last has no digit, as no number has it.
fn is_domain(word: &[u8]) -> bool {
    let mut labels = without_port(word).rsplit(|&byte| byte == b'.');
    is_name(word)
        && labels
            .next()
            .is_some_and(|label| label.len() >= 2 && label.iter().all(u8::is_ascii_alphabetic))
        && labels.next().is_some_and(|it| !it.is_empty())
}

fn is_address(word: &[u8]) -> bool {
    let bare = word.strip_prefix(b"[").and_then(|word| word.strip_suffix(b"]")).unwrap_or(word);
    std::str::from_utf8(bare).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// The port behind a name or an address. An IPv6 address has one only behind brackets.
fn port(word: &[u8]) -> Option<&[u8]> {
    let colon = word.iter().rposition(|&byte| byte == b':')?;
    let (host, port) = (&word[..colon], &word[colon + 1..]);
    let is_one = !port.is_empty() && port.iter().all(u8::is_ascii_digit);
    (is_one && (!host.contains(&b':') || host.ends_with(b"]"))).then_some(port)
}

/// A host without its port: the site, whose files a server has once.
pub(super) fn without_port(word: &[u8]) -> &[u8] {
    port(word).map_or(word, |port| &word[..word.len() - port.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(front: &str, behind: &str) -> String {
        format!("{front} [18/Oct/2022:09:29:43 +0000] \"GET / HTTP/1.1\" 200 3783{behind}")
    }

    /// The place, and the site of each line.
    fn sites(lines: &[String]) -> (HostPlace, Vec<String>) {
        let parts: Vec<Parts<'_>> =
            lines.iter().map(|line| Parts::of(line.as_bytes()).unwrap()).collect();
        let place = HostPlace::of(&parts);
        let site = |line: &Parts<'_>| String::from_utf8(place.host(line).into_owned()).unwrap();
        (place, parts.iter().map(site).collect())
    }

    #[test]
    fn site_in_front_found_before_client() {
        for site in ["one.example:443", "One.example", "intranet:80", "localhost"] {
            for client in ["192.0.2.1", "2001:db8::1", "::1", "pc-7.isp.example"] {
                let lines = [line(&format!("{site} {client} - -"), " \"-\" \"x\"")];
                assert_eq!(
                    sites(&lines),
                    (HostPlace::First, vec![site.to_lowercase()]),
                    "{lines:?}"
                );
            }
        }
        let nginx = [line("two.example - 192.0.2.9 - -", "")];
        assert_eq!(sites(&nginx), (HostPlace::First, vec!["two.example".into()]));
        let short = [line("two.example 192.0.2.9", "")];
        assert_eq!(sites(&short), (HostPlace::First, vec!["two.example".into()]));
    }

    #[test]
    fn lines_without_a_site_have_none() {
        for front in [
            "192.0.2.1 - -",
            "client.isp.example - -",
            "client.isp.example - frank",
            "client.isp.example - frank van dyk",
            "client.isp.example ident frank van dyk",
            "2001:db8::1 - -",
            "::1 - -",
            "203.0.113.7 10.0.0.1 - -",
            "203.0.113.7:5021 10.0.0.1 - -",
            "2001:db8::7 10.0.0.1 - frank",
            "203.0.113.7, 198.51.100.4 10.0.0.1 - -",
            "unknown 10.0.0.1 - -",
            "- 10.0.0.1 - -",
        ] {
            for behind in [
                "",
                " \"-\" \"x\"",
                " \"one.example\" \"two.example\"",
                " \"-\" \"x\" 0.003",
                " \"-\" \"x\" \"203.0.113.7\"",
                " \"-\" \"x\" TLSv1.2 HIT",
                " \"-\" \"say \\\"a.example\\\" b.example\"",
            ] {
                let lines = [line(front, behind)];
                let nowhere = (HostPlace::Nowhere, vec![String::new()]);
                assert_eq!(sites(&lines), nowhere, "{lines:?}");
            }
        }
    }

    #[test]
    fn site_behind_found_where_lines_agree() {
        for (behind, at) in [
            (" one.example", 0),
            (" \"-\" \"x\" one.example", 2),
            (" \"-\" \"x\" \"one.example:8080\"", 2),
            (" \"-\" \"x \\\" y\" \"203.0.113.7\" \"one.example\" 0.003", 3),
        ] {
            let host = if behind.contains("8080") { "one.example:8080" } else { "one.example" };
            let lines = [line("192.0.2.1 - -", behind), line("192.0.2.2 - a b", behind)];
            assert_eq!(sites(&lines), (HostPlace::Behind(at), vec![host.into(); 2]), "{lines:?}");
        }
        // One line has something else there.
        let lines = [" \"-\" \"x\" one.example", " \"-\" \"x\" 0.003"];
        let lines = lines.map(|behind| line("192.0.2.1 - -", behind));
        assert_eq!(sites(&lines).0, HostPlace::Nowhere);
    }

    #[test]
    fn address_is_site_beside_names() {
        let fronts = [
            "one.example 192.0.2.1 - -",
            "two.example 192.0.2.1 - -",
            "203.0.113.80 192.0.2.1 - -",
        ];
        let lines = fronts.map(|front| line(front, ""));
        let (place, sites_of) = sites(&lines);
        assert_eq!((place, &*sites_of[2]), (HostPlace::First, "203.0.113.80"));
        let fronts =
            ["203.0.113.5 10.0.0.1 - -", "203.0.113.6 10.0.0.1 - -", "bad.example 10.0.0.1 - -"];
        let lines = fronts.map(|front| line(front, ""));
        assert_eq!(sites(&lines), (HostPlace::Nowhere, vec![String::new(); 3]));
    }

    #[test]
    fn names_outnumbering_addresses_are_proxy_clients() {
        let of = |front: fn(u32) -> String| {
            let lines: Vec<String> = (0..40).map(|at| line(&front(at), "")).collect();
            sites(&lines).0
        };
        let clients = of(|at| format!("pc-{}.isp.example 10.0.0.{} - -", at % 9, at % 2));
        assert_eq!(clients, HostPlace::Nowhere);
        let hosted = of(|at| format!("site-{}.example 198.51.100.{at} - -", at % 9));
        assert_eq!(hosted, HostPlace::First);
        let with_port = of(|at| format!("site-{}.example:443 10.0.0.1 - -", at % 9));
        assert_eq!(with_port, HostPlace::First);
        let few = of(|at| format!("site-{}.example 10.0.0.1 - -", at % 3));
        assert_eq!(few, HostPlace::First);
    }

    #[test]
    fn bracketed_address_is_no_time() {
        let lines = [line("one.example [2001:db8::1] - -", ""), line("two.example [::1] - -", "")];
        let sites_of = vec!["one.example".into(), "two.example".into()];
        assert_eq!(sites(&lines), (HostPlace::First, sites_of));
    }

    #[test]
    fn ports_tell_sites_after_unnamed_lines() {
        let front =
            ["192.0.2.1 - -", "192.0.2.1 - -", "192.0.2.1 - -", "one.example:80 192.0.2.1 - -"];
        let lines = front.map(|front| line(front, ""));
        let (place, sites) = sites(&lines);
        assert_eq!((place, &*sites[3], &*sites[0]), (HostPlace::Nowhere, "one.example:80", ""));
    }
}
