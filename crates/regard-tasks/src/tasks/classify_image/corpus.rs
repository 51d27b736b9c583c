//! Training, validation and test images.

use crate::data::idx::{self, Held, Idx};
use crate::data::{Image, Part};
use regard_models::{Error, Result};
use std::path::{Path, PathBuf};

/// Greyscale images of one size with their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelledImages {
    /// Rows and columns of each image.
    pub size: [usize; 2],
    /// Pixels, image by image and row by row.
    pub pixels: Vec<u8>,
    /// Class of each image.
    pub labels: Vec<usize>,
}

impl LabelledImages {
    /// Returns the number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Returns the pixels of one image.
    pub fn pixels(&self, number: usize) -> &[u8] {
        let area = self.size[0] * self.size[1];
        &self.pixels[number * area..(number + 1) * area]
    }

    /// Reads a file of images and a file with one label per image.
    pub fn read(images: &Path, labels: &Path) -> Result<LabelledImages> {
        let (size, pixels) = images_of(images)?;
        let Idx { shape, data } = idx::read(labels)?;
        let count = pixels.len() / (size[0] * size[1]);
        if shape != [count] {
            let message = format!(
                "got labels of shape {shape:?}, need [{count}]: one per image of {}",
                images.display()
            );
            return Err(Error::file(labels, message));
        }
        Ok(LabelledImages { size, pixels, labels: data.into_iter().map(usize::from).collect() })
    }

    /// Reads images with the labels of the neighbouring file, named as in MNIST:
    /// `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`.
    pub fn beside_labels(images: &Path) -> Result<LabelledImages> {
        let name = images.file_name().unwrap_or_default().to_string_lossy();
        let other = name.replace("images-idx3", "labels-idx1");
        if other == name {
            let message = "need a file with images-idx3 in its name, and beside it one with \
                           labels-idx1 instead";
            return Err(Error::file(images, message));
        }
        LabelledImages::read(images, &images.with_file_name(other))
    }

    /// Splits off all images from index `from` on.
    fn split_off(&mut self, from: usize) -> LabelledImages {
        let pixels = self.pixels.split_off(from * self.size[0] * self.size[1]);
        LabelledImages { size: self.size, pixels, labels: self.labels.split_off(from) }
    }
}

/// Returns the size and the pixels of the images of a file.
fn images_of(path: &Path) -> Result<([usize; 2], Vec<u8>)> {
    images_in(idx::read(path)?, path)
}

fn images_in(Idx { shape, data }: Idx, path: &Path) -> Result<([usize; 2], Vec<u8>)> {
    match shape[..] {
        [_, rows, columns] => Ok(([rows, columns], data)),
        _ => {
            let message = format!("got a shape of {shape:?}, need [images, rows, columns]");
            Err(Error::file(path, message))
        }
    }
}

/// Images of a file: one of a PNG or JPEG, all of an IDX file.
pub enum Images {
    /// One image, with any number of channels.
    One(Image),
    /// Greyscale images of one size.
    Many {
        /// Rows and columns of each image.
        size: [usize; 2],
        /// Pixels, image by image and row by row.
        pixels: Vec<u8>,
    },
}

impl Images {
    /// Reads a PNG, JPEG or IDX file.
    pub fn read(path: &Path) -> Result<Images> {
        match idx::read_if(path)? {
            Held::Other(file) => Image::read_from(file, path).map(Images::One),
            Held::Idx(held) => {
                let (size, pixels) = images_in(held, path)?;
                Ok(Images::Many { size, pixels })
            }
        }
    }

    /// Returns the number of images.
    pub fn len(&self) -> usize {
        match self {
            Images::One(_) => 1,
            Images::Many { size, pixels } => {
                pixels.len().checked_div(size[0] * size[1]).unwrap_or(0)
            }
        }
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an image by index, from 0; `None` if there is none.
    pub fn get(&self, number: usize) -> Option<Image> {
        match self {
            Images::One(picture) => (number == 0).then(|| picture.clone()),
            Images::Many { size, pixels } => {
                let pixels = pixels.chunks_exact(size[0] * size[1]).nth(number)?.to_vec();
                Some(Image { size: *size, channels: 1, pixels })
            }
        }
    }
}

/// Training, validation and test images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// Training part.
    pub train: LabelledImages,
    /// Validation part: the last images of the training file.
    pub valid: LabelledImages,
    /// Test part: the test file.
    pub test: LabelledImages,
}

impl Corpus {
    /// Reads a folder with the four files of MNIST and similar sets. The last `valid` images of the
    /// training file are the validation part.
    pub fn read(folder: &Path, valid: usize) -> Result<Corpus> {
        let read = |part: &str| {
            let images = file(folder, &format!("{part}-images-idx3-ubyte"))?;
            LabelledImages::read(&images, &file(folder, &format!("{part}-labels-idx1-ubyte"))?)
        };
        let (mut train, test) = (read("train")?, read("t10k")?);
        if !(1..train.len()).contains(&valid) {
            let (got, most) = (valid, train.len().saturating_sub(1));
            return Err(Error::invalid(format!("data.valid: got {got}, need 1 to {most}")));
        }
        if test.size != train.size {
            let message = format!("got test images of {:?}, need {:?}", test.size, train.size);
            return Err(Error::file(folder, message));
        }
        let valid = train.split_off(train.len() - valid);
        Ok(Corpus { train, valid, test })
    }

    /// Returns one of the parts.
    pub fn take(self, part: Part) -> LabelledImages {
        part.of([self.train, self.valid, self.test])
    }

    /// Returns the number of classes: one more than the largest label.
    pub fn classes(&self) -> usize {
        let all = [&self.train, &self.valid, &self.test].map(|pile| pile.labels.iter().max());
        all.into_iter().flatten().max().map_or(0, |most| most + 1)
    }
}

/// Returns the path of a file, or of its compressed form.
fn file(folder: &Path, name: &str) -> Result<PathBuf> {
    let both = [name.to_string(), format!("{name}.gz")].map(|name| folder.join(name));
    both.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Error::file(folder, format!("there is no file {name} in it, compressed (.gz) or not"))
    })
}
