use super::*;
use crate::data::scratch::with_file;
use crate::import::texts::{FileTexts, TextChoice};
use crate::import::{self, Request};
use ::parquet::basic::Compression;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/parquet")
}

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/parquet");
    let paths = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

/// Parquet files of a table.
fn files(of: &str) -> Vec<PathBuf> {
    let paths = fixtures().read_dir().unwrap().map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with(&format!("{of}-")) && name.ends_with(".parquet")
    };
    let found: Vec<PathBuf> = paths.filter(is_one).collect();
    assert!(found.len() >= 8, "{found:?}");
    found
}

/// What training would read of a file: its parts, as they are written.
fn written(task: &str, file: PathBuf, columns: Option<[&str; 2]>) -> Vec<(String, String)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut request = Request::new(task);
    request.data = vec![file.clone()];
    if let Some([source, target]) = columns {
        request.columns.source = Some(source.into());
        request.columns.target = Some(target.into());
    }
    let (import, findings) = import::read(&request).unwrap();
    let import = import.unwrap_or_else(|| panic!("{}: {}", file.display(), findings.text()));
    let name = format!("regard-parquet-{}", std::process::id());
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("{name}-{next}"));
    import.write(&folder).unwrap();
    let paths = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut parts: Vec<(String, String)> = paths
        // These two name the files that were read.
        .filter(|path| !path.ends_with("import.json") && !path.ends_with("places.json"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    std::fs::remove_dir_all(folder).unwrap();
    parts.sort();
    parts
}

fn read(path: &Path) -> (Table, String) {
    let mut findings = Findings::new(false);
    let table = Table::read(path, None, &mut findings).unwrap();
    (table, findings.text())
}

#[test]
fn parquet_and_csv_are_the_same_texts_and_labels() {
    let csv = written("classify", fixtures().join("reviews.csv"), None);
    assert!(csv.iter().any(|(name, text)| name == "train.jsonl" && text.lines().count() >= 40));
    for file in files("reviews") {
        assert_eq!(written("classify", file.clone(), None), csv, "{}", file.display());
    }
}

#[test]
fn parquet_and_csv_are_the_same_pairs() {
    let csv = written("translate", fixtures().join("pairs.csv"), None);
    assert!(csv.iter().any(|(_, text)| text.contains("connais le château")), "{csv:?}");
    for file in files("pairs") {
        // The languages of an object have no order.
        let is_nested = file.ends_with("pairs-nested.parquet");
        let columns = is_nested.then_some(["en", "fr"]);
        assert_eq!(written("translate", file.clone(), columns), csv, "{}", file.display());
    }
}

#[test]
fn parquet_values_of_every_kind_are_cells() {
    let (table, told) = read(&fixtures().join("kinds.parquet"));
    assert_eq!(told, "");
    let keys = table.keys.clone().unwrap();
    let column = |name: &str| keys.iter().position(|key| key == name).unwrap();
    for (name, wanted) in [
        ("text", ["one", "", "three"]),
        ("label", ["x", "y", "x"]),
        ("whole", ["1", "", "-3"]),
        ("small", ["1", "2", "255"]),
        ("float", ["0.1", "", "1e+20"]),
        ("double", ["0.5", "", "inf"]),
        ("flag", ["true", "false", ""]),
        ("price", ["1.10", "", "-0.05"]),
        ("day", ["2024-02-29", "", "2024-02-29"]),
        ("list", ["…", "…", "…"]),
        ("bytes", ["…", "…", "…"]),
    ] {
        let cells: Vec<&str> = table.rows.iter().map(|row| &row.cells[column(name)][..]).collect();
        assert_eq!(cells, wanted, "{name}");
    }
    let first = &table.rows[0];
    assert_eq!(first.cells[column("group")], "{\"en\":\"a\",\"fr\":\"b\"}");
    assert_eq!(table.rows.iter().map(|row| row.line).collect::<Vec<_>>(), [1, 2, 3]);
    let kind = |name: &str| first.other.iter().find(|(at, _)| *at == column(name)).map(|o| o.1);
    for (name, wanted) in [
        ("text", None),
        ("whole", Some("a number")),
        ("flag", Some("true or false")),
        ("list", Some("a list")),
        ("group", Some("an object")),
        ("bytes", Some("binary")),
    ] {
        assert_eq!(kind(name), wanted, "{name}");
    }
}

#[test]
fn parquet_columns_that_are_no_texts_are_named_with_their_rows() {
    for (text, wanted) in [
        ("list", "kinds.parquet: row 1: \"list\" is …, need a text"),
        ("bytes", "row 1: \"bytes\" is …, need a text"),
        ("whole", "row 1: \"whole\" is a number, 1; need a text, as a string"),
        ("text", "row 2: the text is empty"),
    ] {
        let mut request = Request::new("classify");
        request.data = vec![fixtures().join("kinds.parquet")];
        (request.columns.text, request.columns.label) = (Some(text.into()), Some("label".into()));
        let (import, findings) = import::read(&request).unwrap();
        let told = findings.text();
        assert!(import.is_none() && told.contains(wanted), "{text}: {told}");
    }
    let choice = TextChoice { columns: Some("whole"), flag: "text", ..TextChoice::default() };
    let error = FileTexts::open(fixtures().join("kinds.parquet"), &choice).unwrap_err();
    assert!(error.to_string().contains("row 1: \"whole\" is a number"), "{error}");
}

#[test]
fn parquet_texts_of_a_file_are_read() {
    let file = fixtures().join("reviews-polars.parquet");
    let found = FileTexts::open(&file, &TextChoice::default()).unwrap();
    let csv = FileTexts::open(fixtures().join("reviews.csv"), &TextChoice::default()).unwrap();
    let texts = |found: &FileTexts| -> Vec<String> {
        found.texts.iter().map(|each| each.text.clone()).collect()
    };
    assert_eq!(texts(&found), texts(&csv));
    assert_eq!((found.texts[0].line, found.column.as_deref()), (1, Some("text")));
    assert_ne!(found.sha256, csv.sha256);
}

#[test]
fn parquet_files_that_hold_far_more_than_their_size_are_refused() {
    for (name, wanted) in [
        ("repeated.parquet", "column \"text\": its texts have more bytes than a file"),
        ("empty.parquet", "3,000,000 rows with 1 columns are more than a file of this size"),
        ("front.parquet", "column \"text\": a page has the encoding 7, which is not read"),
    ] {
        let (table, told) = read(&fixtures().join(name));
        assert!(table.rows.is_empty() && told.contains(wanted), "{name}: {told}");
    }
    let bytes = std::fs::read(fixtures().join("reviews-gzip.parquet")).unwrap();
    let mut file = File::open(bytes.into(), Budget::default()).unwrap();
    assert_eq!(file.table().unwrap().1.len(), 60);
    file.budget = Cell::new(Budget::of(5000));
    let error = file.table().unwrap_err();
    assert!(error.contains("its rows need more than 5,000 bytes of memory"), "{error}");
    file.budget = Cell::new(Budget::default());
    file.pages = Arc::new(AtomicUsize::new(1000));
    let error = file.table().unwrap_err();
    assert!(error.contains("column \"text\": a page and the pages before it have more"), "{error}");
}

#[test]
fn parquet_pages_are_decompressed_to_their_size_and_no_further() {
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
    gzip.write_all(&vec![0; 10 << 20]).unwrap();
    let gzip = gzip.finish().unwrap();
    // A frame of zstd: a window of 1 MB, then blocks of one byte that is repeated.
    let mut zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x50];
    for at in 0..80_u32 {
        let head = (131_072 << 3) | (1 << 1) | u32::from(at == 79);
        zstd.extend(&head.to_le_bytes()[..3]);
        zstd.push(b'a');
    }
    let [gzip_codec, zstd_codec] =
        [Compression::GZIP(Default::default()), Compression::ZSTD(Default::default())];
    for (codec, stored) in [(gzip_codec, gzip), (zstd_codec, zstd)] {
        assert_eq!(codec::decompress(codec, &stored, 10 << 20).unwrap().len(), 10 << 20);
        let error = codec::decompress(codec, &stored, 1000).unwrap_err();
        assert!(error.contains("1000 bytes that its header says"), "{codec}: {error}");
    }
    for codec in [Compression::SNAPPY, Compression::LZ4_RAW] {
        let error = codec::decompress(codec, &[0; 10], 1 << 30).unwrap_err();
        assert!(error.contains("10 bytes cannot be"), "{codec}: {error}");
    }
    let brotli = Compression::BROTLI(Default::default());
    // A window of 2^30 bytes.
    let error = codec::decompress(brotli, &[0x11, 30, 0, 0], 10).unwrap_err();
    assert!(error.contains("large window"), "{error}");
    let error = codec::decompress(Compression::LZO, &[0; 10], 10).unwrap_err();
    assert!(error.contains("is compressed with LZO"), "{error}");
}

