//! Training, from recipes to models.

mod killed;
mod learns;
mod recipes;
mod refuses;
mod resumed;
mod small;
