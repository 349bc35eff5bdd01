//! Packaged charts: `NAME-VERSION.tgz`.

use crate::Error;
use crate::file::File;
use flate2::{Compression, GzBuilder, read::GzDecoder};
use std::io::Read;

/// Helm's own bounds on what comes out of an archive.
const MOST: u64 = 100 << 20;
const MOST_OF_A_FILE: u64 = 5 << 20;
const MOST_FILES: usize = 20_000;

/// The files of a packaged chart.
///
/// # Errors
/// If it is no archive, leads out of itself, or holds too much.
pub(crate) fn unpack(bytes: &[u8]) -> Result<Vec<File>, Error> {
    let mut archive = tar::Archive::new(GzDecoder::new(bytes).take(MOST + 1));
    let mut files = Vec::new();
    let mut total = 0;
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            // Folders say nothing, and Helm does not follow links.
            continue;
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).replace('\\', "/");
        let Some((_, name)) = path.split_once('/') else {
            return Err(Error::new(format!(
                "chart illegally contains content outside the base directory: {path}"
            )));
        };
        let name = name.trim_start_matches("./").to_owned();
        if name.is_empty() || name.starts_with('/') || name.split('/').any(|part| part == "..") {
            return Err(Error::new("chart illegally references parent directory"));
        }
        let mut data = Vec::new();
        entry.by_ref().take(MOST_OF_A_FILE + 1).read_to_end(&mut data)?;
        let size = u64::try_from(data.len()).unwrap_or(u64::MAX);
        total += size;
        if size > MOST_OF_A_FILE {
            return Err(Error::new(format!(
                "decompressed chart file {name:?} is larger than the maximum file size {MOST_OF_A_FILE}"
            )));
        }
        if total > MOST {
            return Err(Error::new(format!("decompressed chart is larger than the maximum size {MOST}")));
        }
        if files.len() >= MOST_FILES {
            return Err(Error::new(format!("the chart has more than {MOST_FILES} files")));
        }
        files.push(File { name, data: without_mark(data) });
    }
    if files.is_empty() {
        return Err(Error::new("no files in chart archive"));
    }
    Ok(files)
}

/// The byte order mark that some editors write is not part of a file.
pub(crate) fn without_mark(data: Vec<u8>) -> Vec<u8> {
    match data.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => rest.to_vec(),
        None => data,
    }
}

/// Packs the files of a chart below a folder of its name. The same files give the same bytes.
///
/// # Errors
/// If a name is too long for an archive.
pub(crate) fn pack(chart: &str, files: &[File]) -> Result<Vec<u8>, Error> {
    let mut archive =
        tar::Builder::new(GzBuilder::new().comment("Helm").write(Vec::new(), Compression::default()));
    let mut files: Vec<&File> = files.iter().collect();
    // Chart.yaml comes first, so that readers need not look far.
    files.sort_by_key(|file| (file.name != "Chart.yaml", file.name.clone()));
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(file.data.len()).unwrap_or(0));
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, format!("{chart}/{}", file.name), file.data.as_slice())?;
    }
    Ok(archive.into_inner()?.finish()?)
}
