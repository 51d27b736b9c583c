//! Files that PyTorch wrote (`fixtures/make/pickles.py`), and some that it would not.

use super::shown;
use crate::Error;
use crate::checkpoint::{Array, Arrays, Dtype, read_arrays};
use serde_json::Value as Json;
use std::fs;
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pickle").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn from_bytes(file: &[u8]) -> std::result::Result<Arrays, String> {
    super::from_bytes(&file.to_vec().into())
}

fn expected(name: &str) -> Arrays {
    let json: Json = serde_json::from_slice(&bytes("expected.json")).unwrap();
    let numbers = |json: &Json| -> Vec<f64> {
        json.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    };
    let array = |(name, json): (&String, &Json)| {
        let shape = numbers(&json["shape"]).iter().map(|x| *x as usize).collect();
        let data = numbers(&json["data"]).iter().map(|x| *x as f32).collect();
        (name.clone(), Array::new(shape, data))
    };
    json[name].as_object().unwrap().iter().map(array).collect()
}

fn error(bytes: &[u8]) -> String {
    from_bytes(bytes).expect_err("should be an error")
}

#[track_caller]
fn assert_error(bytes: &[u8], wanted: &str) {
    let error = error(bytes);
    assert!(error.contains(wanted), "{error}");
}

/// The same values in single precision, also of integers.
fn in_single_precision(arrays: Arrays) -> Arrays {
    let single = |array: Array| {
        let bytes = array.bytes();
        let floats = match array.dtype() {
            Dtype::I64 => {
                bytes.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b) as f32).collect()
            }
            Dtype::I32 => {
                bytes.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b) as f32).collect()
            }
            Dtype::I16 => {
                bytes.as_chunks().0.iter().map(|b| i16::from_le_bytes(*b) as f32).collect()
            }
            Dtype::I8 => bytes.iter().map(|b| *b as i8 as f32).collect(),
            Dtype::U8 | Dtype::BOOL => bytes.iter().map(|b| *b as f32).collect(),
            _ => return array,
        };
        Array::new(array.shape, floats)
    };
    arrays.into_iter().map(|(name, array)| (name, single(array))).collect()
}

#[test]
fn all_types_and_layouts_are_read() {
    let wanted = expected("tensors");
    assert_eq!(wanted.len(), 21);
    for name in ["tensors.bin", "protocol4.bin", "legacy.bin", "training.bin"] {
        let arrays = read_arrays(&path(name)).unwrap();
        let integers = arrays.values().filter(|array| !array.is_float()).count();
        assert_eq!(integers, 6, "{name}");
        assert_eq!(in_single_precision(arrays), wanted, "{name}");
    }
}

#[test]
fn a_state_dict_and_a_parameter_are_read() {
    assert_eq!(read_arrays(&path("linear.bin")).unwrap(), expected("linear"));
    for name in ["parameter.bin", "parameter_legacy.bin"] {
        assert_eq!(read_arrays(&path(name)).unwrap(), expected("parameter"), "{name}");
    }
}

