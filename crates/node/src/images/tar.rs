//! Reads tar archives of images: the `tar` crate parses them, and this bounds what a hostile one can make it do.

use std::cell::Cell;
use std::io::{self, Error, ErrorKind, Read};
use std::path::PathBuf;
use std::rc::Rc;
use tar::EntryType;

/// The most that the headers of one entry may take, with its long names and PAX records: the `tar` crate holds them in memory.
const MAX_HEADERS: u64 = 1 << 20;

/// The header of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub path: PathBuf,
    pub kind: Kind,
    pub mode: u32,
    pub user: u32,
    pub group: u32,
    pub size: u64,
}

/// The type of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Symlink(PathBuf),
    HardLink(PathBuf),
    /// A device or the like.
    Other,
}

/// Calls `visit` for every entry of an archive, with its contents.
///
/// # Errors
/// The archive is damaged, or `visit` fails.
pub fn for_each_entry(
    archive: impl Read,
    mut visit: impl FnMut(&Entry, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let limit = Rc::new(Cell::new(MAX_HEADERS));
    let mut archive = tar::Archive::new(Limited { from: archive, position: 0, limit: limit.clone() });
    for entry in archive.entries()? {
        let mut entry = entry?;
        let sparse = entry.header().entry_type().is_gnu_sparse();
        let stored = if sparse { entry.header().entry_size()? } else { entry.size() };
        // Up to its end, and then the headers of the next.
        limit.set(entry.raw_file_position().saturating_add(stored).saturating_add(MAX_HEADERS));
        visit(&header(&entry)?, &mut entry)?;
    }
    Ok(())
}

fn header<R: Read>(entry: &tar::Entry<'_, R>) -> io::Result<Entry> {
    let header = entry.header();
    let link =
        || -> io::Result<PathBuf> { Ok(entry.link_name_bytes().map(|name| path(&name)).unwrap_or_default()) };
    let kind = match header.entry_type() {
        EntryType::Regular | EntryType::Continuous => Kind::File,
        EntryType::Directory => Kind::Directory,
        EntryType::Symlink => Kind::Symlink(link()?),
        EntryType::Link => Kind::HardLink(link()?),
        _ => Kind::Other,
    };
    let fields = header.as_old();
    Ok(Entry {
        path: path(&entry.path_bytes()),
        kind,
        mode: if is_blank(&fields.mode) { 0 } else { header.mode()? & 0o7777 },
        user: if is_blank(&fields.uid) { 0 } else { u32::try_from(header.uid()?).unwrap_or(0) },
        group: if is_blank(&fields.gid) { 0 } else { u32::try_from(header.gid()?).unwrap_or(0) },
        size: entry.size(),
    })
}

/// Some tools leave fields blank that they do not need.
fn is_blank(field: &[u8]) -> bool {
    field.iter().all(|byte| matches!(byte, 0 | b' '))
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

/// A reader that fails beyond a limit, which moves with the entries.
struct Limited<R> {
    from: R,
    position: u64,
    limit: Rc<Cell<u64>>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.limit.get().saturating_sub(self.position);
        if left == 0 {
            return Err(Error::new(ErrorKind::InvalidData, "the headers of an entry are too long"));
        }
        let count = (&mut self.from).take(left).read(buffer)?;
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn entries(archive: &[u8]) -> io::Result<Vec<(Entry, Vec<u8>)>> {
        let mut all = Vec::new();
        for_each_entry(archive, |entry, contents| {
            let mut bytes = Vec::new();
            contents.read_to_end(&mut bytes)?;
            all.push((entry.clone(), bytes));
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn what_tar_wrote_is_read_in_each_of_its_formats() {
        let folder = tempfile::tempdir().unwrap();
        let long = format!("{}/{}", "d".repeat(120), "f".repeat(90));
        std::fs::create_dir_all(folder.path().join("d".repeat(120))).unwrap();
        std::fs::write(folder.path().join(&long), "hello").unwrap();
        std::os::unix::fs::symlink("x".repeat(150), folder.path().join("link")).unwrap();
        std::fs::hard_link(folder.path().join(&long), folder.path().join("same")).unwrap();
        for format in ["gnu", "pax", "posix"] {
            let output = Command::new("tar")
                .args(["--format", format, "-c"])
                .arg(&long)
                .args(["link", "same"])
                .current_dir(folder.path())
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            let all = entries(&output.stdout).unwrap();
            let (first, text) = &all[0];
            assert_eq!((first.path.to_str(), &first.kind, first.size), (Some(long.as_str()), &Kind::File, 5));
            assert_eq!(text, b"hello");
            assert_eq!(all[1].0.kind, Kind::Symlink("x".repeat(150).into()));
            assert_eq!(all[2].0.kind, Kind::HardLink(long.clone().into()));
            assert_eq!(all.len(), 3);
        }
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        assert!(entries(&[7; 512]).is_err());
        assert!(entries(&[7; 100]).is_err());
        assert_eq!(entries(&[]).unwrap(), []);
    }

    #[test]
    fn an_endless_name_is_refused_and_not_held_in_memory() {
        for kind in [b'L', b'K', b'x'] {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(EntryType::new(kind));
            header.set_size(1 << 40);
            header.set_cksum();
            let endless = header.as_bytes().chain(io::repeat(b'a'));
            let error = for_each_entry(endless, |_, _| Ok(())).unwrap_err();
            assert!(error.to_string().contains("too long"), "{error}");
        }
    }

    #[test]
    fn large_contents_are_not_limited() {
        let mut builder = tar::Builder::new(Vec::new());
        for name in ["first", "second"] {
            let mut header = tar::Header::new_ustar();
            header.set_size(3 << 20);
            builder.append_data(&mut header, name, io::repeat(1).take(3 << 20)).unwrap();
        }
        let archive = builder.into_inner().unwrap();
        let mut sizes = Vec::new();
        // The contents of an entry need not be read.
        for_each_entry(&archive[..], |entry, _| {
            sizes.push(entry.size);
            Ok(())
        })
        .unwrap();
        assert_eq!(sizes, [3 << 20, 3 << 20]);
        assert!(entries(&archive).unwrap().iter().all(|(_, bytes)| bytes.len() == 3 << 20));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(0u8..=255, 0..2048)) {
            // With a sum that is right, so that the rest is looked at.
            if bytes.len() >= 512 {
                bytes[148..156].fill(b' ');
                let sum: u64 = bytes[..512].iter().map(|byte| u64::from(*byte)).sum();
                bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            }
            let _ = for_each_entry(&bytes[..], |_, _| Ok(()));
        }
    }
}
