//! Images with one label each, from folders or tables, resized to one size.

use super::examples::{check_known, check_parts, divide};
use super::findings::{Findings, Place};
use super::media::{self, Example, Found, Item, Media};
use super::reading::{Reading, part_told};
use super::{DataSize, Draft, Request, split_line};
use crate::classify_image::resize;
use crate::data::{Image, idx, sets};
use crate::say;
use regard_models::{Error, Result, checkpoint};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use toml::{Table as Keys, Value};

const IMAGES: Media = Media {
    thing: "image",
    other: "not an image",
    ends: &["png", "jpg", "jpeg"],
    formats: "PNG or JPEG",
    text: "label",
    empty: "empty label",
    path_names: &[
        "image",
        "path",
        "file",
        "filename",
        "file_name",
        "image_path",
        "filepath",
        "img",
        "image_id",
    ],
    text_names: &["label", "class", "category", "target", "labels", "class_name", "label_name"],
};

/// Smallest and largest side that is chosen, in pixels.
const CHOSEN: [usize; 2] = [16, 64];
/// Smallest and largest side that can be asked for.
const SIDES: [usize; 2] = [8, 512];
/// Images are halved twice before attention; other sides would lose pixels at the border.
const MULTIPLE: usize = 4;
/// Most bytes of all images of a part.
const MOST: usize = 1 << 31;

/// Bytes in which the size of an image is looked for: profiles and thumbnails come before it.
const HEADER: u64 = 1 << 20;

/// Names of the parts in the names of the written files.
const PARTS: [&str; 3] = ["train", "valid", "t10k"];

/// End of the name of the list of a part's files, in the order of its images.
pub(crate) const FILES: &str = "-files.txt";

/// An image that was read.
struct Picture {
    /// Rows and columns of the file.
    size: [usize; 2],
    /// Whether channels differ.
    colour: bool,
    /// The resized image.
    image: Image,
}

/// Images of a part, as they are written.
struct Written {
    /// File of each image.
    files: String,
    pixels: Vec<u8>,
    labels: Vec<usize>,
}

/// Reads the images of a request.
pub(super) fn read(request: &Request, findings: &mut Findings) -> Result<Option<Draft>> {
    let [least, most] = SIDES;
    if let Some(side) = request.image_size
        && !((least..=most).contains(&side) && side.is_multiple_of(MULTIPLE))
    {
        let need = format!("need a multiple of {MULTIPLE} from {least} to {most}");
        return Err(Error::invalid(format!("--image-size: got {side}, {need}")));
    }
    let Some(Found { parts, held, told, reading, chosen, test: given_test, .. }) =
        media::find(request, &IMAGES, findings)?
    else {
        return Ok(None);
    };
    let recorded = request.like().and_then(|like| like.image_size);
    let side = request.image_size.or(recorded).unwrap_or_else(|| chosen_side(&parts));
    for items in &parts {
        // Before they are read: all images are held in memory. A fifth may be held out.
        if items.len().saturating_mul(side * side) > MOST / 4 * 5 {
            too_large(items.len(), side * side, items[0].place(), findings);
            return Ok(None);
        }
    }
    let [train, valid, test] = parts.map(|items| pictures(items, side, findings));
    if train.is_empty() {
        return Ok(None);
    }
    if let Some(like) = request.like() {
        let summary = Vec::from_iter([told].into_iter().chain(chosen.map(part_told)));
        let draft = whole(train, side, like, summary, findings);
        return Ok(Some(Draft { chosen, ..draft }));
    }
    media::check_labels(&train, findings);
    media::contradictions([&train, &valid, &test], findings);
    let all = divide([train, valid, test], true, held, request.seed, findings);
    check_known(&all, findings);
    check_parts(&all, PARTS.len(), held, findings);
    let pictures = || all.iter().flatten().map(|example| &example.content);
    let coloured = pictures().filter(|picture| picture.colour).count();
    let channels = if coloured > 0 { 3 } else { 1 };
    let (sizes, total) = (all.each_ref().map(Vec::len), pictures().count());
    too_many(&all, side * side * channels, findings);
    let counts = media::counted(&all[0]);
    let mut summary = vec![
        told,
        format!(
            "{}: {}; {}",
            say::many(total, "image"),
            sizes_told(pictures().map(|picture| picture.size), side),
            match coloured {
                0 => "grey: no image has colour".to_string(),
                some if some == total => "in colour".to_string(),
                some => format!("in colour: {} of them have colour", say::count(some)),
            }
        ),
        labels_told(&counts),
        split_line(sizes, held, request.seed),
    ];
    if findings.skipped() > 0 {
        summary.push(format!("{} left out (--skip-bad)", say::many(findings.skipped(), "file")));
    }
    let names: Vec<String> = counts.iter().map(|(label, _)| label.to_string()).collect();
    let size = DataSize {
        examples: sizes[0],
        units: sizes[0],
        longest: side,
        labels: names.len(),
        unspaced: false,
    };
    let labels = names.iter().map(|name| Value::String(name.clone())).collect();
    let data = Keys::from_iter([("labels".to_string(), Value::Array(labels))]);
    let keys = Keys::from_iter([("data".to_string(), Value::Table(data))]);
    let number: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let parts = all.map(|part| Written::new(part, channels, &number));
    drop(number);
    let write = move |folder: &Path| {
        PARTS.iter().zip(&parts).try_for_each(|(name, part)| part.write(folder, name, side))
    };
    Ok(Some(Draft {
        places: Default::default(),
        task: "classify-image",
        summary,
        parts: sizes,
        size,
        keys,
        files: vec![("folder", "")],
        write: Box::new(write),
        reading: Reading {
            image_size: Some(side),
            colour: Some(channels == 3),
            ..reading.with_labels(names)
        },
        chosen: None,
        test: given_test,
    }))
}

