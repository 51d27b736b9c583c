//! Training, from recipes to models; tokenizers, beside those of others.

mod exams;
mod killed;
mod language;
mod learns;
mod lessons;
mod permute;
mod points;
mod readers;
mod reading;
mod recipes;
mod refuses;
mod resumed;
mod small;
mod stories;
mod summaries;
mod tokenizers;
mod words;
