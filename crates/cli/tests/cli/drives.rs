use super::run::{Bench, SMALL_TRACE, document, run, stdout};

/// A DiskSim drive small enough to read: one zone, ten tracks of 100 sectors.
const MODEL: &str = "\
dm_disk TINY {
   Block count = 1000,
   Number of data surfaces = 1,
   Number of cylinders = 10,
   Mechanical Model = dm_mech_g1 {
      Access time type = trackSwitchPlusRotation,
      Seek type = extracted,
      Full seek curve = tiny.seek,
      Add. write settling delay = 0.1,
      Head switch time = 0.5,
      Rotation speed (in rpms) = 6000,
      Percent error in rpms = 0.0
   },
   Layout Model = dm_layout_g1 {
      LBN-to-PBN mapping scheme = 0,
      Sparing scheme used = 0,
      Rangesize for sparing = 1,
      Zones = [
         dm_layout_g1_zone {
            First cylinder number = 0,
            Last cylinder number = 9,
            Blocks per track = 100,
            Offset of first block = 0.0,
            Empty space at zone front = 0,
            Skew for track switch = 10.0,
            Skew for cylinder switch = 20.0,
            Number of spares = 0,
            slips = [ ],
            defects = [ ]
         }
      ]
   }
}
";
const SEEK: &str = "Seek distances measured: 2\n1, 1.0\n9, 3.0\n";

#[test]
fn imported_drive_shown_and_validated_like_shipped() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("tiny.model", MODEL);
    bench.put("tiny.seek", SEEK);
    // 100 sectors in 10 ms: block 50 comes by at 5 ms and has passed at 5.1.
    bench.put("tiny.trace", "R Miss 50 1 5100.0 1000.0\n");
    let (model, drive) = (bench.at("tiny.model"), bench.at("tiny.toml"));
    stdout(&["drive", "import", &model, "-o", &drive]);
    let shown = document(&["drive", "show", &drive, "--json"]);
    assert_eq!(shown["zones"][0]["blocks_per_track"], 100);
    let validated = document(&["drive", "validate", &drive, &bench.at("tiny.trace"), "--json"]);
    assert_eq!(validated["requests"], 1);
    assert_eq!(validated["measured_mean_ms"], validated["simulated_mean_ms"]);
    assert!(validated["demerit_ms"].is_f64() && validated["per_request_error_sd_ms"].is_f64());
    assert!(validated["phase"]["floor_sd_ms"].is_f64());
    let text = stdout(&["drive", "validate", &drive, &bench.at("tiny.trace")]);
    assert!(text.contains("Is the rotational phase recoverable?\nNot to be told"), "{text}");
}

#[test]
fn import_names_malformed_parameter_leaves_no_file() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("tiny.model", &MODEL.replace("Blocks per track = 100", "Blocks per track = lots"));
    bench.put("tiny.seek", SEEK);
    let drive = bench.at("tiny.toml");
    let ran = run(&["drive", "import", &bench.at("tiny.model"), "-o", &drive]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("tiny.model:22"), "{}", ran.stderr);
    assert!(!std::path::Path::new(&*drive).exists());
}

#[test]
fn import_year_from_command_line_or_none() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("tiny.model", MODEL);
    bench.put("tiny.seek", SEEK);
    let (model, drive) = (bench.at("tiny.model"), bench.at("tiny.toml"));
    let notes = stdout(&["drive", "import", &model, "-o", &drive]);
    assert!(notes.contains("the files do not say the drive's year; --year gives it"), "{notes}");
    assert!(stdout(&["drive", "show", &drive]).contains("tiny: TINY\n"));
    assert!(document(&["drive", "show", &drive, "--json"])["drive"]["year"].is_null());
    let dated = bench.at("dated.toml");
    let notes = stdout(&["drive", "import", &model, "--year", "1998", "-o", &dated]);
    assert!(!notes.contains("year"), "{notes}");
    assert!(stdout(&["drive", "show", &dated]).contains("tiny: TINY (1998)\n"));
    assert_eq!(document(&["drive", "show", &dated, "--json"])["drive"]["year"], 1998);
    // Files that say 0 say that it is not known.
    let text = std::fs::read_to_string(&*dated).unwrap().replace("year = 1998", "year = 0");
    bench.put("undated.toml", &text);
    assert!(stdout(&["drive", "show", &bench.at("undated.toml")]).contains("tiny: TINY\n"));
}