/// Images that a model is evaluated on, without those whose labels it does not know.
fn whole(
    all: Vec<Example<Picture>>,
    side: usize,
    like: &Reading,
    mut summary: Vec<String>,
    findings: &mut Findings,
) -> Draft {
    let all = media::known_only(all, like, findings);
    let sizes = sizes_told(all.iter().map(|example| example.content.size), side);
    summary.push(format!("{}: {sizes}", say::many(all.len(), "image")));
    let coloured = all.iter().filter(|example| example.content.colour).count();
    if coloured > 0 && like.colour == Some(false) {
        let coloured = say::count(coloured);
        summary.push(format!("{coloured} of them have colour; the run reads images in grey"));
    }
    if findings.skipped() > 0 {
        summary.push(format!("{} left out (--skip-bad)", say::many(findings.skipped(), "file")));
    }
    let (count, part) = (all.len(), PARTS[2]);
    let channels = if like.colour == Some(false) { 1 } else { 3 };
    let number: HashMap<&str, usize> = like.labels.iter().map(String::as_str).zip(0..).collect();
    let written = Written::new(all, channels, &number);
    let file = if channels == 1 { "t10k-images-idx3-ubyte" } else { "t10k-images-idx4-ubyte" };
    let write = move |folder: &Path| written.write(folder, part, side);
    Draft::to_evaluate("classify-image", summary, count, file, Box::new(write))
}

/// Median side of the images, from their headers; images that cannot be read are noted later.
fn chosen_side(parts: &[Vec<Item>; 3]) -> usize {
    let mut sides = vec![];
    for items in parts {
        let sizes = media::in_parallel(items, &|item| dimensions(&item.path));
        sides.extend(sizes.into_iter().flatten().flatten());
    }
    sides.sort_unstable();
    let [least, most] = CHOSEN;
    let median = sides.get(sides.len() / 2).copied().unwrap_or(least);
    (median.clamp(least, most) + MULTIPLE / 2) / MULTIPLE * MULTIPLE
}

/// Columns and rows of a PNG or JPEG, from its header. `None` if it is damaged.
fn dimensions(path: &Path) -> Option<[usize; 2]> {
    let mut bytes = vec![];
    std::fs::File::open(path).ok()?.take(HEADER).read_to_end(&mut bytes).ok()?;
    let number = |at: usize, width: usize| {
        let digits = bytes.get(at..at + width)?;
        Some(digits.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)))
    };
    if bytes.starts_with(b"\x89PNG") {
        return Some([number(16, 4)?, number(20, 4)?]);
    }
    let mut at = 2;
    while bytes.starts_with(&[0xff, 0xd8]) {
        match (number(at, 1)?, number(at + 1, 1)?) {
            (0xff, 0xff) => at += 1,
            // The start of a frame; three markers of the range are tables.
            (0xff, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf) => {
                return Some([number(at + 7, 2)?, number(at + 5, 2)?]);
            }
            (0xff, _) => at += 2 + number(at + 2, 2)?,
            _ => return None,
        }
    }
    None
}

