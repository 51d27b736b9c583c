//! Training, from recipes to models; tokenizers, beside those of others.

mod killed;
mod learns;
mod readers;
mod recipes;
mod refuses;
mod resumed;
mod small;
mod tokenizers;
