//! Data augmentation of images: random shift, horizontal flip and erasing.

use regard_attention::Stream;
use regard_models::{Error, Result};
use serde::{Deserialize, Serialize};

/// Random stream of the augmentation.
const SITE: u64 = 0x696d_6167_6573_0001;
/// Random numbers reserved per image.
const DRAWS: u64 = 8;

/// Configuration of image augmentation, deterministic by the seed, the step and the image's index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImageAugment {
    /// Maximum shift in pixels in each direction; uncovered pixels are 0. 0 by default.
    pub shift: usize,
    /// Whether images are mirrored horizontally with probability 1/2.
    pub flip: bool,
    /// Probability that a rectangle of an image is replaced by the mean (random erasing, Zhong et
    /// al. 2020, arXiv:1708.04896: 2 to 33 % of the area, aspect ratios of 0.3 to 3.3); 0 by
    /// default.
    pub erase: f32,
}

/// A rectangle: ranges of rows and columns.
type Rectangle = [std::ops::Range<usize>; 2];

/// An image in a step of training.
#[derive(Clone, Copy, Debug)]
pub struct TrainingImage<'a> {
    /// Pixels, row by row, channels last.
    pub pixels: &'a [u8],
    /// Rows and columns.
    pub size: [usize; 2],
    /// Index of the image.
    pub number: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Training step.
    pub step: u64,
}

impl ImageAugment {
    /// Checks the settings for images of this size.
    pub fn check(&self, size: [usize; 2]) -> Result<()> {
        if self.shift >= size[0].min(size[1]) {
            return Err(Error::invalid(format!(
                "augment.shift: got {}, need less than a side of {size:?}",
                self.shift
            )));
        }
        match (0.0..=1.0).contains(&self.erase) {
            true => Ok(()),
            false => Err(Error::invalid(format!("augment.erase: got {}, need 0 to 1", self.erase))),
        }
    }

    /// Appends the augmented values of an image to `to`, channel by channel: `[C, H, W]`. Pixels
    /// are mapped by the table of their channel, erased ones are 0. All channels are shifted,
    /// mirrored and erased alike.
    pub fn look(&self, image: &TrainingImage, tables: &[[f32; 256]], to: &mut Vec<f32>) {
        let TrainingImage { pixels, size, number, seed, step } = *image;
        let ([rows, columns], stream) = (size, Stream::new(seed, step, SITE));
        let draw = |i: u64| stream.uniform(number as u64 * DRAWS + i);
        let moved = |draw: f32| (draw * (2 * self.shift + 1) as f32) as isize - self.shift as isize;
        let (down, right) = (moved(draw(0)), moved(draw(1)));
        let flipped = self.flip && draw(2) < 0.5;
        let hidden =
            (draw(3) < self.erase).then(|| rectangle(size, [draw(4), draw(5), draw(6), draw(7)]));
        for (channel, table) in tables.iter().enumerate() {
            let value = |pixel: usize| table[usize::from(pixels[pixel * tables.len() + channel])];
            for row in 0..rows {
                let from = row.checked_add_signed(-down).filter(|row| *row < rows);
                for column in 0..columns {
                    let seen = if flipped { columns - 1 - column } else { column };
                    let at = seen.checked_add_signed(-right).filter(|column| *column < columns);
                    let covered = |r: &Rectangle| r[0].contains(&row) && r[1].contains(&column);
                    to.push(match (&hidden, from.zip(at)) {
                        // Values are normalised, so the mean is 0.
                        (Some(hidden), _) if covered(hidden) => 0.0,
                        (_, Some((row, column))) => value(row * columns + column),
                        (_, None) => table[0],
                    });
                }
            }
        }
    }
}

