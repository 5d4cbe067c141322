//! Text on a terminal: within its width, and in colours unless they are not wanted.

use std::io::Read;
use std::process::Stdio;

use rustix::termios::{Winsize, tcsetwinsize};

use super::run::{Bench, SMALL_TRACE, command, stdout, terminal};

const COLUMNS: u16 = 60;

/// Output of `freewheel study` on a terminal of 60 columns, with these variables set.
fn shown(bench: &Bench, variables: &[(&str, &str)]) -> String {
    let (mut control, terminal) = terminal();
    let size = Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let mut command = command(&study(bench).each_ref().map(String::as_str));
    command.env_remove("NO_COLOR").env_remove("COLUMNS").env("TERM", "xterm");
    command.envs(variables.iter().copied()).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(terminal).spawn().unwrap();
    // Its end of the terminal is closed with the command, or reading would never end.
    drop(command);
    let mut bytes = Vec::new();
    // The end of the last writer is an error.
    let _ = control.read_to_end(&mut bytes);
    assert!(child.wait().unwrap().success());
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

fn study(bench: &Bench) -> [String; 5] {
    ["study".into(), bench.at("trace.csv"), "--no-scrub".into(), "--out".into(), bench.at("out")]
}

/// The text without its last line, a path of some length, and without how lines are broken.
fn sentences(text: &str) -> String {
    let (text, _) = text.split_once("report:").unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn lines_fit_terminal_unchanged_elsewhere() {
    let bench = Bench::new(SMALL_TRACE);
    let piped = stdout(&study(&bench).each_ref().map(String::as_str));
    let widest = |text: &str| {
        let lines = text.lines().take_while(|line| !line.starts_with("report:"));
        lines.map(|line| line.chars().count()).max().unwrap()
    };
    assert!(widest(&piped) > usize::from(COLUMNS) && !piped.contains('\u{1b}'), "{piped}");
    let plain = shown(&bench, &[("NO_COLOR", "1")]);
    assert!(widest(&plain) <= usize::from(COLUMNS) && !plain.contains('\u{1b}'), "{plain}");
    assert_eq!(sentences(&plain), sentences(&piped));
    let narrow = shown(&bench, &[("NO_COLOR", "1"), ("COLUMNS", "40")]);
    assert!(widest(&narrow) <= 40, "{narrow}");
}

#[test]
fn doubt_is_yellow_on_terminal() {
    let bench = Bench::new(SMALL_TRACE);
    let text = shown(&bench, &[]);
    assert!(text.contains("! \u{1b}[33mThis trace is too short"), "{text}");
    let dumb = shown(&bench, &[("TERM", "dumb")]);
    assert!(!dumb.contains('\u{1b}'), "{dumb}");
}