#[test]
fn what_wants_to_run_is_refused_by_name() {
    let wants = [
        ("system.bin", "system.bin: wants to run posix.system: refused."),
        ("eval.bin", "eval.bin: wants to run builtins.eval: refused."),
        ("module.bin", "module.bin: wants to run torch.nn.modules.linear.Linear: refused."),
    ];
    for (name, wanted) in wants {
        let error = read_arrays(&path(name)).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    // Bare pickles of several protocols.
    assert_error(b"\x80\x02cposix\nsystem\nX\x02\0\0\0ls\x85R.", "wants to run posix.system");
    assert_error(b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "wants to run os.system");
    assert_error(b"\x80\x02(X\x02\0\0\0lsios\nsystem\n.", "wants to run os.system");
    assert_error(b"\x80\x02ctorch.storage\n_load_from_bytes\n.", "torch.storage._load_from_bytes");
    assert_error(b"\x80\x02ccollections\nOrderedDict\n)\x81.", "wants to make an object");
    assert_error(b"\x80\x02ctorch\nFloatStorage\n)R.", "wants to call");
    assert_error(b"\x80\x02K\x01)R.", "wants to call");
    assert_error(b"\x80\x02ctorch\nSize\n}b.", "wants to change an object");
    assert_error(b"\x80\x02\x82\x01.", "operation 0x82");
}

#[test]
fn numbers_that_mean_something_else_are_refused() {
    assert_error(&bytes("negated.bin"), "weight: is a conjugated or negated view");
    assert_error(&bytes("complex.bin"), "elements of the type torch.ComplexFloatStorage");
}

#[test]
fn other_files_say_what_they_are_not() {
    assert!(matches!(read_arrays(&path("missing.bin")), Err(Error::Io { .. })));
    assert_error(b"", "not a checkpoint of PyTorch");
    assert_error(b"version https://git-lfs.github.com/spec/v1\n", "Git LFS");
    assert_error(b"\x80\x04K\x01.", "a pickle of something else");
    assert_error(b"\x80\x06K\x01.", "protocol 6");
    assert_error(&archive(&[("archive/data.pkl", b"\x80\x02].")]), "holds no dictionary");
    assert_error(&archive(&[("archive/data.pkl", b"\x80\x02}.")]), "holds no tensors");
}

// ---- Damage --------------------------------------------------------------------------------

#[test]
fn a_file_that_is_cut_off_is_an_error() {
    for name in ["parameter.bin", "parameter_legacy.bin", "tensors.bin", "legacy.bin"] {
        let whole = bytes(name);
        for length in 0..whole.len() {
            assert!(from_bytes(&whole[..length]).is_err(), "{name} at {length}");
        }
    }
}

#[test]
fn a_byte_that_changed_never_panics() {
    for name in ["parameter.bin", "parameter_legacy.bin"] {
        let mut file = bytes(name);
        for at in 0..file.len() {
            let was = file[at];
            let flipped = (0..8).map(|bit| was ^ 1 << bit);
            for byte in flipped.chain([0, 255]) {
                file[at] = byte;
                // A value or a name may have changed: it only must not panic.
                let _ = from_bytes(&file);
            }
            file[at] = was;
        }
    }
}

// ---- Archives ------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq)]
enum Zip {
    Stored,
    Compressed,
    Large,
}

fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    archive_as(Zip::Stored, entries)
}

/// A zip archive. A large one has all sizes in the zip64 fields.
fn archive_as(zip: Zip, entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut file, mut directory) = (vec![], vec![]);
    let (large, method) = (zip == Zip::Large, u16::from(zip == Zip::Compressed) * 8);
    for (name, contents) in entries {
        let (offset, size) = (file.len() as u64, contents.len() as u64);
        let sizes = [if large { u32::MAX } else { size as u32 }; 2].map(u32::to_le_bytes).concat();
        let kind = [[0; 4], [0, 0, method as u8, 0], [0; 4], [0; 4]].concat();
        let lengths = [name.len() as u16, if large { 40 } else { 0 }].map(u16::to_le_bytes);
        let padding = [5, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let numbers = [size, size, offset].map(u64::to_le_bytes).concat();
        let extra = [&padding[..], &[1, 0, 24, 0], &numbers].concat();
        let extra = if large { &extra[..] } else { &[] };
        file.extend([b"PK\x03\x04", &kind[2..], &sizes, &lengths.concat()].concat());
        file.extend([name.as_bytes(), extra, contents].concat());
        directory.extend([b"PK\x01\x02", &kind[..], &sizes, &lengths.concat(), &[0; 10]].concat());
        let offset = if large { u32::MAX } else { offset as u32 };
        directory.extend([&offset.to_le_bytes(), name.as_bytes(), extra].concat());
    }
    let (start, count) = (file.len(), entries.len());
    file.extend(&directory);
    if large {
        let end = file.len() as u64;
        let numbers = [count, count, directory.len(), start].map(|x| (x as u64).to_le_bytes());
        file.extend([b"PK\x06\x06", &[0; 20][..], &numbers.concat()].concat());
        file.extend([b"PK\x06\x07", &[0; 4][..], &end.to_le_bytes(), &[0; 4]].concat());
        file.extend([b"PK\x05\x06", &[255; 16][..], &[0; 2]].concat());
    } else {
        let count = [count as u16; 2].map(u16::to_le_bytes).concat();
        let numbers = [directory.len() as u32, start as u32].map(u32::to_le_bytes).concat();
        file.extend([b"PK\x05\x06", &[0; 4][..], &count, &numbers, &[0; 2]].concat());
    }
    file
}

