//! Training, from recipes to models; tokenizers, compared with other libraries.

mod audio;
mod begins;
mod colours;
mod earlier;
mod exams;
mod images;
mod killed;
mod language;
mod learns;
mod lessons;
mod lora;
mod permute;
mod pictures;
mod points;
mod prompts;
mod readers;
mod reading;
mod recipes;
mod refuses;
mod resumed;
mod small;
mod speech;
mod stories;
mod summaries;
mod tokenizers;
mod words;
