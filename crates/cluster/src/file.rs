//! Reads cluster files: what `kubectl get` writes, as JSON or YAML, compressed or not. Entry: [`read`].
//!
//! ```text
//! bytes ── gzip? ── text ──┬ JSON: documents ── items as raw text ──┬ kind ── typed object
//!                          └ YAML: documents ── items as values   ──┘
//! ```
//!
//! A file is an object, a `List`, or several of them. An object that cannot be understood does not hide the others:
//! all errors are collected. Objects of Kubernetes' own kinds that no decision looks at are set aside by name.
//! [`workloads`] makes the pods of workloads that the files lack.

mod decode;
mod irrelevant;
mod json;
pub mod workloads;
mod yaml;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::objects::Objects;

/// What a cluster file contains.
#[derive(Debug, Default)]
pub struct Contents {
    /// The objects.
    pub objects: Objects,
    /// Objects of Kubernetes' own kinds that do not matter here.
    pub skipped: Skipped,
    /// Objects that could not be understood.
    pub errors: Vec<ObjectError>,
}

impl Contents {
    /// Adds the contents of another file.
    pub fn extend(&mut self, other: Self) {
        self.objects.extend(other.objects);
        for (kind, names) in other.skipped.0 {
            self.skipped.0.entry(kind).or_default().extend(names);
        }
        self.errors.extend(other.errors);
    }
}

/// Objects that do not matter, by kind: `2 ConfigMaps (default/a, default/b), 1 Secret (default/s)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped(BTreeMap<Box<str>, Vec<Box<str>>>);

impl Skipped {
    /// How many names are shown of each kind.
    const SHOWN: usize = 3;

    /// Whether nothing was skipped.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, kind: &str, name: String) {
        self.0.entry(kind.into()).or_default().push(name.into());
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (kind, names)) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            let plural = if names.len() == 1 { "" } else { "s" };
            let shown = names.iter().take(Self::SHOWN).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
            write!(f, "{separator}{} {kind}{plural} ({shown}", names.len())?;
            match names.len().saturating_sub(Self::SHOWN) {
                0 => f.write_str(")")?,
                more => write!(f, " and {more} more)")?,
            }
        }
        Ok(())
    }
}

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system does not give it.
    #[error("reading {file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// It is not text.
    #[error(
        "{file}: not UTF-8 text from byte {position}; expected JSON or YAML, possibly compressed with gzip"
    )]
    NotText {
        /// The file.
        file: String,
        /// Where the text ends.
        position: usize,
    },
    /// It is a directory without cluster files.
    #[error("{directory}: this directory has no file whose name ends with {}", ENDINGS.join(", "))]
    NoFiles {
        /// The directory.
        directory: String,
    },
}

/// How the names of cluster files in a directory end.
const ENDINGS: [&str; 6] = [".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz"];

/// Why an object of a file could not be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectError {
    /// The file.
    pub file: String,
    /// Which document of the file it is in, from one.
    pub document: usize,
    /// Which item of the document's list it is, from one.
    pub item: Option<usize>,
    /// Kind, namespace and name, as far as they are known.
    pub object: Option<String>,
    /// The field that is wrong.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, document, item, object, field, message } = self;
        write!(f, "{file}, document {document}")?;
        if let Some(item) = item {
            write!(f, ", item {item}")?;
        }
        if let Some(object) = object {
            write!(f, " ({object})")?;
        }
        if let Some(field) = field {
            write!(f, ": {field}")?;
        }
        write!(f, ": {message}")
    }
}

impl std::error::Error for ObjectError {}

/// The files that a path means: all cluster files of a directory in the order of their names, else the file itself.
pub fn paths(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let directory = || path.display().to_string();
    let unreadable = |source| FileError::Unreadable { file: directory(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?.path();
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if ENDINGS.iter().any(|ending| name.ends_with(ending)) && !entry.is_dir() {
            found.push(entry);
        }
    }
    found.sort();
    if found.is_empty() { Err(FileError::NoFiles { directory: directory() }) } else { Ok(found) }
}

/// Reads a cluster file; `-` is standard input.
pub fn read(path: &Path) -> Result<Contents, FileError> {
    let (name, bytes) = bytes(path)?;
    parse(&name, &bytes)
}

/// Reads a cluster file that is in memory.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Contents, FileError> {
    let text = text(name, bytes)?;
    let mut reader = Reader { file: name, contents: Contents::default() };
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'{' | b'[') => json::read(&mut reader, text),
        _ => yaml::read(&mut reader, text),
    }
    Ok(reader.contents)
}

/// The name and the uncompressed content of a file; `-` is standard input.
pub(crate) fn bytes(path: &Path) -> Result<(String, Vec<u8>), FileError> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    let is_stdin = path == Path::new("-");
    let file = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let result = if is_stdin {
        io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(path).map(|content| bytes = content)
    };
    let result = result.and_then(|()| {
        if !bytes.starts_with(&GZIP) {
            return Ok(());
        }
        let mut plain = Vec::new();
        MultiGzDecoder::new(&*bytes).read_to_end(&mut plain)?;
        bytes = plain;
        Ok(())
    });
    result.map_err(|source| FileError::Unreadable { file: file.clone(), source })?;
    Ok((file, bytes))
}

/// The text of a file, without the mark that some editors put at its beginning.
pub(crate) fn text<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, FileError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| FileError::NotText { file: file.to_owned(), position: error.valid_up_to() })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// What has been read of a file so far.
struct Reader<'a> {
    file: &'a str,
    contents: Contents,
}

/// Where an object stands in a file.
#[derive(Clone, Copy)]
struct Place {
    document: usize,
    item: Option<usize>,
}

impl Reader<'_> {
    /// Records that something is wrong.
    fn error(&mut self, place: Place, object: Option<String>, field: Option<String>, message: String) {
        let Place { document, item } = place;
        let file = self.file.to_owned();
        self.contents.errors.push(ObjectError { file, document, item, object, field, message });
    }
}

#[cfg(test)]
mod tests;
