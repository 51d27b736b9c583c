//! The program as a person meets it: the compiled binary, its output and its exit codes.

mod arrays;
mod attend;
mod machine;
mod program;
