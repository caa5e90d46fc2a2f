//! One row for each kind of invalid input.

use std::io::Write;

use flate2::write::DeflateEncoder;

use super::*;
use crate::npy::tests::npy;

/// A member to be written; every field can be set to a wrong value.
struct Part {
    name: Vec<u8>,
    flags: u16,
    method: u16,
    data: Vec<u8>,
    crc: u32,
    packed: u32,
    unpacked: u32,
    /// Sizes in the local header, where they differ.
    local_sizes: Option<[u32; 3]>,
    local_extra: Vec<u8>,
    local_name: Option<Vec<u8>>,
    after: Vec<u8>,
}

fn crc_of(raw: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(raw);
    crc.sum()
}

impl Part {
    fn stored(name: &str, raw: &[u8]) -> Self {
        Part {
            name: name.into(),
            flags: 0,
            method: 0,
            data: raw.to_vec(),
            crc: crc_of(raw),
            packed: raw.len() as u32,
            unpacked: raw.len() as u32,
            local_sizes: None,
            local_extra: vec![],
            local_name: None,
            after: vec![],
        }
    }

    fn deflated(name: &str, raw: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(vec![], flate2::Compression::default());
        encoder.write_all(raw).expect("memory takes bytes");
        let data = encoder.finish().expect("memory takes bytes");
        Part { method: 8, packed: data.len() as u32, data, ..Part::stored(name, raw) }
    }
}

struct Archive {
    parts: Vec<Part>,
    before: Vec<u8>,
    between: Vec<u8>,
    count: Option<u16>,
    offset_shift: u32,
    after_entries: Vec<u8>,
    comment: Vec<u8>,
}

impl Archive {
    fn of(parts: Vec<Part>) -> Self {
        Archive {
            parts,
            before: vec![],
            between: vec![],
            count: None,
            offset_shift: 0,
            after_entries: vec![],
            comment: vec![],
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = self.before.clone();
        let mut directory = vec![];
        for part in &self.parts {
            let offset = out.len() as u32 + self.offset_shift;
            let name = part.local_name.as_ref().unwrap_or(&part.name);
            let [crc, packed, unpacked] = part.local_sizes.unwrap_or([part.crc, part.packed, part.unpacked]);
            out.extend(LOCAL.to_le_bytes());
            for n in [20, part.flags, part.method, 0, 0] {
                out.extend(n.to_le_bytes());
            }
            for n in [crc, packed, unpacked] {
                out.extend(n.to_le_bytes());
            }
            for n in [name.len() as u16, part.local_extra.len() as u16] {
                out.extend(n.to_le_bytes());
            }
            out.extend(name);
            out.extend(&part.local_extra);
            out.extend(&part.data);
            out.extend(&part.after);

            directory.extend(CENTRAL.to_le_bytes());
            for n in [20, 20, part.flags, part.method, 0, 0] {
                directory.extend(n.to_le_bytes());
            }
            for n in [part.crc, part.packed, part.unpacked] {
                directory.extend(n.to_le_bytes());
            }
            for n in [part.name.len() as u16, 0, 0, 0, 0, 0, 0] {
                directory.extend(n.to_le_bytes());
            }
            directory.extend(offset.to_le_bytes());
            directory.extend(&part.name);
        }
        directory.extend(&self.after_entries);
        out.extend(&self.between);
        let start = out.len() as u32;
        out.extend(&directory);
        let count = self.count.unwrap_or(self.parts.len() as u16);
        out.extend(END.to_le_bytes());
        for n in [0, 0, count, count] {
            out.extend(n.to_le_bytes());
        }
        out.extend((directory.len() as u32).to_le_bytes());
        out.extend(start.to_le_bytes());
        out.extend((self.comment.len() as u16).to_le_bytes());
        out.extend(&self.comment);
        out
    }
}

/// A valid archive of these members, for tests of other modules.
pub(crate) fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    Archive::of(members.iter().map(|(name, raw)| Part::stored(name, raw)).collect()).bytes()
}

fn two() -> [u8; 8] {
    [0, 0, 128, 63, 0, 0, 0, 192]
}

fn array() -> Vec<u8> {
    npy("<f4", "(2,)", &two())
}

#[track_caller]
fn check(archive: &Archive, names: &[&str]) {
    let members = parse(&archive.bytes()).expect("a good archive");
    assert_eq!(members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), names);
    for member in members {
        assert_eq!(member.array, Tensor::from(vec![1.0_f32, -2.0]));
    }
}

