//! TensorBoard's event files: `events.out.tfevents.*`, records of events with checksums.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::crc32c::masked_crc32c;
use super::event;
use crate::{Error, Result};

const PREFIX: &str = "events.out.tfevents.";

/// An event file open for appending.
#[derive(Debug)]
pub(super) struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Creates a new file that sorts after the existing ones.
    pub(super) fn create(dir: &Path, resume_at: Option<u64>, now: f64) -> Result<EventFile> {
        let path = dir.join(next_name(&names(dir)?, now as u64));
        let file = File::create_new(&path).map_err(Error::io(&path))?;
        let mut events = EventFile { path, file };
        events.append(&event::file_version(now))?;
        if let Some(step) = resume_at {
            events.append(&event::session_start(now, step + 1))?;
        }
        Ok(events)
    }

    /// Writes the values of a step.
    pub(super) fn write(&mut self, step: u64, values: &[(&str, f64)], now: f64) -> Result<()> {
        self.append(&event::scalars(now, step, values))
    }

    /// Appends a record in one system call, so that concurrent readers find whole records.
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.file.write_all(&record(data)).map_err(Error::io(&self.path))
    }
}

/// Builds a TFRecord record: length, its checksum, data, their checksum.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(data.len() + 16);
    record.extend(length);
    record.extend(masked_crc32c(&length).to_le_bytes());
    record.extend(data);
    record.extend(masked_crc32c(data).to_le_bytes());
    record
}

/// Returns the event files of a folder, in the order in which TensorBoard reads them.
fn names(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir))? {
        let name = entry.map_err(Error::io(dir))?.file_name();
        names.extend(name.into_string().ok().filter(|name| name.starts_with(PREFIX)));
    }
    names.sort();
    Ok(names)
}

/// Returns a name that sorts after all others even if the clock stood still or went back, since a
/// resumed run must be read after the run that it resumes.
fn next_name(names: &[String], now: u64) -> String {
    let time_of = |name: &String| -> u64 {
        name[PREFIX.len()..].split('.').next().and_then(|t| t.parse().ok()).unwrap_or(0)
    };
    let last = names.iter().map(time_of).max();
    let time = last.map_or(now, |last| now.max(last + 1));
    format!("{PREFIX}{time:010}.regard")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The events of a file; every checksum is checked.
    fn records(bytes: &[u8]) -> Vec<&[u8]> {
        let mut rest = bytes;
        let mut take = |n: usize| {
            let (head, tail) = rest.split_at(n);
            rest = tail;
            head
        };
        let mut records = Vec::new();
        let mut used = 0;
        while used < bytes.len() {
            let length = take(8);
            assert_eq!(take(4), masked_crc32c(length).to_le_bytes());
            let data = take(u64::from_le_bytes(length.try_into().unwrap()) as usize);
            assert_eq!(take(4), masked_crc32c(data).to_le_bytes());
            used += 16 + data.len();
            records.push(data);
        }
        records
    }

    /// The fields of a message: numbers as they are, bytes by their content.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        fn number(bytes: &mut &[u8]) -> u64 {
            let end = bytes.iter().position(|b| b & 0x80 == 0).unwrap() + 1;
            let (head, tail) = bytes.split_at(end);
            *bytes = tail;
            head.iter().rev().fold(0, |n, b| n << 7 | u64::from(b & 0x7f))
        }
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = number(&mut bytes);
            let (value, size) = match key & 7 {
                0 => (number(&mut bytes), 0),
                1 => (0, 8),
                2 => (0, number(&mut bytes) as usize),
                5 => (0, 4),
                wire => panic!("wire type {wire}"),
            };
            let (content, rest) = bytes.split_at(size);
            bytes = rest;
            fields.push((key >> 3, value, content.to_owned()));
        }
        fields
    }

    /// Values that TensorBoard would show for a folder: step, tag and value, after the restarts.
    pub(in crate::train::log) fn read_scalars(dir: &Path) -> Vec<(u64, String, f32)> {
        let mut shown: Vec<(u64, String, f32)> = Vec::new();
        for name in names(dir).unwrap() {
            let bytes = fs::read(dir.join(name)).unwrap();
            let events = records(&bytes);
            assert_eq!(fields(events[0])[1], (3, 0, b"brain.Event:2".to_vec()));
            for event in &events[1..] {
                let event = fields(event);
                let [(1, _, _), (2, step, _), (kind, _, content)] = &event[..] else {
                    panic!("{event:?}")
                };
                if *kind == 7 {
                    assert_eq!(fields(content), [(1, 1, vec![])]);
                    shown.retain(|(shown, ..)| shown < step);
                    continue;
                }
                assert_eq!(*kind, 5);
                for (_, _, value) in fields(content) {
                    let [(1, _, tag), (2, _, value)] = &fields(&value)[..] else { panic!() };
                    let value = f32::from_le_bytes(value[..].try_into().unwrap());
                    shown.push((*step, String::from_utf8(tag.clone()).unwrap(), value));
                }
            }
        }
        shown
    }

    #[test]
    fn a_new_file_is_read_last() {
        let check = |names: &[&str], now: u64, expected: &str| {
            let names: Vec<String> = names.iter().map(|name| format!("{PREFIX}{name}")).collect();
            let next = next_name(&names, now);
            assert_eq!(next, format!("{PREFIX}{expected}"));
            assert!(names.iter().all(|name| *name < next), "{names:?} {next}");
        };
        check(&[], 1_700_000_000, "1700000000.regard");
        check(&["1700000000.regard"], 1_700_000_009, "1700000009.regard");
        check(&["1700000000.regard"], 1_700_000_000, "1700000001.regard");
        check(&["1700000000.host.77.0", "1700000005.regard"], 1_600_000_000, "1700000006.regard");
        check(&[], 0, "0000000000.regard");
    }

    #[test]
    fn records_are_those_of_tensorboard() {
        // By its Python package: RecordWriter(file).write(b"regard"), .write(b"").
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(hex(&record(b"regard")), "06000000000000007369d53772656761726480c16e4e");
        assert_eq!(hex(&record(b"")), "000000000000000029039807d8ea82a2");
    }
}