/// A file with one tensor of two elements, and one more entry.
fn two_numbers(zip: Zip, more: (&str, &[u8])) -> Vec<u8> {
    let pickle = pickle(&[("two", tensor(2, 0, &[2], &[1]))]);
    let numbers = [1.5f32, -2.0].map(f32::to_le_bytes).concat();
    archive_as(zip, &[("any/data.pkl", &pickle), ("any/data/0", &numbers), more])
}

#[test]
fn archives_of_all_sizes_are_read() {
    for zip in [Zip::Stored, Zip::Large] {
        let arrays = from_bytes(&two_numbers(zip, ("any/byteorder", b"little"))).unwrap();
        assert_eq!(arrays["two"], Array::new(vec![2], vec![1.5, -2.0]));
    }
}

#[test]
fn archives_of_another_making_are_errors() {
    let compressed = two_numbers(Zip::Compressed, ("any/version", b"3"));
    assert_error(&compressed, "any/data.pkl: is compressed");
    let big = two_numbers(Zip::Stored, ("any/byteorder", b"big"));
    assert_error(&big, "byte order \"big\"");
    let twice = two_numbers(Zip::Stored, ("any/data/0", b""));
    assert_error(&twice, "two entries of the name any/data/0");
    let both = two_numbers(Zip::Stored, ("other/data.pkl", b""));
    assert_error(&both, "more than one data.pkl");
    assert_error(&archive(&[("word/document.xml", b"")]), "without data.pkl");
    assert_error(b"PK\x03\x04", "truncated");
}

// ---- Pickles -------------------------------------------------------------------------------

fn text(text: &str) -> Vec<u8> {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

fn whole(number: i64) -> Vec<u8> {
    [&[0x8a, 8], &number.to_le_bytes()[..]].concat()
}

fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
    [b"(", &items.concat()[..], b"t"].concat()
}

/// A tensor in single precision of the storage 0.
fn tensor(count: i64, start: i64, sizes: &[i64], strides: &[i64]) -> Vec<u8> {
    let wholes =
        |numbers: &[i64]| tuple(&numbers.iter().map(|n| whole(*n)).collect::<Vec<Vec<u8>>>());
    let class = b"ctorch\nFloatStorage\n".to_vec();
    let storage = tuple(&[text("storage"), class, text("0"), text("cpu"), whole(count)]);
    let storage = [&storage[..], b"Q"].concat();
    let parts = [storage, whole(start), wholes(sizes), wholes(strides), b"\x89N".to_vec()];
    [b"ctorch._utils\n_rebuild_tensor_v2\n", &tuple(&parts)[..], b"R"].concat()
}

/// A dictionary.
fn pickle(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let items: Vec<u8> =
        entries.iter().flat_map(|(name, value)| [text(name), value.clone()].concat()).collect();
    [b"\x80\x02}(", &items[..], b"u."].concat()
}

