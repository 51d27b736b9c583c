//! Weights used in the type and layout of the file: results are bitwise the same.

use crate::batch::rows;
use crate::goldens::golden;
use burn::tensor::{Device, Int, Tensor, TensorData};
use half::{bf16, f16};
use regard_attention::Mode;
use regard_models::checkpoint::{self, Dtype, with_least_stored};
use regard_models::text::recorded::{Recorded, named};
use regard_models::text::{self, TextModel};
use regard_models::vit::Vit;
use regard_models::{BuiltIn, ModelFiles, Network, Seq2Seq, Source, zoo};
use safetensors::tensor::TensorView;
use std::fs;
use std::path::{Path, PathBuf};

/// A copy of a golden model whose weights have another type.
fn copy(golden: &Path, dtype: Dtype) -> PathBuf {
    let name = golden.file_name().unwrap().to_string_lossy().to_string();
    let folder = std::env::temp_dir();
    let folder = folder.join(format!("regard-stored-{}-{name}-{dtype}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::copy(golden.join("config.json"), folder.join("config.json")).unwrap();
    let arrays = checkpoint::read_weights(golden).unwrap();
    let encoded: Vec<(&String, &[usize], Vec<u8>)> = arrays
        .iter()
        .filter_map(|(name, array)| {
            let floats = array.floats()?;
            let bytes = match dtype {
                Dtype::F16 => floats.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
                Dtype::BF16 => {
                    floats.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect()
                }
                _ => floats.iter().flat_map(|x| x.to_le_bytes()).collect(),
            };
            Some((name, &array.shape[..], bytes))
        })
        .collect();
    let views = encoded
        .iter()
        .map(|(name, shape, bytes)| (name, TensorView::new(dtype, shape.to_vec(), bytes).unwrap()));
    safetensors::serialize_to_file(views, None, &folder.join("model.safetensors")).unwrap();
    folder
}

fn bits<const D: usize>(x: &Tensor<D>) -> Vec<u32> {
    let floats = x.to_data().try_to_vec::<f32>().unwrap();
    floats.into_iter().map(f32::to_bits).collect()
}

/// One model twice: converted, and stored.
fn both<N: ?Sized>(open: impl Fn() -> Box<N>) -> [Box<N>; 2] {
    let converted = open();
    [converted, with_least_stored(0, open)]
}

/// Both have the same parameters, and those of the stored one are in the file.
fn compare(models: [&dyn Network; 2], case: &str) {
    let [converted, stored] = models.map(|model| model.weights());
    assert_eq!(converted, stored, "{case}");
    assert_eq!(models[0].parameters(), models[1].parameters(), "{case}");
    assert_eq!(models[0].describe(), models[1].describe(), "{case}");
    assert!(converted.values().all(|array| array.dtype() == Dtype::F32), "{case}");
    assert!(stored.values().any(|array| array.bytes().is_mapped()), "{case}");
}

fn texts(folder: &Path, recorded: &Recorded, case: &str) {
    let open = || text::open(folder, None, 0, &Device::flex()).unwrap();
    let [converted, stored] = both(open);
    compare([&*converted, &*stored], case);
    for texts in [recorded.texts(), recorded.text(0)] {
        let [a, b] = [&converted, &stored].map(|model| model.forward(&texts, None, Mode::Eval));
        assert!(bits(&a.hidden) == bits(&b.hidden), "{case}: hidden");
        for ((name, a), (_, b)) in named(&a).into_iter().zip(named(&b)) {
            assert!(bits(&a) == bits(&b), "{case}: {name}");
        }
    }
    let begin: [&[u32]; 2] = [&[1, 2, 3], &[3, 2, 1]];
    let steps = |model: &dyn TextModel| -> Option<Vec<u32>> {
        let mut walk = model.decode(&begin)?;
        let words = |x: i64| Tensor::<2, Int>::from_ints([[x], [x + 1]], &Device::flex());
        Some((4..7).flat_map(|x| bits(&walk.step(words(x)).logits)).collect())
    };
    assert!(steps(&*converted) == steps(&*stored), "{case}: step by step");
}

fn pairs(folder: &Path, case: &str) {
    let device = Device::flex();
    let [converted, stored] = both(|| zoo::open::<dyn Seq2Seq>(folder, &device).unwrap());
    compare([&*converted, &*stored], case);
    let source =
        Source { ids: rows(&[vec![3, 4, 5, 2], vec![4, 3, 2, 0]], &device), lengths: vec![4, 3] };
    let words = rows(&[vec![1, 3, 4], vec![1, 4, 3]], &device);
    let said =
        |model: &dyn Seq2Seq| bits(&model.forward(&source, words.clone(), Mode::Eval).logits);
    assert!(said(&*converted) == said(&*stored), "{case}");
}

fn images(folder: &Path, golden: &Path, case: &str) {
    let device = Device::flex();
    let [converted, stored] = both(|| zoo::open::<Vit>(folder, &device).unwrap());
    compare([&*converted, &*stored], case);
    let said = checkpoint::read_arrays(&golden.join("said.safetensors")).unwrap();
    let shape: [usize; 4] = said["pixels"].shape.clone().try_into().unwrap();
    let pixels = TensorData::new(said["pixels"].floats().unwrap().into_owned(), shape);
    let pixels = Tensor::<4>::from_data(pixels, &device);
    let [a, b] = [&converted, &stored].map(|model| model.forward(pixels.clone(), Mode::Eval));
    assert!(bits(&a.hidden) == bits(&b.hidden), "{case}");
    assert!(a.logits.as_ref().map(bits) == b.logits.as_ref().map(bits), "{case}");
}

/// The storage of weights changes no bit of the output, for every family and every type.
#[test]
fn storage_changes_no_bit() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let all = |kind: &str| {
        let folders = fs::read_dir(fixtures.join(kind)).unwrap().map(|f| f.unwrap().path());
        let mut folders: Vec<PathBuf> =
            folders.filter(|folder| folder.join("said.safetensors").exists()).collect();
        folders.sort();
        folders
    };
    let mut seen = 0;
    for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
        for golden in all("vit") {
            let folder = copy(&golden, dtype);
            images(&folder, &golden, &format!("{} {dtype}", golden.display()));
            fs::remove_dir_all(&folder).unwrap();
            seen += 1;
        }
        for golden in &all("texts") {
            let Ok(recorded) = Recorded::read(&golden.join("said.safetensors")) else { continue };
            let folder = copy(golden, dtype);
            texts(&folder, &recorded, &format!("{} {dtype}", golden.display()));
            fs::remove_dir_all(&folder).unwrap();
            seen += 1;
        }
        for name in ["marian-shared", "marian-untied", "pegasus", "bahdanau-2", "luong-5"] {
            let folder = copy(&golden(name), dtype);
            pairs(&folder, &format!("{name} {dtype}"));
            fs::remove_dir_all(&folder).unwrap();
            seen += 1;
        }
    }
    assert!(seen > 45, "{seen} models");
}

/// The weights of a built-in model are not copied.
#[test]
fn a_model_inside_the_program_is_not_copied() {
    let folder = golden("marian-shared");
    let file = |name: &'static str| -> (&'static str, &'static [u8]) {
        (name, Box::leak(fs::read(folder.join(name)).unwrap().into_boxed_slice()))
    };
    let parts = Box::leak(Box::new([file("config.json"), file("model.safetensors")]));
    let files = ModelFiles::from(BuiltIn { name: "marian", files: parts });
    let place = parts[1].1.as_ptr_range();
    let weights = files.weights().unwrap();
    assert!(weights.values().all(|array| place.contains(&array.bytes().as_ptr())));
    let open = |files: ModelFiles| zoo::open::<dyn Seq2Seq>(files, &Device::flex()).unwrap();
    assert_eq!(open(files).weights(), open(ModelFiles::from(&folder)).weights());
}
