//! A disk in memory that can lose power. What was not synced may then be there, be gone or be torn, each part on its own.
//! It can also be full, fail to sync, and outlive the process that writes to it. Everything follows from a seed.

use super::disk::{Disk, DiskFile};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

/// Numbers that look like chance.
#[derive(Debug, Clone)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

#[derive(Debug, Clone)]
pub(super) struct SimulatedDisk(Arc<(Mutex<Inside>, Condvar)>);

#[derive(Debug)]
struct Inside {
    files: HashMap<u64, Contents>,
    next_file: u64,
    /// The directory as it is seen, as it is durable, and what makes the one of the other.
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    pending_names: Vec<NameEdit>,
    random: Random,
    /// How many bytes the files may have together.
    room: Option<usize>,
    /// How many operations are left before the power goes, or only the process.
    fuse: Option<u64>,
    only_the_process: bool,
    /// One sync in this many fails.
    failing_syncs: Option<u64>,
    /// The power is gone, or the process.
    over: bool,
    /// Syncs of files wait while this is set.
    held: bool,
    waiting: usize,
}

/// A file as it is seen, as it is durable, and what makes the one of the other.
#[derive(Debug, Default, Clone)]
struct Contents {
    seen: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Edit>,
}

#[derive(Debug, Clone)]
enum Edit {
    Write(usize, Vec<u8>),
    Length(usize),
}

#[derive(Debug, Clone)]
enum NameEdit {
    Link(String, u64),
    Unlink(String),
    Rename(String, String, u64),
}

fn write(bytes: &mut Vec<u8>, at: usize, written: &[u8]) {
    if written.is_empty() {
        return;
    }
    let end = at + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[at..end].copy_from_slice(written);
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(at, written) => write(bytes, *at, written),
            Self::Length(length) => bytes.resize(*length, 0),
        }
    }

    /// What a loss of power leaves of it: all, nothing, or for a write any pieces.
    fn apply_in_part(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        match (random.below(4), self) {
            (0, _) => {}
            (1, Self::Write(at, written)) => {
                let first = random.below(written.len() as u64 + 1) as usize;
                let last = first + random.below((written.len() - first) as u64 + 1) as usize;
                write(bytes, at + first, &written[first..last]);
            }
            (2, Self::Write(at, written)) => {
                let size = 1 + random.below(64) as usize;
                for (index, piece) in written.chunks(size).enumerate() {
                    if random.once_in(2) {
                        write(bytes, at + index * size, piece);
                    }
                }
            }
            _ => self.apply(bytes),
        }
    }
}

impl NameEdit {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Link(name, file) => drop(names.insert(name.clone(), *file)),
            Self::Unlink(name) => drop(names.remove(name)),
            Self::Rename(from, to, file) => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
        }
    }
}

fn power_lost() -> io::Error {
    io::Error::other("the power is gone")
}

impl Inside {
    /// Every operation begins here. `Err` if there is no power, or if this is the operation in which it goes.
    fn operate(&mut self) -> io::Result<()> {
        if self.over {
            return Err(power_lost());
        }
        if let Some(fuse) = &mut self.fuse {
            if *fuse == 0 {
                self.over = true;
                return Err(power_lost());
            }
            *fuse -= 1;
        }
        Ok(())
    }

    fn sync_fails(&mut self) -> bool {
        self.failing_syncs.is_some_and(|times| self.random.once_in(times))
    }

    fn find(&self, name: &str) -> io::Result<u64> {
        self.names.get(name).copied().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn used(&self) -> usize {
        self.names.values().filter_map(|file| self.files.get(file)).map(|file| file.seen.len()).sum()
    }

    fn edit(&mut self, file: u64, edit: Edit) {
        let contents = self.files.entry(file).or_default();
        edit.apply(&mut contents.seen);
        contents.pending.push(edit);
    }
}

impl SimulatedDisk {
    pub(super) fn new(seed: u64) -> Self {
        Self::with(BTreeMap::new(), HashMap::new(), 0, Random(seed))
    }

