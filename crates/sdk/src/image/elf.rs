//! What a program's own header says: for which machine it is, and whether it needs others' files.

use super::ImageError;

/// The machine that a program is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Machine {
    /// As images name it.
    pub(super) architecture: &'static str,
}

/// The segment that names the program which links the others in.
const INTERPRETER: u32 = 3;
/// Longer than any path, and no program has more segments.
const LONGEST: usize = 4096;

/// Reads the header of a 64-bit, little-endian program.
pub(super) fn read(program: &[u8]) -> Result<Machine, ImageError> {
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return Err(ImageError::NoProgram);
    }
    let number = |at: usize, bytes: usize| -> Result<usize, ImageError> {
        let found =
            at.checked_add(bytes).and_then(|end| program.get(at..end)).ok_or(ImageError::NoProgram)?;
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(found);
        usize::try_from(u64::from_le_bytes(wide)).map_err(|_| ImageError::NoProgram)
    };
    let architecture = match number(18, 2)? {
        0x3e => "amd64",
        0xb7 => "arm64",
        0xf3 => "riscv64",
        other => return Err(ImageError::UnknownMachine(u16::try_from(other).unwrap_or_default())),
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for segment in 0..count.min(LONGEST) {
        let at = table.checked_add(segment * size).ok_or(ImageError::NoProgram)?;
        if number(at, 4)? != INTERPRETER as usize {
            continue;
        }
        let (from, length) = (number(at + 8, 8)?, number(at + 32, 8)?.min(LONGEST));
        let name =
            from.checked_add(length).and_then(|end| program.get(from..end)).ok_or(ImageError::NoProgram)?;
        let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
        return Err(ImageError::NeedsLibraries(name));
    }
    Ok(Machine { architecture })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The header of a program for a machine, with or without an interpreter.
    pub(in super::super) fn program(machine: u16, interpreter: Option<&str>) -> Vec<u8> {
        let mut program = vec![0; 64 + 56];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[18..20].copy_from_slice(&machine.to_le_bytes());
        program[32] = 64;
        program[54] = 56;
        program[56] = 1;
        if let Some(interpreter) = interpreter {
            program[64] = 3;
            program[72] = 120;
            program[96] = u8::try_from(interpreter.len()).unwrap();
            program.extend(interpreter.bytes());
        }
        program
    }

    #[test]
    fn a_header_that_is_cut_short_is_none() {
        let whole = program(0xb7, Some("/lib/ld.so"));
        assert_eq!(read(&program(0xb7, None)), Ok(Machine { architecture: "arm64" }));
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} bytes");
        }
        let mut far = program(0xb7, None);
        far[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(read(&far), Err(ImageError::NoProgram));
    }
}
