//! Every parser over its saved fuzz corpus, and over seeded random mutations of it. A parser never
//! panics, always ends, and delivers records within the limits. `cargo fuzz run TARGET` in `fuzz/`
//! starts from the same corpus with the same checks.

use std::path::Path;

use freewheel_fuzz_checks::{damage, trace};
use freewheel_trace::Format;
use proptest::prelude::*;

fn target(format: Format) -> String {
    format.name().replace('-', "_")
}

fn check_corpus_and_mutations(format: Format) {
    damage::check_corpus_and_mutations(&target(format), |sample| trace::check(sample, format));
}

#[test]
fn formats_have_fuzz_targets() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    for format in Format::ALL {
        let target = targets.join(format!("{}.rs", target(format)));
        assert!(target.is_file(), "{} is missing", target.display());
    }
}

#[test]
fn freewheel_csv_survives_damage() {
    check_corpus_and_mutations(Format::FreewheelCsv);
}

#[test]
fn disksim_ascii_survives_damage() {
    check_corpus_and_mutations(Format::DisksimAscii);
}

#[test]
fn disksim_validate_survives_damage() {
    check_corpus_and_mutations(Format::DisksimValidate);
}

#[test]
fn heimdall_text_survives_damage() {
    check_corpus_and_mutations(Format::HeimdallText);
}

#[test]
fn msr_csv_survives_damage() {
    check_corpus_and_mutations(Format::MsrCsv);
}

#[test]
fn spc_survives_damage() {
    check_corpus_and_mutations(Format::Spc);
}

#[test]
fn hp_srt_survives_damage() {
    check_corpus_and_mutations(Format::HpSrt);
}

#[test]
fn vscsi_survives_damage() {
    check_corpus_and_mutations(Format::Vscsi);
}

#[test]
fn parquet_survives_damage() {
    check_corpus_and_mutations(Format::Parquet);
}

#[test]
fn alibaba_csv_survives_damage() {
    check_corpus_and_mutations(Format::AlibabaCsv);
}

#[test]
fn tencent_csv_survives_damage() {
    check_corpus_and_mutations(Format::TencentCsv);
}

#[test]
fn tencent_bytes_csv_survives_damage() {
    check_corpus_and_mutations(Format::TencentBytesCsv);
}

#[test]
fn systor17_survives_damage() {
    check_corpus_and_mutations(Format::Systor17);
}

#[test]
fn hfplayer_csv_survives_damage() {
    check_corpus_and_mutations(Format::HfplayerCsv);
}

#[test]
fn flashnet_csv_survives_damage() {
    check_corpus_and_mutations(Format::FlashnetCsv);
}

#[test]
fn arc_lis_survives_damage() {
    check_corpus_and_mutations(Format::ArcLis);
}

#[test]
fn thesios_csv_survives_damage() {
    check_corpus_and_mutations(Format::ThesiosCsv);
}

#[test]
fn blkparse_survives_damage() {
    check_corpus_and_mutations(Format::Blkparse);
}

#[test]
fn blktrace_survives_damage() {
    check_corpus_and_mutations(Format::Blktrace);
}

#[test]
fn fio_iolog_survives_damage() {
    check_corpus_and_mutations(Format::FioIolog);
}

#[test]
fn fio_iolog_v2_survives_damage() {
    check_corpus_and_mutations(Format::FioIologV2);
}

#[test]
fn mqsim_survives_damage() {
    check_corpus_and_mutations(Format::Mqsim);
}

#[test]
fn lcs_survives_damage() {
    check_corpus_and_mutations(Format::Lcs);
}

#[test]
fn oracle_general_survives_damage() {
    check_corpus_and_mutations(Format::OracleGeneral);
}

#[test]
fn xperf_csv_survives_damage() {
    check_corpus_and_mutations(Format::XperfCsv);
}

#[test]
fn wpa_csv_survives_damage() {
    check_corpus_and_mutations(Format::WpaCsv);
}

#[test]
fn fiu_text_survives_damage() {
    check_corpus_and_mutations(Format::FiuText);
}

#[test]
fn k5cloud_csv_survives_damage() {
    check_corpus_and_mutations(Format::K5cloudCsv);
}

#[test]
fn lirs_trc_survives_damage() {
    check_corpus_and_mutations(Format::LirsTrc);
}

#[test]
fn libcachesim_csv_survives_damage() {
    check_corpus_and_mutations(Format::LibcachesimCsv);
}

#[test]
fn libcachesim_txt_survives_damage() {
    check_corpus_and_mutations(Format::LibcachesimTxt);
}

#[test]
fn biosnoop_survives_damage() {
    check_corpus_and_mutations(Format::Biosnoop);
}

#[test]
fn ftrace_survives_damage() {
    check_corpus_and_mutations(Format::Ftrace);
}

#[test]
fn fio_lat_log_survives_damage() {
    check_corpus_and_mutations(Format::FioLatLog);
}

fn stream_formats() -> impl Strategy<Value = Format> {
    let formats = Format::ALL.into_iter().filter(|format| *format != Format::Parquet);
    prop::sample::select(formats.collect::<Vec<_>>())
}

/// Lines of small numbers, words and separators: near enough to a trace to go deep.
fn trace_like_text() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        "[0-9]{1,20}",
        "[0-9]{1,5}\\.[0-9]{0,12}",
        "R|W|F|T|r|w|Read|Write|0|1|512|4096",
    ];
    let line = (prop::collection::vec(field, 1..9), prop::sample::select(&[",", " ", "\t"]));
    let line = line.prop_map(|(fields, separator)| fields.join(separator));
    prop::collection::vec(line, 0..30).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        format in stream_formats(),
    ) {
        trace::check(&bytes, format);
    }

    #[test]
    fn trace_like_text_never_panics(
        text in trace_like_text(),
        format in stream_formats(),
    ) {
        trace::check(text.as_bytes(), format);
    }
}
