//! CRC-32C, sixteen bytes at a time: finds every torn, lost or rotten part of what was written.

const POLYNOMIAL: u32 = 0x82F6_3B78;

static TABLES: [[u32; 256]; 16] = tables();

const fn tables() -> [[u32; 256]; 16] {
    let mut tables = [[0; 256]; 16];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ POLYNOMIAL } else { value >> 1 };
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut table = 1;
    while table < 16 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xFF) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// The checksum of `bytes` after those that gave `before`; of nothing it is 0.
pub(super) fn checksum(before: u32, bytes: &[u8]) -> u32 {
    let mut crc = !before;
    let (chunks, rest) = bytes.as_chunks::<16>();
    for chunk in chunks {
        let mut word = *chunk;
        for (byte, before) in word.iter_mut().zip(crc.to_le_bytes()) {
            *byte ^= before;
        }
        let mut next = 0;
        for (table, byte) in TABLES.iter().rev().zip(word) {
            next ^= table[usize::from(byte)];
        }
        crc = next;
    }
    for byte in rest {
        crc = (crc >> 8) ^ TABLES[0][((crc ^ u32::from(*byte)) & 0xFF) as usize];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn it_is_the_checksum_that_others_call_crc32c() {
        assert_eq!(checksum(0, b"123456789"), 0xE306_9283);
        assert_eq!(checksum(0, &[0; 32]), 0x8A91_36AA);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(checksum(0, &ascending), 0x46DD_794E);
    }

    #[test]
    fn it_can_be_taken_in_parts() {
        let bytes: Vec<u8> = (0..200_u8).collect();
        for cut in 0..bytes.len() {
            assert_eq!(checksum(checksum(0, &bytes[..cut]), &bytes[cut..]), checksum(0, &bytes));
        }
    }
}
