//! The size of the program.

use std::fs;
use std::path::Path;

/// Every file of the built-in models is in the program once, and all of them fit the budget.
#[test]
fn built_in_files_are_in_the_program_once() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let program = fs::read(env!("CARGO_BIN_EXE_regard")).unwrap();
    let mut all = 0;
    for model in fs::read_dir(&models).unwrap().flatten() {
        let weights = model.path().join("model.safetensors");
        let Ok(bytes) = fs::read(&weights) else { continue };
        all += bytes.len();
        let piece = &bytes[bytes.len() / 2..][..64];
        let first = piece[0];
        // The first byte rules out most places quickly.
        let count =
            program.windows(64).filter(|window| window[0] == first && *window == piece).count();
        assert_eq!(count, 1, "{} is {count} times in the program", weights.display());
    }
    assert!(all > 1 << 20, "no models were found");
    // The released program is to have at most 75 MB (.ci/full); the code takes about 35 of them.
    assert!(all <= 40_000_000, "built-in weights take {all} bytes, need at most 40,000,000");
}
