//! The program as a person meets it: the compiled binary, its output and its exit codes.

mod arrays;
mod attend;
mod checkpoints;
mod data;
mod evaluate;
mod graphs;
mod hub;
mod images;
mod lessons;
mod machine;
mod markup;
mod messages;
mod own_data;
mod permuted;
mod pictures;
mod point;
mod program;
mod reading;
mod recognize;
mod shelf;
mod shipped;
mod summarize;
mod tiny;
mod tokenizer;
mod translate;
mod words;
