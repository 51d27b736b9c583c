//! Which images are learned from, which decide, and which are reported.

use crate::data::idx::{self, Held, Idx};
use crate::data::{Part, Picture};
use regard_models::{Error, Result};
use std::path::{Path, PathBuf};

/// Images of one size with their labels. All of them are grey.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pile {
    /// Rows and columns of each.
    pub size: [usize; 2],
    /// Image after image, row after row.
    pub pixels: Vec<u8>,
    /// What is on each.
    pub labels: Vec<usize>,
}

impl Pile {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The pixels of one.
    pub fn pixels(&self, number: usize) -> &[u8] {
        let area = self.size[0] * self.size[1];
        &self.pixels[number * area..(number + 1) * area]
    }

    /// Reads images, and labels with a number for each.
    pub fn read(images: &Path, labels: &Path) -> Result<Pile> {
        let (size, pixels) = images_of(images)?;
        let Idx { shape, data } = idx::read(labels)?;
        let count = pixels.len() / (size[0] * size[1]);
        if shape != [count] {
            let message = format!(
                "labels of shape {shape:?}, need [{count}]: one for each image of {}",
                images.display()
            );
            return Err(Error::file(labels, message));
        }
        Ok(Pile { size, pixels, labels: data.into_iter().map(usize::from).collect() })
    }

    /// Reads images whose labels are in a file beside theirs, named as MNIST names them:
    /// `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`.
    pub fn beside_labels(images: &Path) -> Result<Pile> {
        let name = images.file_name().unwrap_or_default().to_string_lossy();
        let other = name.replace("images-idx3", "labels-idx1");
        if other == name {
            let message = "need a file with images-idx3 in its name, and one with labels-idx1 \
                           in the same place of its name beside it";
            return Err(Error::file(images, message));
        }
        Pile::read(images, &images.with_file_name(other))
    }

    /// Takes away all from this one on.
    fn split_off(&mut self, from: usize) -> Pile {
        let pixels = self.pixels.split_off(from * self.size[0] * self.size[1]);
        Pile { size: self.size, pixels, labels: self.labels.split_off(from) }
    }
}

/// The size and the pixels of the images of a file.
fn images_of(path: &Path) -> Result<([usize; 2], Vec<u8>)> {
    images_in(idx::read(path)?, path)
}

fn images_in(Idx { shape, data }: Idx, path: &Path) -> Result<([usize; 2], Vec<u8>)> {
    match shape[..] {
        [_, rows, columns] => Ok(([rows, columns], data)),
        _ => {
            let message = format!("a shape of {shape:?}, need [images, rows, columns]");
            Err(Error::file(path, message))
        }
    }
}

/// The images of a file: one of a PNG or a JPEG, all of an IDX file.
pub enum Images {
    /// One, with any number of channels.
    One(Picture),
    /// Grey ones of one size.
    Many {
        /// Rows and columns of each.
        size: [usize; 2],
        /// Image after image, row after row.
        pixels: Vec<u8>,
    },
}

impl Images {
    /// Reads a file of any of the formats.
    pub fn read(path: &Path) -> Result<Images> {
        match idx::read_if(path)? {
            Held::Other(file) => Picture::read_from(file, path).map(Images::One),
            Held::Idx(held) => {
                let (size, pixels) = images_in(held, path)?;
                Ok(Images::Many { size, pixels })
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Images::One(_) => 1,
            Images::Many { size, pixels } => {
                pixels.len().checked_div(size[0] * size[1]).unwrap_or(0)
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them, from 0.
    pub fn get(&self, number: usize) -> Option<Picture> {
        match self {
            Images::One(picture) => (number == 0).then(|| picture.clone()),
            Images::Many { size, pixels } => {
                let pixels = pixels.chunks_exact(size[0] * size[1]).nth(number)?.to_vec();
                Some(Picture { size: *size, channels: 1, pixels })
            }
        }
    }
}

/// Images to learn from and to be asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corpus {
    /// What is learned from.
    pub train: Pile,
    /// What decisions are made on: the last ones of the training file.
    pub valid: Pile,
    /// What is reported: the test file.
    pub test: Pile,
}

impl Corpus {
    /// Reads a folder with the four files of MNIST and its relatives. The last `valid` images of
    /// the training file are not learned from.
    pub fn read(folder: &Path, valid: usize) -> Result<Corpus> {
        let read = |part: &str| {
            let images = file(folder, &format!("{part}-images-idx3-ubyte"))?;
            Pile::read(&images, &file(folder, &format!("{part}-labels-idx1-ubyte"))?)
        };
        let (mut train, test) = (read("train")?, read("t10k")?);
        if !(1..train.len()).contains(&valid) {
            let (got, most) = (valid, train.len().saturating_sub(1));
            return Err(Error::invalid(format!("data.valid: got {got}, need 1 to {most}")));
        }
        if test.size != train.size {
            let message =
                format!("test images of {:?}, the others are {:?}", test.size, train.size);
            return Err(Error::file(folder, message));
        }
        let valid = train.split_off(train.len() - valid);
        Ok(Corpus { train, valid, test })
    }

    /// One of the parts.
    pub fn take(self, part: Part) -> Pile {
        part.of([self.train, self.valid, self.test])
    }

    /// Classes: one more than the largest label.
    pub fn classes(&self) -> usize {
        let all = [&self.train, &self.valid, &self.test].map(|pile| pile.labels.iter().max());
        all.into_iter().flatten().max().map_or(0, |most| most + 1)
    }
}

/// The file of this name, or the same compressed.
fn file(folder: &Path, name: &str) -> Result<PathBuf> {
    let both = [name.to_string(), format!("{name}.gz")].map(|name| folder.join(name));
    both.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Error::file(folder, format!("there is no file {name} in it, compressed (.gz) or not"))
    })
}
