//! The models that are built into the program.

use regard_models::BuiltIn;

/// A model that is built into the program.
pub struct BuiltInModel {
    /// Name of its folder in `models/`, and value of `--model`.
    pub name: &'static str,
    /// Description in one sentence.
    pub about: &'static str,
    /// Recipe that it was trained with.
    pub recipe: &'static str,
    /// Task that it was trained for, by its name in [`regard_tasks::pipeline::TASKS`].
    pub task: &'static str,
    /// Note of a command without `--model`: what the model can be used for, if that is not clear
    /// from the command.
    pub default_note: Option<&'static str>,
    /// Licence of the weights, with the origin of the training data.
    pub licence: &'static str,
    /// Contents of its files, by name.
    pub files: BuiltIn,
}

macro_rules! files {
    ($folder:literal: $($file:literal)*) => {
        BuiltIn {
            name: $folder,
            files: &[$((
                $file,
                include_bytes!(concat!("../../../../models/", $folder, "/", $file)),
            )),*],
        }
    };
}

/// All built-in models; without `--model`, the first one for the task is used.
pub static SHIPPED: &[BuiltInModel] = &[
    BuiltInModel {
        name: "en-fr",
        about: "Transformer, English to French",
        recipe: "tatoeba-en-fr-transformer",
        task: "translate",
        default_note: None,
        licence: TATOEBA,
        files: files!("en-fr": "config.json" "generation_config.json" "model.safetensors"
            "tokenizer.json" "tokenizer_config.json"),
    },
    BuiltInModel {
        name: "en-fr-bahdanau",
        about: "Bahdanau's model (additive attention over a bidirectional GRU), English to French",
        recipe: "tatoeba-en-fr-bahdanau",
        task: "translate",
        default_note: None,
        licence: TATOEBA,
        files: files!("en-fr-bahdanau": "config.json" "generation_config.json"
            "model.safetensors" "tokenizer.json" "tokenizer_config.json"),
    },
    BuiltInModel {
        name: "en-fr-rnn",
        about: "GRU without attention (one fixed vector for a sentence), English to French",
        recipe: "tatoeba-en-fr-rnn",
        task: "translate",
        default_note: None,
        licence: TATOEBA,
        files: files!("en-fr-rnn": "config.json" "generation_config.json" "model.safetensors"
            "tokenizer.json" "tokenizer_config.json"),
    },
    BuiltInModel {
        name: "zh-en",
        about: "Bahdanau's model on characters, Chinese to English",
        recipe: "tatoeba-zh-en-bahdanau",
        task: "translate",
        default_note: None,
        licence: TATOEBA,
        files: files!("zh-en": "config.json" "generation_config.json" "model.safetensors" "source.tokenizer.json" "source.tokenizer_config.json" "target.tokenizer.json" "target.tokenizer_config.json"),
    },
    BuiltInModel {
        name: "shakespeare",
        about: "GPT, continues a text in the style of Shakespeare, character by character",
        recipe: "shakespeare-gpt",
        task: "generate",
        default_note: None,
        licence: "trained on Shakespeare's plays (tinyshakespeare), which are in the public domain",
        files: files!("shakespeare": "config.json" "generation_config.json" "model.safetensors"
            "tokenizer.json" "tokenizer_config.json"),
    },
    BuiltInModel {
        name: "en-pos",
        about: "Bidirectional LSTM over words and characters, English parts of speech",
        recipe: "ewt-words",
        task: "tag",
        default_note: None,
        licence: "CC BY-SA 4.0; trained on Universal Dependencies, English Web Treebank",
        files: files!("en-pos": "config.json" "model.safetensors" "tokenizer.json"
            "tokenizer_config.json"),
    },
    BuiltInModel {
        name: "genre",
        about: "Bidirectional LSTM with attention pooling, genre of an English sentence from the web",
        recipe: "ewt-genre",
        task: "classify",
        default_note: Some(
            "the genre of an English sentence. For labels of yours: regard train classify --data FILE",
        ),
        licence: "CC BY-SA 4.0; trained on Universal Dependencies, English Web Treebank",
        files: files!("genre": "config.json" "model.safetensors" "tokenizer.json"
            "tokenizer_config.json"),
    },
    BuiltInModel {
        name: "wiki-bert",
        about: "Small BERT, predicts masked words of English; for lessons",
        recipe: "wikitext2-bert",
        task: "fill",
        default_note: Some(
            "a small BERT for lessons, trained on 400,000 words. For better predictions: --model \
             google-bert/bert-base-uncased",
        ),
        licence: WIKIPEDIA,
        files: files!("wiki-bert": "config.json" "model.safetensors" "tokenizer.json"
            "tokenizer_config.json"),
    },
    BuiltInModel {
        name: "wiki-xlnet",
        about: "Small XLNet, predicts masked words of English; for lessons",
        recipe: "wikitext2-xlnet",
        task: "fill",
        default_note: None,
        licence: WIKIPEDIA,
        files: files!("wiki-xlnet": "config.json" "model.safetensors" "tokenizer.json"
            "tokenizer_config.json"),
    },
    BuiltInModel {
        name: "stories",
        about: "Answers questions about bAbI stories, with the sentences it attended to",
        recipe: "babi",
        task: "answer-story",
        default_note: None,
        licence: "CC BY 3.0; trained on the bAbI tasks of Facebook AI Research",
        files: files!("stories": "config.json" "model.safetensors" "tokenizer.json"
            "tokenizer_config.json"),
    },
    BuiltInModel {
        name: "digits",
        about: "Truncated self-attention with CTC, transcribes spoken English digits",
        recipe: "fsdd-ctc",
        task: "recognize",
        default_note: None,
        licence: "CC BY-SA 4.0; trained on the Free Spoken Digit Dataset of Zohar Jackson and others",
        files: files!("digits": "config.json" "model.safetensors" "preprocessor_config.json"),
    },
    BuiltInModel {
        name: "hull",
        about: "Pointer network, convex hulls",
        recipe: "hull-10",
        task: "point",
        default_note: None,
        licence: GENERATED,
        files: files!("hull": "config.json" "generation_config.json" "model.safetensors"),
    },
    BuiltInModel {
        name: "tsp",
        about: "Pointer network, short tours (travelling salesman)",
        recipe: "tsp-10",
        task: "point",
        default_note: None,
        licence: GENERATED,
        files: files!("tsp": "config.json" "generation_config.json" "model.safetensors"),
    },
    BuiltInModel {
        name: "clothes",
        about: "Vision Transformer, classifies grey images of clothes into ten classes (Fashion-MNIST)",
        recipe: "fashion-mnist-vit",
        task: "classify-image",
        default_note: None,
        licence: "MIT; trained on Fashion-MNIST of Zalando SE",
        files: files!("clothes": "config.json" "model.safetensors" "preprocessor_config.json"),
    },
    BuiltInModel {
        name: "cora",
        about: "Graph attention network, topics of the papers of Cora from their words and citations",
        recipe: "cora-gat",
        task: "classify-graph",
        default_note: None,
        licence: "MIT; trained on Cora as Planetoid has it (Yang, Cohen and Salakhutdinov 2016)",
        files: files!("cora": "config.json" "model.safetensors"),
    },
];

/// Licence of models whose training data the program generates.
const GENERATED: &str = "that of the program; trained on points that the program generates";

const WIKIPEDIA: &str = "CC BY-SA 3.0; trained on WikiText-2, articles of Wikipedia";

const TATOEBA: &str =
    "CC BY 2.0 FR; trained on sentences of tatoeba.org, by way of manythings.org/anki";