    fn with(
        names: BTreeMap<String, u64>,
        files: HashMap<u64, Contents>,
        next_file: u64,
        random: Random,
    ) -> Self {
        let inside = Inside {
            files,
            next_file,
            durable_names: names.clone(),
            names,
            pending_names: vec![],
            random,
            room: None,
            fuse: None,
            only_the_process: false,
            failing_syncs: None,
            over: false,
            held: false,
            waiting: 0,
        };
        Self(Arc::new((Mutex::new(inside), Condvar::new())))
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Inside> {
        self.0.0.lock()
    }

    /// The power is lost, or only the process, during the operation after this many.
    pub(super) fn end_after(&self, operations: Option<u64>, only_the_process: bool) {
        let mut inside = self.lock();
        (inside.fuse, inside.only_the_process) = (operations, only_the_process);
    }

    /// From now on one sync in this many fails.
    pub(super) fn fail_syncs(&self, once_in: Option<u64>) {
        self.lock().failing_syncs = once_in;
    }

    /// The number of bytes that there is still room for.
    pub(super) fn leave_room(&self, bytes: Option<usize>) {
        let mut inside = self.lock();
        inside.room = bytes.map(|bytes| inside.used() + bytes);
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().over
    }

    /// What the next process finds when only the process ended: everything that was written, synced or not.
    pub(super) fn after_process(&self) -> Option<Self> {
        let mut inside = self.lock();
        if inside.over && !inside.only_the_process {
            return None;
        }
        (inside.over, inside.fuse, inside.room, inside.failing_syncs) = (false, None, None, None);
        Some(self.clone())
    }

    /// What is found when the power is back.
    pub(super) fn after_power_loss(&self) -> Self {
        let mut inside = self.lock();
        inside.over = true;
        let mut random = inside.random.clone();
        let mut names = inside.durable_names.clone();
        for edit in &inside.pending_names {
            if random.once_in(2) {
                edit.apply(&mut names);
            }
        }
        let mut files = HashMap::new();
        // In a fixed order: everything follows from the seed.
        let mut all: Vec<_> = inside.files.iter().collect();
        all.sort_by_key(|(file, _)| **file);
        for (file, contents) in all {
            let mut durable = contents.durable.clone();
            contents.pending.iter().for_each(|edit| edit.apply_in_part(&mut durable, &mut random));
            files.insert(*file, Contents { seen: durable.clone(), durable, pending: vec![] });
        }
        Self::with(names, files, inside.next_file, random)
    }

    /// Changes a file behind everyone's back.
    pub(super) fn tamper(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut inside = self.lock();
        let file = match inside.names.get(name) {
            Some(file) => *file,
            None => {
                inside.next_file += 1;
                let file = inside.next_file;
                inside.names.insert(name.to_owned(), file);
                inside.durable_names.insert(name.to_owned(), file);
                file
            }
        };
        let contents = inside.files.entry(file).or_default();
        change(&mut contents.seen);
        contents.durable = contents.seen.clone();
    }

    /// Holds back all syncs of files, or lets them go on.
    pub(super) fn hold_syncs(&self, held: bool) {
        self.lock().held = held;
        self.0.1.notify_all();
    }

    /// How many syncs are held back.
    pub(super) fn waiting_syncs(&self) -> usize {
        self.lock().waiting
    }
}

impl Disk for SimulatedDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut inside = self.lock();
        inside.operate()?;
        Ok(inside.names.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        let mut inside = self.lock();
        inside.operate()?;
        let file = inside.find(name)?;
        Ok(Box::new(Cursor::new(inside.files[&file].seen.clone())))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut inside = self.lock();
        if inside.over {
            return Err(power_lost());
        }
        let powered = inside.operate();
        if let Ok(file) = inside.find(name) {
            inside.edit(file, Edit::Length(0));
            powered?;
            return Ok(Box::new(SimulatedFile { disk: self.clone(), file }));
        }
        inside.next_file += 1;
        let file = inside.next_file;
        inside.files.insert(file, Contents::default());
        inside.names.insert(name.to_owned(), file);
        inside.pending_names.push(NameEdit::Link(name.to_owned(), file));
        powered?;
        Ok(Box::new(SimulatedFile { disk: self.clone(), file }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut inside = self.lock();
        inside.operate()?;
        let file = inside.find(name)?;
        Ok(Box::new(SimulatedFile { disk: self.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inside = self.lock();
        if inside.over {
            return Err(power_lost());
        }
        let powered = inside.operate();
        let edit = NameEdit::Rename(from.to_owned(), to.to_owned(), inside.find(from)?);
        edit.apply(&mut inside.names);
        inside.pending_names.push(edit);
        powered
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inside = self.lock();
        if inside.over {
            return Err(power_lost());
        }
        let powered = inside.operate();
        inside.find(name)?;
        inside.names.remove(name);
        inside.pending_names.push(NameEdit::Unlink(name.to_owned()));
        powered
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut inside = self.lock();
        inside.operate()?;
        if inside.sync_fails() {
            return Err(io::Error::other("the directory could not be synced"));
        }
        inside.durable_names = inside.names.clone();
        inside.pending_names.clear();
        Ok(())
    }

    fn place(&self, name: &str) -> PathBuf {
        PathBuf::from("/simulated").join(name)
    }
}

#[derive(Debug)]
struct SimulatedFile {
    disk: SimulatedDisk,
    file: u64,
}

impl DiskFile for SimulatedFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut inside = self.disk.lock();
        if inside.over {
            return Err(power_lost());
        }
        let at = offset as usize;
        let room = inside.room.map_or(usize::MAX, |room| room.saturating_sub(inside.used()));
        let inside_file = inside.files[&self.file].seen.len().saturating_sub(at);
        let fits = bytes.len().min(inside_file.saturating_add(room));
        // The write in which the power goes may leave anything.
        inside.edit(self.file, Edit::Write(at, bytes[..fits].to_vec()));
        inside.operate()?;
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        let mut inside = self.disk.lock();
        if inside.over {
            return Err(power_lost());
        }
        inside.edit(self.file, Edit::Length(len as usize));
        inside.operate()
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inside = self.disk.lock();
        inside.waiting += 1;
        self.disk.0.1.wait_while(&mut inside, |inside| inside.held);
        inside.waiting -= 1;
        inside.operate()?;
        let fails = inside.sync_fails();
        let Inside { files, random, .. } = &mut *inside;
        let contents = files.entry(self.file).or_default();
        for edit in std::mem::take(&mut contents.pending) {
            // After a failed sync the rest counts as written, though it is not: no later sync will bring it.
            if fails {
                edit.apply_in_part(&mut contents.durable, random)
            } else {
                edit.apply(&mut contents.durable)
            }
        }
        if fails { Err(io::Error::other("the file could not be synced")) } else { Ok(()) }
    }
}