/// Schemas that the crate would follow by recursion, or allocate for.
#[test]
fn parquet_footers_are_checked_before_they_are_read() {
    let file = |footer: &[u8]| {
        let length = (footer.len() as u32).to_le_bytes();
        [b"PAR1", footer, &length, b"PAR1"].concat()
    };
    // Field 2, a list of structures with field 5, the number of children.
    let schema = |children: &[u8]| {
        let count = children.len();
        let mut footer = vec![0x29, 0xfc, (count & 0x7f) as u8 | 0x80, (count >> 7) as u8];
        children.iter().for_each(|count| footer.extend([0x55, 2 * count, 0]));
        footer.push(0);
        footer
    };
    let deep = [&[1; 1000][..], &[0]].concat();
    for (bytes, wanted) in [
        (file(&schema(&deep)), "the schema has more than 30 levels"),
        (file(&schema(&[60, 0, 0])), "a group of the schema has 60 children"),
        (file(&schema(&[1, 0, 0])), "the schema has more than one root"),
        (file(&schema(&[2, 0])), "a group of the schema has 2 children"),
        (file(&[0x29, 0xfc, 0xff, 0xff, 0xff, 0x7f]), "elements in 0 bytes"),
        (b"PAR1\xff\xff\xff\x7fPAR1".to_vec(), "its footer would have 2147483647 bytes"),
        (b"PAR1PAR1".to_vec(), "is cut off"),
        (b"text,label\n".to_vec(), "is not a Parquet file"),
    ] {
        with_file("a.parquet", &bytes, |path| {
            let (table, told) = read(path);
            assert!(table.rows.is_empty() && told.contains(wanted), "{wanted}: {told}");
        });
    }
    let parquet = std::fs::read(fixtures().join("front.parquet")).unwrap();
    with_file("a.csv", &parquet, |path| {
        assert!(read(path).1.contains("the end of its name must be .parquet"));
    });
}

/// Each file cut off at every byte, and with a flipped bit in every byte.
#[test]
fn parquet_files_that_are_damaged_are_errors_and_no_panics() {
    let table = |bytes: Vec<u8>| {
        let (path, mut findings) = (Path::new("a.parquet"), Findings::new(false));
        let table = super::read(&bytes[..], path, Budget::default(), &mut findings).unwrap();
        (table.rows, findings)
    };
    let mut refused = 0;
    for (path, whole) in corpus() {
        let (good, findings) = table(whole.clone());
        assert!(!good.is_empty() && !findings.has_errors(), "{}", path.display());
        for length in 0..whole.len() {
            let (rows, findings) = table(whole[..length].to_vec());
            assert!(rows.is_empty() && findings.has_errors(), "{}: {length}", path.display());
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            let (rows, findings) = table(bytes);
            // A flipped bit of a text is another text; what is read has all rows, or there is none.
            assert!(rows.is_empty() || rows.len() == good.len(), "{}: {at}", path.display());
            assert!(rows.is_empty() || !findings.has_errors(), "{}: {at}", path.display());
            refused += usize::from(findings.has_errors());
        }
    }
    assert!(refused > 1000, "{refused}");
}
