//! Training, from recipes to models.

mod killed;
mod learns;
mod readers;
mod recipes;
mod refuses;
mod resumed;
mod small;