/// One cylinder after the other, on the second head with 90 sectors a track.
const UNEVEN: &str = "\
dm_layout_g4 {
   TP = [ 0, 99, 100, 0, 89, 90 ],
   IDX = [
      [ 0, 0, 0.0, 100, 1, 0.1, 100, 1, TRACK, 0, 0, 100, 0, 0.2, 90, 1, 0.1, 90, 1, TRACK, 1, 1 ],
      [ 0, 0, 0.0, 190, 1, 0.4, 1900, 10, IDX, 0 ]
   ]
}";

#[test]
fn import_help_depends_on_fault() {
    let bench = Bench::new(SMALL_TRACE);
    let fails = |files: &[&str]| {
        let paths: Vec<String> = files.iter().map(|name| bench.at(name).to_string()).collect();
        let mut args = vec!["drive", "import"];
        args.extend(paths.iter().map(String::as_str));
        let drive = bench.at("tiny.toml");
        args.extend(["-o", &drive]);
        let ran = run(&args);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        ran.stderr
    };
    bench.put("tiny.model", MODEL);
    let error = fails(&["tiny.model"]);
    assert!(error.contains("`tiny.seek` is needed"), "{error}");
    assert!(error.contains("looked in: ") && !error.contains(".parv or .diskspecs"), "{error}");
    // A folder is named once, in any order of the files.
    for folder in ["f1", "f2"] {
        std::fs::create_dir(bench.at(folder)).unwrap();
    }
    let given = [("f1/tiny.model", MODEL), ("f2/other.seek", SEEK), ("f1/another.seek", SEEK)];
    for (name, text) in given {
        bench.put(name, text);
    }
    let error = fails(&given.map(|(name, _)| name));
    let folders = error.split("looked in: ").nth(1).unwrap();
    assert_eq!(folders.matches("f1").count(), 1, "{error}");
    // A file that is there and no UTF-8 is not called missing.
    std::fs::write(bench.at("tiny.seek"), b"# gem\xe4\xdf Handbuch\n").unwrap();
    let error = fails(&["tiny.model"]);
    assert!(error.contains("tiny.seek: is not a text in UTF-8"), "{error}");
    assert!(error.contains("save it as") && !error.contains("is needed"), "{error}");
    bench.put("tiny.model", &MODEL.replace("tiny.seek", "below/tiny.seek"));
    let error = fails(&["tiny.model"]);
    assert!(error.contains("`below/tiny.seek` leads to another folder"), "{error}");
    bench.put("tiny.seek", SEEK);
    bench.put("tiny.model", &MODEL.replace("= 6000", "= fast"));
    assert!(fails(&["tiny.model"]).contains("mend that place"));
    bench.put("plain.parv", "0.0 R 5 8\n");
    assert!(fails(&["plain.parv"]).contains("give DiskSim's parameter files of a disk"));
    let (before, _) = MODEL.split_once("Layout Model").unwrap();
    let uneven =
        before.replace("surfaces = 1", "surfaces = 2") + "Layout Model = " + UNEVEN + "\n}\n";
    bench.put("tiny.model", &uneven);
    let error = fails(&["tiny.model"]);
    assert!(error.contains("on cylinders 0 to 9: head 0 has 100, head 1 has 90"), "{error}");
    assert!(error.contains("their mean blocks per track") && !error.contains("missing"), "{error}");
    let error = fails(&["one.model", "tiny.model", "two.model"]);
    assert!(error.contains("one.model: ") && error.contains("two.model: "), "{error}");
    assert!(!error.contains("tiny.model: "), "{error}");
}

