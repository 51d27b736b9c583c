//! Task implementations, one folder per task.

pub mod answer;
pub mod answer_story;
pub mod chat;
pub mod classify;
pub mod classify_graph;
pub mod classify_image;
pub mod embed;
pub mod fill;
pub mod generate;
pub mod permute;
pub mod point;
pub mod recognize;
pub mod rerank;
pub mod score;
pub mod search;
pub mod summarize;
pub mod tag;
pub mod translate;

use crate::pipeline::{About, TaskRow};

/// Registry of all tasks.
pub static TASKS: &[TaskRow] = &[
    TaskRow::of::<translate::Translator>(About {
        verb: "regard translate",
        does: "translates",
        models: "translate",
        recipe: "tatoeba-en-fr-transformer",
        hub: "Helsinki-NLP/opus-mt-en-de",
    }),
    TaskRow::of::<generate::Generator>(About {
        verb: "regard generate",
        does: "generates text",
        models: "generate",
        recipe: "shakespeare-gpt",
        hub: "openai-community/gpt2",
    }),
    TaskRow::of::<chat::Chat>(About {
        verb: "regard chat",
        does: "answers in a conversation",
        models: "generate",
        recipe: "shakespeare-gpt",
        hub: "HuggingFaceTB/SmolLM2-135M-Instruct",
    })
    .trained_elsewhere(),
    TaskRow::of::<score::Scorer>(About {
        verb: "regard score",
        does: "generates text",
        models: "generate",
        recipe: "shakespeare-gpt",
        hub: "openai-community/gpt2",
    }),
    TaskRow::of::<fill::Filler>(About {
        verb: "regard fill",
        does: "predicts masked tokens",
        models: "fill",
        recipe: "wikitext2-bert",
        hub: "google-bert/bert-base-uncased",
    }),
    TaskRow::of::<embed::Embedder>(About {
        verb: "regard embed",
        does: "embeds texts",
        models: "fill",
        recipe: "wikitext2-bert",
        hub: "sentence-transformers/all-MiniLM-L6-v2",
    })
    .trained_elsewhere(),
    TaskRow::of::<rerank::Reranker>(About {
        verb: "regard rerank",
        does: "ranks texts by relevance to a query",
        models: "rerank",
        recipe: "squad-rerank",
        hub: "cross-encoder/ms-marco-MiniLM-L6-v2",
    }),
    TaskRow::of::<search::Searcher>(About {
        verb: "regard search",
        does: "embeds texts",
        models: "fill",
        recipe: "wikitext2-bert",
        hub: "sentence-transformers/all-MiniLM-L6-v2",
    })
    .trained_elsewhere(),
    TaskRow::of::<classify::Classifier>(About {
        verb: "regard classify",
        does: "classifies texts",
        models: "classify",
        recipe: "sst2-words",
        hub: "distilbert/distilbert-base-uncased-finetuned-sst-2-english",
    }),
    TaskRow::of::<classify_image::ImageClassifier>(About {
        verb: "regard classify --image",
        does: "classifies images",
        models: "classify-image",
        recipe: "fashion-mnist-vit",
        hub: "google/vit-base-patch16-224",
    }),
    TaskRow::of::<classify_graph::GraphClassifier>(About {
        verb: "regard classify --graph",
        does: "classifies graphs or their nodes",
        models: "classify-graph",
        recipe: "cora-gat",
        hub: "",
    }),
    TaskRow::of::<tag::Tagger>(About {
        verb: "regard tag",
        does: "tags words",
        models: "tag",
        recipe: "ewt-words",
        hub: "dslim/bert-base-NER",
    }),
    TaskRow::of::<answer::Answerer>(About {
        verb: "regard answer",
        does: "answers questions about a text",
        models: "answer",
        recipe: "squad-minilm",
        hub: "distilbert/distilbert-base-cased-distilled-squad",
    }),
    TaskRow::of::<answer_story::StoryAnswerer>(About {
        verb: "regard answer",
        does: "answers questions about stories",
        models: "answer-story",
        recipe: "babi",
        hub: "",
    }),
    TaskRow::of::<summarize::Summarizer>(About {
        verb: "regard summarize",
        does: "summarizes texts",
        models: "summarize",
        recipe: "aeslc-pointer",
        hub: "",
    }),
    TaskRow::of::<point::Pointer>(About {
        verb: "regard point",
        does: "selects or orders points of a set",
        models: "point",
        recipe: "hull-10",
        hub: "",
    }),
    TaskRow::of::<recognize::Recognizer>(About {
        verb: "regard recognize",
        does: "recognizes speech",
        models: "recognize",
        recipe: "fsdd-ctc",
        hub: "",
    }),
];