#[track_caller]
fn check_err(bytes: &[u8], expect: &str) {
    let error = parse(bytes).expect_err("must be refused");
    assert!(format!("{error:?}").starts_with(expect), "{error:?}");
    let said = error.to_string();
    assert!(said.contains([';', '?']) && said.lines().count() == 1, "no remedy, or several lines: {said}");
}

#[test]
fn reads_what_numpy_writes() {
    check(&Archive::of(vec![]), &[]);
    check(&Archive::of(vec![Part::stored("params.npy", &array())]), &["params"]);
    // savez reserves an extra field for large sizes in every local header.
    let reserved = |part| Part {
        local_sizes: Some([crc_of(&array()), u32::MAX, u32::MAX]),
        local_extra: vec![1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ..part
    };
    check(
        &Archive::of(vec![
            reserved(Part::stored("b.npy", &array())),
            reserved(Part::deflated("a.npy", &array())),
        ]),
        &["b", "a"],
    );
    // Written to a pipe: the sizes follow the data.
    let piped = |part| Part { flags: 8, local_sizes: Some([0; 3]), after: vec![0; 16], ..part };
    check(
        &Archive::of(vec![piped(Part::stored("a.npy", &array())), piped(Part::deflated("b.npy", &array()))]),
        &["a", "b"],
    );
    let comment = Archive { comment: b"PK\x05\x06 hello".to_vec(), ..Archive::of(vec![]) };
    check(&comment, &[]);
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let good = Archive::of(vec![Part::stored("a.npy", &array()), Part::deflated("b.npy", &array())]).bytes();
    for cut in 0..good.len() {
        check_err(&good[..cut], if cut < 2 { "NotZip" } else { "Truncated" });
    }
}

#[test]
fn an_over_long_file_is_refused() {
    let good = Archive::of(vec![Part::stored("a.npy", &array())]);
    for extra in [1, 2, 22, 1000] {
        let mut long = good.bytes();
        long.resize(long.len() + extra, 0);
        check_err(&long, &format!("OverLong {{ extra: {extra}"));
    }
    let twice = [good.bytes(), good.bytes()].concat();
    check_err(&twice, "Directory");
    let hidden = Archive { between: vec![7; 5], ..Archive::of(vec![Part::stored("a.npy", &array())]) };
    check_err(&hidden.bytes(), "Directory { why: \"5 bytes before it");
    let hidden = Archive { before: b"PK--".to_vec(), ..Archive::of(vec![Part::stored("a.npy", &array())]) };
    check_err(&hidden.bytes(), "Member");
    let hidden = Archive { after_entries: vec![1], ..Archive::of(vec![Part::stored("a.npy", &array())]) };
    check_err(&hidden.bytes(), "Directory { why: \"1 bytes follow");
    let long = [array(), vec![0]].concat();
    check_err(
        &Archive::of(vec![Part::stored("a.npy", &long)]).bytes(),
        "Array { name: \"a\", source: OverLong",
    );
}

#[test]
fn every_lie_has_its_variant() {
    let one = |part| Archive::of(vec![part]).bytes();
    let stored = || Part::stored("a.npy", &array());
    let deflated = || Part::deflated("a.npy", &array());
    let (len, packed) = (stored().unpacked, deflated().packed);

    check_err(b"", "NotZip");
    check_err(b"\x93NUMPY", "NotZip");
    check_err(b"PK", "Truncated");
    check_err(&one(Part::stored("a.txt", &array())), "ForeignMember");
    check_err(&one(Part::stored("a\u{7f}", &array())), "ForeignMember");
    check_err(&one(Part { name: b"\xff.npy".to_vec(), ..stored() }), "ForeignMember");
    check_err(&Archive::of(vec![stored(), stored()]).bytes(), "Duplicate { name: \"a\"");
    check_err(&one(Part { method: 12, ..stored() }), "Method { name: \"a\", method: 12, encrypted: false");
    check_err(&one(Part { flags: 1, ..stored() }), "Method { name: \"a\", method: 0, encrypted: true");
    check_err(&one(Part { local_name: Some(b"b.npy".to_vec()), ..stored() }), "Member");
    check_err(&one(Part { local_sizes: Some([0, len, len]), ..stored() }), "Member");
    check_err(&one(Part { local_sizes: Some([crc_of(&array()), len, 0]), ..stored() }), "Member");
    check_err(&one(Part { crc: 5, ..stored() }), "Checksum { name: \"a\", wanted: 5");
    check_err(&one(Part { packed: len - 1, ..stored() }), "Directory");
    check_err(&one(Part { packed: len + 1, ..stored() }), "Member");
    check_err(&one(Part { unpacked: len + 1, ..stored() }), "Bomb");
    check_err(&one(Part { unpacked: len - 1, ..stored() }), "Unpack");
    check_err(&one(Part { packed: u32::MAX, ..stored() }), "Unsupported { what: \"zip64\"");
    check_err(&one(Part { packed: 1 << 31, ..stored() }), "Member");

    check_err(&one(Part { unpacked: len - 1, ..deflated() }), "Unpack");
    check_err(&one(Part { unpacked: len + 1, ..deflated() }), "Unpack");
    check_err(&one(Part { unpacked: packed * 1032 + 1, ..deflated() }), "Bomb");
    check_err(&one(Part { crc: 5, ..deflated() }), "Checksum");
    let mut longer = deflated();
    longer.data.push(0);
    longer.packed += 1;
    check_err(&one(longer), "Unpack { name: \"a\", why: \"1 packed bytes are left over");
    let mut shorter = deflated();
    shorter.data.pop();
    shorter.packed -= 1;
    check_err(&one(shorter), "Unpack");
    let mut garbage = deflated();
    garbage.data.fill(0xff);
    check_err(&one(garbage), "Unpack");

    let counted = |count| Archive { count: Some(count), ..Archive::of(vec![stored()]) }.bytes();
    check_err(&counted(0), "Directory");
    check_err(&counted(2), "Directory { why: \"entry 1 of 2 is missing");
    check_err(&counted(300), "TooMany { count: 300");
    check_err(&counted(u16::MAX), "Unsupported { what: \"zip64\"");
    for shift in [1, 4, 1 << 20, u32::MAX - 1] {
        check_err(&Archive { offset_shift: shift, ..Archive::of(vec![stored()]) }.bytes(), "Member");
    }
    let mut parts = one(stored());
    let disk = parts.len() - END_LEN + 4;
    parts[disk] = 1;
    check_err(&parts, "Unsupported { what: \"multi-part\"");
    check_err(&one(Part::stored("a.npy", b"hello")), "Array { name: \"a\", source: NotNpy");

    // Two members that share their bytes.
    let mut shared = Archive::of(vec![stored(), Part::stored("b.npy", &array())]).bytes();
    let second = shared.len() - END_LEN - 5 - 4;
    shared[second..second + 4].fill(0);
    check_err(&shared, "Member");
}

#[test]
fn all_members_together_are_bounded() {
    // 300 MiB fit into the limit once, not twice; that the bytes cannot be decompressed is detected later.
    let mut room = MAX_UNPACKED;
    let entry = Entry {
        name: "a".into(),
        full_name: b"a.npy".to_vec(),
        flags: 0,
        method: 8,
        crc: 0,
        packed: 1 << 20,
        unpacked: 300 << 20,
        offset: 0,
    };
    let mut file = one_header(&entry);
    file.resize(file.len() + entry.packed, 0xff);
    for (expect_room, expect) in [(212 << 20, "Unpack"), (212 << 20, "Bomb")] {
        let error = entry.unpack(&file, &mut room).expect_err("garbage does not unpack");
        assert!(format!("{error:?}").starts_with(expect), "{error:?}");
        assert_eq!(room, expect_room);
    }
}

fn one_header(entry: &Entry) -> Vec<u8> {
    let part = Part {
        name: entry.full_name.clone(),
        flags: entry.flags,
        method: entry.method,
        crc: entry.crc,
        packed: entry.packed as u32,
        unpacked: entry.unpacked as u32,
        ..Part::stored("", b"")
    };
    let mut bytes = Archive::of(vec![part]).bytes();
    bytes.truncate(LOCAL_LEN + entry.full_name.len());
    bytes
}

#[test]
fn a_large_file_is_refused_before_it_is_read() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("large.npz");
    let file = std::fs::File::create(&path).expect("writable");
    file.set_len(MAX_FILE + 1).expect("a file with a hole");
    let said = read(&path).expect_err("too large").to_string();
    assert!(said.contains("large.npz") && said.contains("268435457 bytes"), "{said}");
}
