//! One folder for each task.

pub mod answer;
pub mod answer_story;
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
pub mod summarize;
pub mod tag;
pub mod translate;

use crate::pipeline::{About, Row};

/// Every task.
pub static TASKS: &[Row] = &[
    Row::of::<translate::Translator>(About {
        verb: "regard translate",
        does: "translates",
        models: "translate",
        recipe: "tatoeba-en-fr-transformer",
    }),
    Row::of::<generate::Writer>(About {
        verb: "regard generate",
        does: "goes on with texts",
        models: "generate",
        recipe: "shakespeare-gpt",
    }),
    Row::of::<score::Scorer>(About {
        verb: "regard score",
        does: "goes on with texts",
        models: "generate",
        recipe: "shakespeare-gpt",
    }),
    Row::of::<fill::Filler>(About {
        verb: "regard fill",
        does: "guesses hidden words",
        models: "fill",
        recipe: "wikitext2-bert",
    }),
    Row::of::<embed::Embedder>(About {
        verb: "regard embed",
        does: "gives texts vectors",
        models: "fill",
        recipe: "wikitext2-bert",
    }),
    Row::of::<rerank::Reranker>(About {
        verb: "regard rerank",
        does: "ranks texts by a query",
        models: "rerank",
        recipe: "squad-rerank",
    }),
    Row::of::<classify::Classifier>(About {
        verb: "regard classify",
        does: "gives texts labels",
        models: "classify",
        recipe: "sst2-words",
    }),
    Row::of::<classify_image::Viewer>(About {
        verb: "regard classify --image",
        does: "gives images labels",
        models: "classify-image",
        recipe: "fashion-mnist-vit",
    }),
    Row::of::<classify_graph::Labeller>(About {
        verb: "regard classify --graph",
        does: "labels graphs or their nodes",
        models: "classify-graph",
        recipe: "cora-gat",
    }),
    Row::of::<tag::Tagger>(About {
        verb: "regard tag",
        does: "labels words",
        models: "tag",
        recipe: "ewt-words",
    }),
    Row::of::<answer::Answerer>(About {
        verb: "regard answer",
        does: "answers questions about a text",
        models: "answer",
        recipe: "squad-minilm",
    }),
    Row::of::<answer_story::Listener>(About {
        verb: "regard answer",
        does: "answers questions about stories",
        models: "answer-story",
        recipe: "babi",
    }),
    Row::of::<summarize::Summarizer>(About {
        verb: "regard summarize",
        does: "summarizes texts",
        models: "summarize",
        recipe: "aeslc-pointer",
    }),
    Row::of::<point::Pointer>(About {
        verb: "regard point",
        does: "points at points",
        models: "point",
        recipe: "hull-10",
    }),
    Row::of::<recognize::Recognizer>(About {
        verb: "regard recognize",
        does: "recognizes speech",
        models: "recognize",
        recipe: "fsdd-ctc",
    }),
];
