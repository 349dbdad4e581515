//! Small ELF files with symbols, for traces of addresses.

/// A function: its name, its address and its size.
pub type Function<'a> = (&'a str, u64, u64);

const HEADER: usize = 64;
const SECTION: usize = 64;

/// An ELF file of 64 bits with a section of code at `address` and these functions in its symbol
/// table.
pub fn program(address: u64, size: u64, functions: &[Function<'_>]) -> Vec<u8> {
    let mut names = vec![0u8];
    // The first symbol of a table is none.
    let mut symbols = vec![0u8; 24];
    for &(name, start, length) in functions {
        symbols.extend((names.len() as u32).to_le_bytes());
        // Global, a function; in the first section.
        symbols.extend([0x12, 0, 1, 0]);
        symbols.extend(start.to_le_bytes());
        symbols.extend(length.to_le_bytes());
        names.extend(name.as_bytes());
        names.push(0);
    }
    let section_names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0";
    let code = vec![0u8; size as usize];
    let contents: [&[u8]; 4] = [&code, &symbols, &names, section_names];
    let mut offsets = Vec::new();
    let mut file = vec![0u8; HEADER];
    for content in contents {
        offsets.push(file.len() as u64);
        file.extend(content);
    }
    let table = file.len() as u64;
    file.extend([0u8; SECTION]);
    // Name, kind, flags, address, the section it belongs to, how many local symbols, entry size.
    let kinds: [(u32, u32, u64, u64, u32, u32, u64); 4] =
        [(1, 1, 6, address, 0, 0, 0), (7, 2, 0, 0, 3, 1, 24), (15, 3, 0, 0, 0, 0, 0), (23, 3, 0, 0, 0, 0, 0)];
    for ((name, kind, flags, address, link, info, entry), (offset, content)) in
        kinds.into_iter().zip(offsets.into_iter().zip(contents))
    {
        file.extend(name.to_le_bytes());
        file.extend(kind.to_le_bytes());
        for number in [flags, address, offset, content.len() as u64] {
            file.extend(number.to_le_bytes());
        }
        file.extend(link.to_le_bytes());
        file.extend(info.to_le_bytes());
        file.extend(1u64.to_le_bytes());
        file.extend(entry.to_le_bytes());
    }
    let head: Vec<u8> = [
        &b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..],
        &2u16.to_le_bytes(),
        &62u16.to_le_bytes(),
        &1u32.to_le_bytes(),
        &address.to_le_bytes(),
        &0u64.to_le_bytes(),
        &table.to_le_bytes(),
        &0u32.to_le_bytes(),
        &(HEADER as u16).to_le_bytes(),
        &0u16.to_le_bytes(),
        &0u16.to_le_bytes(),
        &(SECTION as u16).to_le_bytes(),
        &5u16.to_le_bytes(),
        &4u16.to_le_bytes(),
    ]
    .concat();
    file[..HEADER].copy_from_slice(&head);
    file
}