#[test]
fn import_includes_only_adjacent_files() {
    let bench = Bench::new(SMALL_TRACE);
    bench.put("tiny.seek", SEEK);
    let folder = bench.at("below");
    std::fs::create_dir(&folder).unwrap();
    let drive = bench.at("tiny.toml");
    for name in ["../tiny.seek", &bench.at("tiny.seek"), "../below/../tiny.seek"] {
        bench.put("below/tiny.model", &MODEL.replace("tiny.seek", name));
        let ran = run(&["drive", "import", &bench.at("below/tiny.model"), "-o", &drive]);
        assert_eq!(ran.code, 1, "{name}");
        assert!(ran.stderr.contains("nor found beside them"), "{name}: {}", ran.stderr);
        assert!(!std::path::Path::new(&*drive).exists());
    }
    // What is given on the command line is found by the last part of its name.
    stdout(&[
        "drive",
        "import",
        &bench.at("below/tiny.model"),
        &bench.at("tiny.seek"),
        "-o",
        &drive,
    ]);
}

#[test]
fn shipped_drives_shown_within_80_columns() {
    for name in freewheel::drives::names() {
        let shown = stdout(&["drive", "show", name]);
        let wide: Vec<&str> = shown.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{name}: {wide:?}");
    }
}

#[test]
fn drive_missing_advertised_values_is_marked() {
    let shown = stdout(&["drive", "show", "atlas10k"]);
    let row = shown.lines().find(|line| line.starts_with("mean seek, read")).unwrap();
    assert!(row.contains("5.000 ms") && row.contains("+11.98 %") && row.ends_with("off"), "{row}");
    assert!(shown.contains("why the model is off") && shown.contains("5.0 ms is the maker's"));
    let sheet = document(&["drive", "show", "ultrastar73lzx", "--json"]);
    let checks = sheet["self_check"].as_array().unwrap();
    let off: Vec<_> = checks.iter().filter(|check| check["ok"] == false).collect();
    assert!(off.len() == 3 && off.iter().all(|check| check["reason"].is_string()), "{off:?}");
}

#[test]
fn bus_slower_than_media_is_warned() {
    let bench = Bench::new(SMALL_TRACE);
    let path = bench.at("slow.toml");
    let file = stdout(&["drive", "show", "atlas10k", "--toml"]);
    std::fs::write(&*path, file.replace("\"3200ns\"", "\"99us\"")).unwrap();
    let shown = stdout(&["drive", "show", &path]);
    assert!(shown.contains("WARNING  The bus moves 5.2 MB/s, the media up to 27.2"), "{shown}");
    assert!(!stdout(&["drive", "show", "atlas10k"]).contains("WARNING"));
}

#[test]
fn drive_page_is_self_contained() {
    let bench = Bench::new(SMALL_TRACE);
    let page = bench.at("drive.html");
    let shown = stdout(&["drive", "show", "ultrastar-hc620-14tb", "--html", &page]);
    assert!(shown.contains("open zones at most  128"), "{shown}");
    let html = std::fs::read_to_string(&*page).unwrap();
    for part in ["<svg", "Seek curve", "Shingled zones", "52156 zones of 256 MiB"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("src=") && !html.contains("href="));
}

#[test]
fn shipped_drive_file_can_be_printed() {
    let printed = stdout(&["drive", "show", "tr96", "--toml"]);
    let bench = Bench::new(SMALL_TRACE);
    let path = bench.at("mine.toml");
    std::fs::write(&*path, &printed).unwrap();
    assert_eq!(stdout(&["drive", "show", &path]), stdout(&["drive", "show", "tr96"]));
    assert_eq!(stdout(&["drive", "show", &path, "--toml"]), printed);
}

#[test]
fn drive_page_unwritable_is_named() {
    let ran = run(&["drive", "show", "tr96", "--html", "no/such/folder/tr96.html"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("no/such/folder/tr96.html"), "{}", ran.stderr);
}
