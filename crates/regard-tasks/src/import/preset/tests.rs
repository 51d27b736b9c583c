//! Recipes that follow from the size of the data and the effort.

use super::*;
use crate::recipe;

fn import(task: &'static str, size: DataSize) -> Import {
    Import {
        record: Default::default(),
        task,
        summary: vec![],
        parts: [0; 3],
        size,
        chosen: None,
        read: vec![],
        places: Default::default(),
        keys: Table::new(),
        files: match task {
            "translate" => vec![("folder", "")],
            _ => vec![("train", "train.x"), ("valid", "valid.x")],
        },
        write: Box::new(|_| Ok(())),
    }
}

fn wish(effort: Effort, from: Option<&str>) -> Wish<'_> {
    Wish { name: "mine", folder: Path::new("runs/mine/data"), effort, from, longest: None, seed: 3 }
}

/// Each preset is a recipe of its task, for small and for large data, within its time.
#[test]
fn every_preset_is_a_recipe_within_its_time() {
    for preset in PRESETS {
        for effort in [Effort::Quick, Effort::Default, Effort::Better] {
            for examples in [100, 10_000, 3_000_000] {
                let size =
                    DataSize { examples, units: 20 * examples, longest: 28, ..DataSize::default() };
                let mut import = import(preset.task, size);
                match preset.task {
                    "classify-image" => import.files = vec![("folder", "")],
                    "classify-graph" => import.files = vec![("nodes", "n"), ("edges", "e")],
                    "summarize" => import.files = vec![("folder", "")],
                    "generate" => {
                        let kind = toml::from_str("[vocabulary]\nkind = 'char'").unwrap();
                        import.keys = kind;
                    }
                    "translate" => {
                        import.keys = toml::from_str("[data]\nsource = 'a'\ntarget = 'b'").unwrap();
                    }
                    _ => {}
                }
                let from = preset.from.then_some("some/model");
                let chosen = choose(&import, &wish(effort, from)).unwrap();
                let one = chosen.recipe["train"]["steps"].as_integer() == Some(1);
                let fits = chosen.seconds <= effort.seconds() * SHARE * 1.1;
                assert!(fits || one, "{}: {chosen:?}", preset.task);
                let task = recipe::task(chosen.recipe.clone())
                    .unwrap_or_else(|e| panic!("{} {}: {e}", preset.task, effort.name()));
                task.options().check().unwrap();
                assert_eq!((task.name(), task.task(), task.seed()), ("mine", preset.task, 3));
                assert_eq!(task.data(), "files");
            }
        }
    }
}

#[test]
fn wishes_that_cannot_be_have_a_way_out() {
    let size = DataSize { examples: 10, units: 100, ..DataSize::default() };
    let error = choose(&import("answer", size), &wish(Effort::Quick, None)).unwrap_err();
    assert!(error.to_string().contains("answer needs a pretrained encoder: add --from"));
    let error = choose(&import("translate", size), &wish(Effort::Quick, Some("x"))).unwrap_err();
    assert!(error.to_string().contains("leave --from out"), "{error}");
}

/// A tokenizer has more tokens than a text has words.
#[test]
fn pretrained_models_read_whole_texts_or_it_is_said() {
    let of = |longest: usize, words: usize| {
        let size = DataSize { examples: 9, units: 900, longest: words, ..DataSize::default() };
        let mut import = import("classify", size);
        import.keys = toml::from_str("[data]\nmax_tokens = 256").unwrap();
        let wish = Wish { longest: Some(longest), ..wish(Effort::Quick, Some("x")) };
        let chosen = choose(&import, &wish).unwrap();
        (chosen.recipe["data"]["max_tokens"].as_integer().unwrap(), chosen.note)
    };
    assert_eq!(of(512, 250), (384, None));
    let (tokens, note) = of(256, 250);
    assert_eq!(tokens, 256);
    let wanted = "texts are cut at 256 tokens of this model; the longest text has 250 words";
    assert_eq!(note.as_deref(), Some(wanted));
}

#[test]
fn chinese_is_read_by_characters() {
    let size = DataSize { examples: 1000, units: 20_000, unspaced: true, ..DataSize::default() };
    let chosen = choose(&import("classify", size), &wish(Effort::Quick, None)).unwrap();
    assert_eq!(chosen.recipe["vocabulary"]["kind"].as_str(), Some("char"));
    assert!(!chosen.recipe["vocabulary"].as_table().unwrap().contains_key("min_frequency"));
    // The words of sentences to tag are given.
    let chosen = choose(&import("tag", size), &wish(Effort::Quick, None)).unwrap();
    assert_eq!(chosen.recipe["vocabulary"]["kind"].as_str(), Some("treebank"));
}