fn rectangle([rows, columns]: [usize; 2], [area, aspect, top, left]: [f32; 4]) -> Rectangle {
    let area = (rows * columns) as f32 * (0.02 + area * 0.31);
    // Log-uniform from 0.3 to 1/0.3.
    let aspect = 0.3f32.powf(1.0 - 2.0 * aspect);
    let side = |length: f32, most: usize| (length.round() as usize).clamp(1, most);
    let (high, wide) = (side((area * aspect).sqrt(), rows), side((area / aspect).sqrt(), columns));
    let first = |draw: f32, room: usize| (draw * (room + 1) as f32) as usize;
    let (top, left) = (first(top, rows - high), first(left, columns - wide));
    [top..top + high, left..left + wide]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> [f32; 256] {
        std::array::from_fn(|byte| byte as f32 + 1000.0)
    }

    fn looks(augment: ImageAugment, step: u64) -> Vec<Vec<f32>> {
        let pixels: Vec<u8> = (1..=48).collect();
        let one = |number: usize| {
            let mut to = vec![];
            let image = TrainingImage { pixels: &pixels, size: [6, 8], number, seed: 3, step };
            augment.look(&image, &[table()], &mut to);
            to
        };
        (0..200).map(one).collect()
    }

    #[test]
    fn nothing_asked_for_is_nothing_done() {
        let wanted: Vec<f32> = (1..=48).map(|byte| byte as f32 + 1000.0).collect();
        assert!(looks(ImageAugment::default(), 5).iter().all(|look| *look == wanted));
    }

    #[test]
    fn an_image_is_moved_mirrored_and_hidden_as_a_function_of_its_number_and_step() {
        let all = ImageAugment { shift: 2, flip: true, erase: 0.5 };
        assert_eq!(looks(all, 1), looks(all, 1));
        assert_ne!(looks(all, 1), looks(all, 2));
        let moved = looks(ImageAugment { shift: 2, ..ImageAugment::default() }, 1);
        // Position of the pixel from row 2, column 3; uncovered pixels are 0.
        let place = |look: &Vec<f32>| look.iter().position(|x| *x == 1020.0).unwrap() as isize;
        let mut seen: Vec<isize> = moved.iter().map(|look| place(look) - 19).collect();
        seen.sort_unstable();
        seen.dedup();
        let wanted: Vec<isize> = (-2..=2).flat_map(|d| (-2..=2).map(move |r| d * 8 + r)).collect();
        assert_eq!(seen, wanted);
        assert!(moved.iter().flatten().all(|x| (1000.0..=1048.0).contains(x)));
        let flipped = looks(ImageAugment { flip: true, ..ImageAugment::default() }, 1);
        let turned = flipped.iter().filter(|look| look[0] == 1008.0).count();
        assert!((60..140).contains(&turned), "{turned} of 200 are mirrored");
        let erased = looks(ImageAugment { erase: 0.5, ..ImageAugment::default() }, 1);
        let hidden = erased.iter().filter(|look| look.contains(&0.0)).count();
        assert!((60..140).contains(&hidden), "{hidden} of 200 are hidden");
        let most = erased.iter().map(|look| look.iter().filter(|x| **x == 0.0).count()).max();
        assert!(most.unwrap() <= 24, "{most:?} of 48");
    }

    #[test]
    fn numbers_that_cannot_be_meant() {
        let error = |augment: ImageAugment| augment.check([6, 8]).unwrap_err().to_string();
        assert!(
            error(ImageAugment { shift: 6, ..ImageAugment::default() })
                .contains("augment.shift: got 6")
        );
        assert!(
            error(ImageAugment { erase: 1.5, ..ImageAugment::default() }).contains("augment.erase")
        );
    }

    #[test]
    fn channels_are_shifted_mirrored_and_erased_alike() {
        let all = ImageAugment { shift: 2, flip: true, erase: 0.5 };
        let tables = [0, 300, 600].map(|more| table().map(|value| value + more as f32));
        let pixels: Vec<u8> = (0..6 * 8 * 3).map(|i| (i * 29 % 251) as u8).collect();
        for number in 0..50 {
            let look = |pixels: &[u8], tables: &[[f32; 256]]| {
                let mut to = vec![];
                let image = TrainingImage { pixels, size: [6, 8], number, seed: 3, step: 1 };
                all.look(&image, tables, &mut to);
                to
            };
            let planes: Vec<f32> = (0..3)
                .flat_map(|c| {
                    let plane: Vec<u8> = pixels.iter().skip(c).step_by(3).copied().collect();
                    look(&plane, &tables[c..=c])
                })
                .collect();
            assert_eq!(look(&pixels, &tables), planes, "image {number}");
        }
    }
}
