//! The program as a person meets it: the compiled binary, its output and its exit codes.

mod arrays;
mod attend;
mod data;
mod eval;
mod machine;
mod markup;
mod pictures;
mod program;
mod reading;
mod tiny;
mod tokenizer;
mod translate;
