//! Reading tar archives: as GNU tar, POSIX and the tools of images write them.

use std::io::{self, Error, ErrorKind, Read};
use std::path::PathBuf;

const BLOCK: usize = 512;
/// No name, link or list of attributes is longer.
const LONGEST: u64 = 1 << 20;

/// One entry's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub path: PathBuf,
    pub kind: Kind,
    pub mode: u32,
    pub user: u32,
    pub group: u32,
    pub size: u64,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    Link(PathBuf),
    /// Another name of an entry.
    Same(PathBuf),
    /// A device or the like.
    Other,
}

/// An archive that is read from its start.
pub struct Archive<R> {
    from: R,
    left: u64,
    padding: u64,
}

#[derive(Default)]
struct Longer {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    user: Option<u32>,
    group: Option<u32>,
}

impl<R: Read> Archive<R> {
    pub fn new(from: R) -> Self {
        Self { from, left: 0, padding: 0 }
    }

    /// The next entry; what was not read of the one before is passed over.
    pub fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut longer = Longer::default();
        loop {
            self.pass_over()?;
            let Some(head) = self.head()? else { return Ok(None) };
            let size = longer
                .size
                .filter(|_| !b"xgLK".contains(&head[156]))
                .map_or_else(|| number(&head[124..136]), Ok)?;
            (self.left, self.padding) = (size, (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64);
            match head[156] {
                b'x' => longer.attributes(&self.text(size)?),
                b'L' => longer.path = Some(cut(&self.text(size)?).to_vec()),
                b'K' => longer.link = Some(cut(&self.text(size)?).to_vec()),
                b'g' => {}
                kind => return entry(&head, kind, size, longer).map(Some),
            }
        }
    }

    fn pass_over(&mut self) -> io::Result<()> {
        let rest = self.left + self.padding;
        let passed = io::copy(&mut (&mut self.from).take(rest), &mut io::sink())?;
        (self.left, self.padding) = (0, 0);
        if passed == rest { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    fn head(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let mut head = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.from.read(&mut head[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if head.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum = |from: usize, to: usize| head[from..to].iter().map(|byte| u64::from(*byte)).sum::<u64>();
        if sum(0, 148) + 8 * 32 + sum(156, BLOCK) != number(&head[148..156])? {
            return Err(Error::new(ErrorKind::InvalidData, "it is no tar archive, or is damaged"));
        }
        Ok(Some(head))
    }

    fn text(&mut self, size: u64) -> io::Result<Vec<u8>> {
        if size > LONGEST {
            return Err(Error::new(ErrorKind::InvalidData, "a name in the archive is too long"));
        }
        let mut text = Vec::new();
        self.read_to_end(&mut text)?;
        Ok(text)
    }
}

/// What is in the present entry.
impl<R: Read> Read for Archive<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (&mut self.from).take(self.left).read(buffer)?;
        self.left -= count as u64;
        Ok(count)
    }
}

impl Longer {
    /// Attributes are lines, each with its length before it: `30 path=long/name\n`.
    fn attributes(&mut self, mut text: &[u8]) {
        while let Some(space) = text.iter().position(|byte| *byte == b' ') {
            let length: Option<usize> =
                std::str::from_utf8(&text[..space]).ok().and_then(|digits| digits.parse().ok());
            let Some(line) = length.and_then(|length| text.get(space + 1..length)) else { return };
            text = &text[length.unwrap_or(text.len())..];
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let Some(equals) = line.iter().position(|byte| *byte == b'=') else { continue };
            let (key, value) = (&line[..equals], &line[equals + 1..]);
            let digits = std::str::from_utf8(value).ok();
            match key {
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => self.size = digits.and_then(|digits| digits.parse().ok()),
                b"uid" => self.user = digits.and_then(|digits| digits.parse().ok()),
                b"gid" => self.group = digits.and_then(|digits| digits.parse().ok()),
                _ => {}
            }
        }
    }
}

fn entry(head: &[u8; BLOCK], kind: u8, size: u64, longer: Longer) -> io::Result<Entry> {
    let mut path = cut(&head[..100]).to_vec();
    if &head[257..263] == b"ustar\0" && head[345] != 0 {
        path = [cut(&head[345..500]), b"/", &path].concat();
    }
    let link = as_path(longer.link.unwrap_or_else(|| cut(&head[157..257]).to_vec()));
    let kind = match kind {
        b'0' | 0 | b'7' => Kind::File,
        b'5' => Kind::Folder,
        b'2' => Kind::Link(link),
        b'1' => Kind::Same(link),
        _ => Kind::Other,
    };
    let small = |field: &[u8]| number(field).map(|number| u32::try_from(number).unwrap_or(0));
    Ok(Entry {
        path: as_path(longer.path.unwrap_or(path)),
        kind,
        mode: small(&head[100..108])? & 0o7777,
        user: longer.user.map_or_else(|| small(&head[108..116]), Ok)?,
        group: longer.group.map_or_else(|| small(&head[116..124]), Ok)?,
        size,
    })
}

fn as_path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

/// Up to the first zero.
fn cut(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or(field)
}

/// Octal digits, or a large number in bytes.
fn number(field: &[u8]) -> io::Result<u64> {
    if field[0] & 0x80 != 0 {
        let wide = field[1..].iter().try_fold(u64::from(field[0] & 0x7f), |sum, byte| {
            sum.checked_mul(256).map(|sum| sum | u64::from(*byte))
        });
        return wide
            .ok_or_else(|| Error::new(ErrorKind::InvalidData, "a number in the archive is too large"));
    }
    let text = String::from_utf8_lossy(cut(field)).trim().to_owned();
    if text.is_empty() {
        return Ok(0);
    }
    u64::from_str_radix(&text, 8)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "a number in the archive is none"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

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
            let mut archive = Archive::new(&output.stdout[..]);
            let first = archive.next().unwrap().unwrap();
            assert_eq!((first.path.to_str(), &first.kind, first.size), (Some(long.as_str()), &Kind::File, 5));
            let mut text = String::new();
            archive.read_to_string(&mut text).unwrap();
            assert_eq!(text, "hello");
            assert_eq!(archive.next().unwrap().unwrap().kind, Kind::Link("x".repeat(150).into()));
            assert_eq!(archive.next().unwrap().unwrap().kind, Kind::Same(long.clone().into()));
            assert!(archive.next().unwrap().is_none());
        }
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        assert!(Archive::new(&[7; 512][..]).next().is_err());
        assert!(Archive::new(&[7; 100][..]).next().is_err());
        assert!(Archive::new(&[][..]).next().unwrap().is_none());
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
            let mut archive = Archive::new(&bytes[..]);
            while let Ok(Some(_)) = archive.next() {}
        }
    }
}
