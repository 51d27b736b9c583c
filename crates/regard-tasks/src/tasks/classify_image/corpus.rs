//! Training, validation and test images.

use crate::data::idx::{self, Held, Idx};
use crate::data::{Image, Part};
use regard_models::{Error, Result};
use std::path::{Path, PathBuf};

/// Number of images at the end of the training file that are held out for validation, unless the
/// recipe says another or there is a file of them.
const HELD_OUT: usize = 5000;

/// Images of one size with their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelledImages {
    /// Rows and columns of each image.
    pub size: [usize; 2],
    /// Channels per pixel: 1 for grey, 3 for RGB.
    pub channels: usize,
    /// Pixels, image by image and row by row, channels last.
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
        let area = self.area();
        &self.pixels[number * area..(number + 1) * area]
    }

    /// Returns the number of bytes of an image.
    pub(super) fn area(&self) -> usize {
        self.size[0] * self.size[1] * self.channels
    }

    /// Returns channels, rows and columns, as a model takes them.
    pub(super) fn sides(&self) -> [usize; 3] {
        [self.channels, self.size[0], self.size[1]]
    }

    /// Describes an image: "28×28 pixels".
    pub(super) fn kind(&self) -> String {
        let [rows, columns] = self.size;
        let colour = if self.channels == 1 { "" } else { " in colour" };
        format!("{rows}×{columns} pixels{colour}")
    }

    /// Reads a file of images and a file with one label per image.
    pub fn read(images: &Path, labels: &Path) -> Result<LabelledImages> {
        let Pixels { size, channels, pixels } = Pixels::of(idx::read(images)?, images)?;
        let (count, path) = (pixels.len() / (size[0] * size[1] * channels), labels);
        let labels = idx::read_labels(path)?;
        if labels.len() != count {
            let message = format!(
                "got labels of shape [{}], need [{count}]: one per image of {}",
                labels.len(),
                images.display()
            );
            return Err(Error::file(path, message));
        }
        Ok(LabelledImages { size, channels, pixels, labels })
    }

    /// Reads images with the labels of the neighbouring file, named as in MNIST:
    /// `t10k-images-idx3-ubyte` (or `idx4`, in colour) and `t10k-labels-idx1-ubyte`.
    pub fn beside_labels(images: &Path) -> Result<LabelledImages> {
        let name = images.file_name().unwrap_or_default().to_string_lossy();
        let other =
            name.replace("images-idx3", "labels-idx1").replace("images-idx4", "labels-idx1");
        if other == name {
            let message = "need a file with images-idx3 or images-idx4 in its name, and beside it \
                           one with labels-idx1 instead";
            return Err(Error::file(images, message));
        }
        LabelledImages::read(images, &images.with_file_name(other))
    }

    /// Splits off all images from index `from` on.
    fn split_off(&mut self, from: usize) -> LabelledImages {
        let pixels = self.pixels.split_off(from * self.area());
        let labels = self.labels.split_off(from);
        LabelledImages { size: self.size, channels: self.channels, pixels, labels }
    }
}

/// Pixels of images of one size.
struct Pixels {
    size: [usize; 2],
    channels: usize,
    pixels: Vec<u8>,
}

impl Pixels {
    /// Takes the contents of an IDX file as images.
    fn of(Idx { shape, data: pixels }: Idx, path: &Path) -> Result<Pixels> {
        let (size, channels) = match shape[..] {
            [_, rows, columns] => ([rows, columns], 1),
            [_, rows, columns, channels @ (1 | 3)] => ([rows, columns], channels),
            _ => {
                let message = format!(
                    "got a shape of {shape:?}, need [images, rows, columns], or [images, rows, \
                     columns, 3] in colour"
                );
                return Err(Error::file(path, message));
            }
        };
        Ok(Pixels { size, channels, pixels })
    }
}

/// Images of a file: one of a PNG or JPEG, all of an IDX file.
pub enum Images {
    /// One image, with any number of channels.
    One(Image),
    /// Images of one size.
    Many {
        /// Rows and columns of each image.
        size: [usize; 2],
        /// Channels per pixel: 1 for grey, 3 for RGB.
        channels: usize,
        /// Pixels, image by image and row by row, channels last.
        pixels: Vec<u8>,
    },
}