/// A file with a pickle, and a storage of four elements.
fn with_four(pickle: &[u8]) -> Vec<u8> {
    let numbers = [1.0f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat();
    archive(&[("a/data.pkl", pickle), ("a/data/0", &numbers)])
}

fn one_tensor(count: i64, start: i64, sizes: &[i64], strides: &[i64]) -> Vec<u8> {
    with_four(&pickle(&[("x", tensor(count, start, sizes, strides))]))
}

#[test]
fn tensors_walk_through_their_storage() {
    let data = |file: &[u8]| from_bytes(file).unwrap()["x"].floats().unwrap().into_owned();
    assert_eq!(data(&one_tensor(4, 0, &[2, 2], &[1, 2])), [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(data(&one_tensor(4, 3, &[], &[])), [4.0]);
    assert_eq!(data(&one_tensor(4, 1, &[2, 2], &[0, 2])), [2.0, 4.0, 2.0, 4.0]);
    assert_eq!(data(&one_tensor(4, 3, &[1, 1], &[i64::MAX, 7])), [4.0]);
    assert_eq!(data(&one_tensor(0, 9, &[3, 0], &[9, 9])), [0.0; 0]);
}

#[test]
fn tensors_beyond_their_storage_are_errors() {
    let most = i64::MAX;
    let wants = [
        (one_tensor(4, 1, &[4], &[1]), "x: reaches beyond the 4 elements"),
        (one_tensor(2, 0, &[4], &[1]), "x: reaches beyond the 2 elements"),
        (one_tensor(4, most, &[2], &[1]), "reaches beyond"),
        (one_tensor(4, 0, &[3], &[most]), "reaches beyond"),
        (one_tensor(4, most, &[2, 2], &[most, most]), "reaches beyond"),
        (one_tensor(5, 0, &[4], &[1]), "x: its storage 0 has 16 bytes, not 5 elements"),
        (one_tensor(most, 0, &[4], &[1]), "has 16 bytes"),
        (one_tensor(-1, 0, &[4], &[1]), "no storage of PyTorch"),
        (one_tensor(4, -1, &[4], &[1]), "offset of -1"),
        (one_tensor(4, 0, &[-4], &[1]), "of -4"),
        (one_tensor(4, 3, &[2], &[-1]), "of -1"),
        (one_tensor(4, 0, &[2], &[1, 1]), "but the strides [1, 1]"),
        (one_tensor(4, 0, &[1; 65], &[1; 65]), "has 65 axes"),
        (one_tensor(4, 0, &[1 << 40], &[0]), "too large"),
        (one_tensor(4, 0, &[1 << 40, 1 << 40], &[0, 0]), "overflows"),
        (one_tensor(4, 0, &[most, most, 0], &[0, 0, 0]), "overflows"),
        (archive(&[("a/data.pkl", &pickle(&[("x", tensor(1, 0, &[1], &[1]))]))]), "is missing"),
    ];
    for (file, wanted) in wants {
        assert_error(&file, wanted);
    }
}

#[test]
fn many_names_of_one_storage_stay_within_a_limit() {
    let tensor = [&tensor(4, 0, &[60_000], &[0])[..], b"q\x01"].concat();
    let again = b"h\x01".to_vec();
    let once = pickle(&[("a", tensor.clone())]);
    assert_eq!(from_bytes(&with_four(&once)).unwrap()["a"].floats().unwrap(), vec![1.0; 60_000]);
    let twice = pickle(&[("a", tensor), ("b", again)]);
    assert_error(&with_four(&twice), "b: is too large");
}

#[test]
fn dictionaries_of_python_2_are_read() {
    let pair = [b"](U\x01x", &tensor(4, 0, &[4], &[1])[..], b"e"].concat();
    let pickle = [b"\x80\x02ccollections\nOrderedDict\n](", &pair[..], b"e\x85R."].concat();
    assert_eq!(
        from_bytes(&with_four(&pickle)).unwrap()["x"].floats().unwrap()[..],
        [1.0, 2.0, 3.0, 4.0]
    );
    assert_error(b"\x80\x02ccollections\nOrderedDict\n]K\x01a\x85R.", "no pairs");
}

#[test]
fn what_nests_without_end_is_not_followed() {
    let million = 1_000_000;
    let nested = [b"\x80\x02)", &vec![0x85; million][..], b"."].concat();
    assert_error(&nested, "a pickle of something else");
    let marks = [b"\x80\x02", &vec![b'('; million][..], b"."].concat();
    assert_error(&marks, "empty stack");
    // A list that contains itself, and a dictionary that is its own state dict.
    assert_error(b"\x80\x02]q\x01h\x01a.", "a pickle of something else");
    let own = with_four(b"\x80\x02}q\x01X\x0a\0\0\0state_dicth\x01s.");
    assert_error(&own, "holds no tensors");
    // Each tuple holds the previous one twice: 2^1000 items if expanded.
    let doubling = [b"\x80\x02)", &b"2\x86".repeat(1000)[..], b"."].concat();
    assert_error(&doubling, "a pickle of something else");
}

#[test]
fn objects_are_made_of_what_came_before() {
    // A parameter without a tensor, and one whose list of arguments contains the parameter itself.
    let parameter = b"\x80\x02ctorch._utils\n_rebuild_parameter\n";
    for rest in [&b")R."[..], b"]q\x01Rq\x02h\x01h\x02a0."] {
        assert_error(&[parameter, rest].concat(), "wants to call Parameter");
    }
    // Only dictionaries have items and attributes.
    let size = b"\x80\x02ctorch\nSize\n)\x85R";
    assert_error(&[size, &b"}b."[..]].concat(), "wants to change an object");
    assert_error(&[size, &b"K\x01K\x02s."[..]].concat(), "wants to change an object");
    assert_error(b"\x80\x02U\x01\xff.", "not UTF-8");
}

#[test]
fn counts_beyond_the_file_are_errors() {
    let most = [255; 8];
    for (operation, width) in [(b'X', 4), (b'T', 4), (b'B', 4), (0x8d, 8), (0x8e, 8), (0x8b, 4)] {
        let pickle = [b"\x80\x04", &[operation][..], &most[..width], b"x."].concat();
        assert_error(&pickle, "ends too early");
    }
    assert_error(b"\x80\x04)r\xff\xff\xff\xff.", "a pickle of something else");
    assert_error(b"\x80\x04j\xff\xff\xff\xff.", "undefined memo entry");
    let endless = [b"\x80\x02", &b"N0".repeat(1 << 21)[..], b"N."].concat();
    assert_error(&endless, "steps");
    // A list of a thousand pairs, converted to a dictionary 5000 times.
    let list = [b"](", &b"NN\x86".repeat(1000)[..], b"e\x85q\x01"].concat();
    let again = b"ccollections\nOrderedDict\nh\x01R0".repeat(5000);
    assert_error(&[b"\x80\x02", &list[..], &again, b"N."].concat(), "steps");
}

#[test]
fn operations_without_what_they_need_are_errors() {
    let short: [&[u8]; 16] = [
        b".", b"0.", b"1.", b"2.", b"t.", b"\x85.", b"N\x86.", b"N(\x85.", b"N(0.", b"q\x01.",
        b"a.", b"]a.", b"NNa.", b"}Ns.", b"}(Nu.", b"NQ.",
    ];
    for operations in short {
        let error = error(&[b"\x80\x02", operations].concat());
        assert!(error.contains("damaged") || error.contains("no storage"), "{error}");
    }
}

#[test]
fn names_are_shown_without_what_a_terminal_obeys() {
    assert_eq!(shown("encoder.größe"), "encoder.größe");
    assert_eq!(shown("a\x1b[2J"), "a\\u{1b}[2J");
    assert_eq!(shown(&"x".repeat(200)), format!("{}…", "x".repeat(100)));
}
