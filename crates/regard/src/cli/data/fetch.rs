//! Download of data sets with curl or wget.
//!
//! They use the certificates of the machine; the client for Hub models has only built-in ones.

use anyhow::{Context, Result, anyhow, bail};
use regard_tasks::data::addresses::{Address, DownloadLayout};
use regard_tasks::data::sets::{self, Checksums, KnownFile, Set, SetState};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use zip::ZipArchive;

/// Downloads the missing files of a set; if its checksums are exact, also files that differ.
pub fn run(set: &Set) -> Result<()> {
    let Some(address) = set.address()? else {
        bail!(
            "--fetch: {} cannot be downloaded automatically\n\nTo get it by hand:\n{}",
            set.name,
            by_hand(set)
        );
    };
    let folder = set.find_in(&sets::roots()).unwrap_or_else(|_| sets::home().join(set.name));
    let mut wanted = vec![];
    for file in &address.files {
        match file.state(&folder.join(file.path))? {
            SetState::Missing => wanted.push(*file),
            SetState::Differs if set.checksums == Checksums::Exact => wanted.push(*file),
            _ => {}
        }
    }
    if wanted.is_empty() {
        say(&format!("{}: nothing is missing in {}", set.name, folder.display()));
        return Ok(());
    }
    let get = || match address.form {
        DownloadLayout::Files => files(set, &address, &folder, &wanted),
        DownloadLayout::Zip => archive(set, &address, &folder, &wanted),
    };
    let got = get();
    if got.is_err() {
        // An empty folder would look like an existing set; `remove_dir` keeps others.
        let _ = fs::remove_dir(&folder);
    }
    got.map_err(|why| anyhow!("--fetch: {why:#}\n\nTo get it by hand:\n{}", by_hand(set)))
}

fn files(set: &Set, address: &Address, folder: &Path, wanted: &[KnownFile]) -> Result<()> {
    for file in wanted {
        let to = Part::beside(&folder.join(file.path))?;
        download(&format!("{}/{}", address.from, file.path), &to.part)?;
        keep(set, file, to)?;
    }
    Ok(())
}

fn archive(set: &Set, address: &Address, folder: &Path, wanted: &[KnownFile]) -> Result<()> {
    let zip = Part::beside(&folder.join("archive.zip"))?;
    download(&address.from, &zip.part)?;
    for file in wanted {
        let to = Part::beside(&folder.join(file.path))?;
        extract(File::open(&zip.part)?, file, &mut File::create(&to.part)?)
            .with_context(|| address.from.clone())?;
        keep(set, file, to)?;
    }
    Ok(())
}

/// Extracts the member of a zip with the name of a file, in any folder.
fn extract(zip: impl Read + Seek, file: &KnownFile, out: &mut impl Write) -> Result<()> {
    let mut zip = ZipArchive::new(zip).context("not a complete zip file")?;
    let mut names = zip.file_names().filter_map(Result::ok).map(|name| name.to_string());
    let same = |name: &String| Path::new(name).file_name() == Path::new(file.path).file_name();
    let name = names.find(same);
    drop(names);
    let name = name.with_context(|| format!("the zip holds no {}", file.path))?;
    // Limits zip bombs: the file may have grown, but not eightfold.
    let most = file.bytes.saturating_mul(8).max(1 << 20);
    let copied = std::io::copy(&mut zip.by_name(&name)?.take(most + 1), out)?;
    if copied > most {
        bail!("{name} is longer than {most} bytes; the known version has {}", file.bytes);
    }
    Ok(())
}

/// Renames a downloaded file to its final name if its checksum is right.
fn keep(set: &Set, file: &KnownFile, to: Part) -> Result<()> {
    let place = to.path.display().to_string();
    match (file.state(&to.part)?, set.checksums) {
        (SetState::Same, _) => say(&format!("{place}: {} bytes, checksum ok", file.bytes)),
        (SetState::Missing, _) => bail!("{place}: the download is empty"),
        (SetState::Differs, Checksums::Informative) => {
            say(&format!("{place}: differs from the known version; this set changes over time"));
        }
        (SetState::Differs, Checksums::Exact) => {
            let got = fs::metadata(&to.part)?.len();
            bail!(
                "{place}: got {got} bytes that are not the known file, need {} with SHA-256 {}",
                file.bytes,
                file.sha256
            );
        }
    }
    // A link or device is not replaced.
    if fs::symlink_metadata(&to.path).is_ok_and(|there| !there.is_file()) {
        bail!("{place}: is not a regular file; remove it, then fetch again");
    }
    fs::rename(&to.part, &to.path).with_context(|| place)
}

/// A file during its download; removed on drop unless it was renamed.
struct Part {
    path: PathBuf,
    part: PathBuf,
}

impl Part {
    fn beside(path: &Path) -> Result<Part> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        Ok(Part { path: path.into(), part })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.part);
    }
}

/// Downloads with curl, or with wget if curl is not installed.
fn download(address: &str, to: &Path) -> Result<()> {
    say(&format!("downloading {address}"));
    let curl: &[&str] =
        &["--fail", "--location", "--silent", "--show-error", "--proto", "=http,https", "--output"];
    let wget: &[&str] = &["--no-verbose", "--output-document"];
    for (program, flags) in [("curl", curl), ("wget", wget)] {
        let mut command = Command::new(program);
        command.args(flags).arg(to).arg(address).stdin(Stdio::null()).stdout(Stdio::null());
        match command.output() {
            Ok(done) if done.status.success() => return Ok(()),
            Ok(done) => {
                let why = String::from_utf8_lossy(&done.stderr);
                bail!("{program} could not get {address}: {}", why.trim());
            }
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error).context(program),
        }
    }
    bail!("cannot download {address}: neither curl nor wget is installed")
}

/// What to download and where to put it, without the line that says that it is missing.
fn by_hand(set: &Set) -> String {
    let whole = set.how_to_get(&[sets::home()]);
    whole.split_once('\n').map_or(whole.clone(), |(_, details)| details.to_string())
}

/// Prints progress to standard error.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "regard: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use zip::write::{SimpleFileOptions, ZipWriter};

    #[test]
    fn a_file_is_found_in_any_folder_of_a_zip() {
        let mut zip = ZipWriter::new(Cursor::new(vec![]));
        for (name, text) in [("a/_about.txt", "about"), ("a/fra.txt", "Go.\tVa !\n")] {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        let zip = zip.finish().unwrap();
        let known = |path| KnownFile { path, bytes: 9, sha256: "" };
        let mut out = vec![];
        extract(zip.clone(), &known("fra.txt"), &mut out).unwrap();
        assert_eq!(out, "Go.\tVa !\n".as_bytes());
        let error = extract(zip, &known("deu.txt"), &mut out).unwrap_err().to_string();
        assert!(error.contains("no deu.txt"), "{error}");
        let error = extract(Cursor::new(b"hello"), &known("fra.txt"), &mut out).unwrap_err();
        assert!(error.to_string().contains("not a complete zip file"), "{error}");
    }
}