/// Reads and resizes images; those that cannot be read are noted and left out.
fn pictures(items: Vec<Item>, side: usize, findings: &mut Findings) -> Vec<Example<Picture>> {
    let read = |item: &Item| -> Result<(String, Picture), String> {
        let image = Image::read(&item.path).map_err(|error| media::plain(&error, &item.path))?;
        let mut digest = Sha256::new();
        digest.update(format!("{:?} {} ", image.size, image.channels));
        digest.update(&image.pixels);
        let is_grey = |[r, g, b]: &[u8; 3]| r == g && g == b;
        let colour = image.channels == 3 && !image.pixels.as_chunks::<3>().0.iter().all(is_grey);
        let resized = resize(&image, [side; 2]);
        let picture = Picture { size: image.size, colour, image: resized };
        Ok((sets::hex(&digest.finalize()), picture))
    };
    let done = media::in_parallel(&items, &read);
    let mut all = vec![];
    for (item, done) in items.into_iter().zip(done) {
        match done {
            Ok((key, content)) => all.push(Example { item, key, content }),
            Err(message) => {
                findings.row("unreadable image", item.place(), item.tell(&message));
            }
        }
    }
    all
}

/// Notes a part that is larger than a file of images can be.
fn too_many(all: &[Vec<Example<Picture>>; 3], area: usize, findings: &mut Findings) {
    for part in all.iter().filter(|part| part.len().saturating_mul(area) > MOST) {
        too_large(part.len(), area, part[0].item.place(), findings);
    }
}

fn too_large(count: usize, area: usize, place: Place, findings: &mut Findings) {
    let message = format!(
        "{} images of at least {area} bytes are more than {MOST} bytes; set a smaller --image-size",
        say::count(count)
    );
    findings.error("too many pixels", Place::whole(place.file), message);
}

/// Phrase about the sizes of the files, columns × rows, and of the resized images.
fn sizes_told(sizes: impl Iterator<Item = [usize; 2]>, side: usize) -> String {
    let mut all: Vec<[usize; 2]> = sizes.collect();
    all.sort_unstable_by_key(|[rows, columns]| (rows * columns, *rows));
    let shown = |[rows, columns]: &[usize; 2]| format!("{columns}×{rows}");
    let (Some(small), Some(large)) = (all.first(), all.last()) else { return String::new() };
    // Sorted by area, so that equal ends do not mean equal sizes in between.
    let from = match all.iter().all(|size| size == small) {
        true => format!("size {}", shown(small)),
        false => format!("sizes {} to {}", shown(small), shown(large)),
    };
    match all.iter().all(|size| *size == [side; 2]) {
        true => from,
        false => format!("{from}, resized to {side}×{side}"),
    }
}

/// Sentence about the labels of the training part.
fn labels_told(counts: &[(&str, usize)]) -> String {
    let each =
        |(name, count): &(&str, usize)| format!("{} {}", say::short(name, 30), say::count(*count));
    let named = say::list_in_line(&counts.iter().map(each).collect::<Vec<_>>());
    format!("{} in the training part: {named}", say::many(counts.len(), "label"))
}

impl Written {
    fn new(part: Vec<Example<Picture>>, channels: usize, number: &HashMap<&str, usize>) -> Written {
        let (mut files, mut pixels, mut labels) = (String::new(), vec![], vec![]);
        for Example { item, content, .. } in part {
            // A label that only a held-out part has was noted as an error: nothing is written.
            let Some(label) = number.get(item.text.as_str()) else { continue };
            let image = content.image.with_channels(channels).expect("it has 1 or 3 channels");
            pixels.extend(image.pixels);
            labels.push(*label);
            let path = std::path::absolute(&item.path).unwrap_or(item.path);
            files += &format!("{}\n", path.display().to_string().replace(['\n', '\r'], " "));
        }
        Written { files, pixels, labels }
    }

    fn write(&self, folder: &Path, part: &str, side: usize) -> Result<()> {
        let count = self.labels.len();
        let images = |kind: &str| folder.join(format!("{part}-images-{kind}-ubyte"));
        let (kind, other, shape) = match self.pixels.len() == count * side * side {
            true => ("idx3", "idx4", vec![count, side, side]),
            false => ("idx4", "idx3", vec![count, side, side, 3]),
        };
        idx::write(&images(kind), &shape, &self.pixels)?;
        let files = folder.join(format!("{part}{FILES}"));
        checkpoint::write_file(&files, self.files.as_bytes())?;
        // An earlier import may have written the other kind, and a reader accepts only one.
        if images(other).is_file() {
            std::fs::remove_file(images(other)).map_err(Error::io(images(other)))?;
        }
        idx::write_labels(&folder.join(format!("{part}-labels-idx1-ubyte")), &self.labels)
    }
}

#[cfg(test)]
mod tests;