impl Images {
    /// Reads a PNG, JPEG or IDX file.
    pub fn read(path: &Path) -> Result<Images> {
        match idx::read_if(path)? {
            Held::Other(file) => Image::read_from(file, path).map(Images::One),
            Held::Idx(held) => {
                let Pixels { size, channels, pixels } = Pixels::of(held, path)?;
                Ok(Images::Many { size, channels, pixels })
            }
        }
    }

    /// Returns the number of images.
    pub fn len(&self) -> usize {
        match self {
            Images::One(_) => 1,
            Images::Many { size, channels, pixels } => {
                pixels.len().checked_div(size[0] * size[1] * channels).unwrap_or(0)
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
            Images::Many { size, channels, pixels } => {
                let area = size[0] * size[1] * channels;
                let pixels = pixels.chunks_exact(area).nth(number)?.to_vec();
                Some(Image { size: *size, channels: *channels, pixels })
            }
        }
    }
}

/// Training, validation and test images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// Training part.
    pub train: LabelledImages,
    /// Validation part: a file of its own, or the last images of the training file.
    pub valid: LabelledImages,
    /// Test part: the test file.
    pub test: LabelledImages,
    /// Names of the files that the images of the three parts come from, without `.gz`.
    pub files: [String; 3],
}

impl Corpus {
    /// Reads a folder with files named as those of MNIST. Without a validation file, the last
    /// `valid` images of the training file are the validation part, 5000 by default.
    ///
    /// # Errors
    /// If there is a validation file and `valid` is given, or a file is missing or does not fit the
    /// others.
    pub fn read(folder: &Path, valid: Option<usize>) -> Result<Corpus> {
        let own = part_begun(folder, "valid");
        if let Some((file, count)) = own.as_ref().zip(valid) {
            return Err(Error::invalid(format!(
                "data.valid is {count}, and {} holds {file}: both set the validation images; leave \
                 data.valid out, or remove the file",
                folder.display()
            )));
        }
        let (train_file, mut train) = read_part(folder, "train")?;
        let (test_file, test) = read_part(folder, "t10k")?;
        let (valid_file, valid) = match own {
            Some(_) => read_part(folder, "valid")?,
            None => {
                let (count, most) = (valid.unwrap_or(HELD_OUT), train.len().saturating_sub(1));
                if !(1..=most).contains(&count) {
                    let message = format!("data.valid: got {count}, need 1 to {most}");
                    return Err(Error::invalid(message));
                }
                (train_file.clone(), train.split_off(train.len() - count))
            }
        };
        for (file, part) in [(&valid_file, &valid), (&test_file, &test)] {
            if part.sides() != train.sides() {
                let (got, need) = (part.kind(), train.kind());
                let message =
                    format!("{file}: got images of {got}, need {need} as in {train_file}");
                return Err(Error::file(folder, message));
            }
        }
        Ok(Corpus { train, valid, test, files: [train_file, valid_file, test_file] })
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

/// Returns the names of the files that a part may have: grey images, colour images, labels.
fn names(part: &str) -> [String; 3] {
    ["images-idx3", "images-idx4", "labels-idx1"].map(|kind| format!("{part}-{kind}-ubyte"))
}

/// Returns the first file of a part that is there, by its name without `.gz`.
fn part_begun(folder: &Path, part: &str) -> Option<String> {
    names(part).into_iter().find(|name| file(folder, name).is_some())
}

/// Reads a part, and returns the name of its images' file too.
fn read_part(folder: &Path, part: &str) -> Result<(String, LabelledImages)> {
    let [grey, colour, labels] = names(part);
    let missing = |name: &str| {
        Error::file(folder, format!("there is no file {name} in it, compressed (.gz) or not"))
    };
    let (name, images) = match [&grey, &colour].map(|name| file(folder, name)) {
        [Some(_), Some(_)] => {
            let message = format!("holds {grey} and {colour}, need one of them");
            return Err(Error::file(folder, message));
        }
        [Some(path), None] => (grey, path),
        [None, Some(path)] => (colour, path),
        [None, None] => return Err(missing(&format!("{grey} or, in colour, {colour}"))),
    };
    let labels = file(folder, &labels).ok_or_else(|| missing(&labels))?;
    Ok((name, LabelledImages::read(&images, &labels)?))
}

/// Returns the path of a file, or of its compressed form, if there is one.
fn file(folder: &Path, name: &str) -> Option<PathBuf> {
    let both = [name.to_string(), format!("{name}.gz")].map(|name| folder.join(name));
    both.into_iter().find(|path| path.is_file())
}
