//! A bounded reader and a writer for SafeTensors files: named tensors behind a JSON header.
//!
//! Weight files and checkpoints use this format, so other tools can open them. Supported types are `F32`,
//! `F64`, `U64` and `U8`. Sizes are compared with the bytes present before anything is allocated, every byte must
//! belong to exactly one tensor, and each kind of invalid input has its own [`TensorsError`].

mod error;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::{Tensor, TensorData};
pub use error::{MAX_FILE, MAX_HEADER, MAX_TENSORS, TensorsError};

const MAX_DIMS: usize = 8;
const METADATA: &str = "__metadata__";

/// The contents of a SafeTensors file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TensorFile {
    /// Metadata: texts by name.
    pub metadata: BTreeMap<String, String>,
    /// The tensors with their names, in the order of their data.
    pub tensors: Vec<(String, Tensor)>,
}

impl TensorFile {
    /// The tensor `name`.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|t| t.0 == name).map(|t| &t.1)
    }

    /// Reads the whole bytes of a file.
    ///
    /// # Errors
    /// Any [`TensorsError`] except [`TensorsError::TooLarge`], which is for whoever reads the file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TensorsError> {
        let Some((&length, rest)) = bytes.split_first_chunk() else {
            return Err(TensorsError::NotTensors);
        };
        let claimed = u64::from_le_bytes(length);
        if !matches!(rest.first(), Some(b'{')) {
            return Err(TensorsError::NotTensors);
        }
        let header = usize::try_from(claimed).ok().filter(|&n| n <= rest.len() && n <= MAX_HEADER);
        let Some(header) = header else {
            return Err(TensorsError::HeaderLength { claimed, available: rest.len() });
        };
        let (header, data) = rest.split_at(header);
        let header: Header = serde_json::from_slice(header)
            .map_err(|error| TensorsError::Header { why: error.to_string() })?;
        header.check(data)
    }

    /// The bytes of the file.
    ///
    /// Types of eight bytes come before those of four, so that every tensor is aligned; otherwise the order
    /// is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut order: Vec<&(String, Tensor)> = self.tensors.iter().collect();
        order.sort_by_key(|(_, tensor)| std::cmp::Reverse(tensor.data().item_bytes()));
        let text = |s: &str| serde_json::Value::from(s).to_string();

        let mut entries = vec![];
        if !self.metadata.is_empty() {
            let texts: Vec<String> =
                self.metadata.iter().map(|(name, value)| format!("{}:{}", text(name), text(value))).collect();
            entries.push(format!("\"{METADATA}\":{{{}}}", texts.join(",")));
        }
        let mut start = 0;
        for (name, tensor) in &order {
            let end = start + tensor.len() * tensor.data().item_bytes();
            entries.push(format!(
                "{}:{{\"dtype\":\"{}\",\"shape\":{:?},\"data_offsets\":[{start},{end}]}}",
                text(name),
                tensor.data().dtype(),
                tensor.shape()
            ));
            start = end;
        }
        let mut header = format!("{{{}}}", entries.join(","));
        while !header.len().is_multiple_of(8) {
            header.push(' ');
        }

        let mut out = Vec::with_capacity(8 + header.len() + start);
        out.extend((header.len() as u64).to_le_bytes());
        out.extend(header.as_bytes());
        for (_, tensor) in order {
            tensor.data().append_bytes(&mut out);
        }
        out
    }
}

/// The header as parsed, before any check. Lists, not maps: a map would hide duplicates.
struct Header {
    metadata: Vec<Pairs<String>>,
    tensors: Vec<(String, Info)>,
}

/// A JSON object in order, duplicates included.
struct Pairs<T>(Vec<(String, T)>);

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Info {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Header;
            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object of tensors")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut header = Header { metadata: vec![], tensors: vec![] };
                while let Some(name) = map.next_key::<String>()? {
                    if name == METADATA {
                        header.metadata.push(map.next_value()?);
                    } else {
                        header.tensors.push((name, map.next_value()?));
                    }
                }
                Ok(header)
            }
        }
        from.deserialize_map(InOrder)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Pairs<T>;
            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs = vec![];
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(InOrder(std::marker::PhantomData))
    }
}

impl Header {
    /// Checks the header against `data`, and extracts the tensors.
    fn check(mut self, data: &[u8]) -> Result<TensorFile, TensorsError> {
        if self.tensors.len() > MAX_TENSORS {
            return Err(TensorsError::TooMany { count: self.tensors.len() });
        }
        if self.metadata.len() > 1 {
            return Err(TensorsError::Duplicate { name: METADATA.into() });
        }
        let mut metadata = BTreeMap::new();
        for (name, value) in self.metadata.pop().map_or(vec![], |pairs| pairs.0) {
            if let Some(_first) = metadata.insert(name.clone(), value) {
                return Err(TensorsError::Duplicate { name });
            }
        }
        let mut names: Vec<&String> = self.tensors.iter().map(|(name, _)| name).collect();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(TensorsError::Duplicate { name: pair[0].clone() });
        }

        self.tensors.sort_by_key(|(_, info)| info.data_offsets);
        let mut free = 0;
        for (name, info) in &self.tensors {
            let [start, end] = info.data_offsets;
            let given = end.saturating_sub(start);
            let wanted = info.bytes(name)?;
            if start != free {
                return Err(TensorsError::Layout { name: name.clone(), start, free });
            }
            if given != wanted || end < start {
                return Err(TensorsError::Size { name: name.clone(), wanted, given });
            }
            free = end;
        }
        let given = data.len();
        if free > given as u64 {
            return Err(TensorsError::Truncated { wanted: free, given });
        }
        if free < given as u64 {
            return Err(TensorsError::OverLong { wanted: free, given });
        }
        let tensors = self.tensors.into_iter().map(|(name, info)| info.take(name, data)).collect();
        Ok(TensorFile { metadata, tensors })
    }
}

impl Info {
    /// Bytes that type and shape require.
    fn bytes(&self, name: &str) -> Result<u64, TensorsError> {
        let item: u64 = match self.dtype.as_str() {
            "U8" => 1,
            "F32" => 4,
            "F64" | "U64" => 8,
            _ => return Err(TensorsError::Dtype { name: name.into(), dtype: self.dtype.clone() }),
        };
        // A zero dimension must not hide an overflow.
        let most = self.shape.iter().try_fold(item, |n, &d| n.checked_mul(d.max(1)));
        match most.filter(|&n| isize::try_from(n).is_ok() && self.shape.len() <= MAX_DIMS) {
            Some(most) => Ok(if self.shape.contains(&0) { 0 } else { most }),
            None => Err(TensorsError::Shape { name: name.into(), shape: self.shape.clone() }),
        }
    }

    /// Extracts the tensor; everything has been checked.
    fn take(self, name: String, data: &[u8]) -> (String, Tensor) {
        let bytes = &data[self.data_offsets[0] as usize..self.data_offsets[1] as usize];
        let data = match self.dtype.as_str() {
            "U8" => TensorData::U8(bytes.to_vec()),
            "F32" => TensorData::F32(bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()),
            "F64" => TensorData::F64(bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect()),
            _ => TensorData::U64(bytes.as_chunks().0.iter().map(|&b| u64::from_le_bytes(b)).collect()),
        };
        let shape = self.shape.iter().map(|&d| d as usize).collect();
        (name, Tensor::new(shape, data).expect("the shape was compared with the bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn shaped(shape: Vec<usize>, data: TensorData) -> Tensor {
        Tensor::new(shape, data).expect("it fits")
    }

    fn sample() -> TensorFile {
        TensorFile {
            metadata: [("kind", "a \"test\"\nin two lines"), ("ä", "")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            tensors: vec![
                ("state.mean".into(), vec![0.1, -2.0].into()),
                ("counter".into(), shaped(vec![], TensorData::U64(vec![u64::MAX]))),
                ("query.weight".into(), shaped(vec![1, 3], TensorData::F32(vec![1.0, -0.0, 1e-40]))),
                ("none".into(), shaped(vec![0, 7], TensorData::F32(vec![]))),
                ("pictures".into(), shaped(vec![3], TensorData::U8(vec![7, 0, 255]))),
            ],
        }
    }

    #[test]
    fn round_trip() {
        let bytes = sample().to_bytes();
        let again = TensorFile::from_bytes(&bytes).expect("our own file");
        assert_eq!(again.metadata, sample().metadata);
        for (name, tensor) in sample().tensors {
            assert_eq!(again.get(&name), Some(&tensor));
        }
        assert_eq!(again.to_bytes(), bytes);
    }

    #[test]
    fn other_readers_and_writers_agree() {
        let bytes = sample().to_bytes();
        let theirs = safetensors::SafeTensors::deserialize(&bytes).expect("a standard file");
        assert_eq!(theirs.len(), 5);
        let query = theirs.tensor("query.weight").expect("it is there");
        assert_eq!(query.shape(), [1, 3]);
        assert_eq!(query.data()[..4], 1_f32.to_le_bytes());

        let raw: Vec<u8> = [3.5_f32, -1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let view = |shape| {
            safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape, &raw).expect("it fits")
        };
        let theirs = safetensors::serialize([("b", view(vec![2])), ("a", view(vec![2, 1]))], None)
            .expect("a standard file");
        let ours = TensorFile::from_bytes(&theirs).expect("readable");
        assert_eq!(ours.get("a"), Some(&shaped(vec![2, 1], TensorData::F32(vec![3.5, -1.0]))));
    }

    #[test]
    fn a_file_cut_anywhere_is_refused() {
        use TensorsError::{HeaderLength, NotTensors, Truncated};
        let good = sample().to_bytes();
        for cut in 0..good.len() {
            let error = TensorFile::from_bytes(&good[..cut]).expect_err("cut");
            assert!(matches!(error, NotTensors | HeaderLength { .. } | Truncated { .. }), "{cut}: {error:?}");
        }
    }

    #[track_caller]
    fn check_err(bytes: &[u8], expect: &str) {
        let error = TensorFile::from_bytes(bytes).expect_err("must be refused");
        assert!(format!("{error:?}").starts_with(expect), "{error:?}");
        let said = error.to_string();
        assert!(said.contains([';', '?']) && said.lines().count() == 1, "{said}");
    }

    #[test]
    fn every_lie_has_its_variant() {
        let tensor = |dtype: &str, shape: &str, offsets: &str| {
            format!("{{\"a\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":{offsets}}}}}")
        };
        let good = tensor("F32", "[2]", "[0,8]");
        TensorFile::from_bytes(&file(&good, &[0; 8])).expect("the good one");

        check_err(b"", "NotTensors");
        check_err(&[0; 100], "NotTensors");
        check_err(b"PK\x03\x04PK\x03\x04PK", "NotTensors");
        check_err(&[&[255; 8], good.as_bytes()].concat(), "HeaderLength { claimed: 18446744073709551615");
        check_err(
            &[&((MAX_HEADER as u64 + 1).to_le_bytes()), &*vec![b'{'; MAX_HEADER + 8]].concat(),
            "HeaderLength",
        );
        check_err(&file("{", &[]), "Header");
        check_err(&file("{\"a\":1}", &[]), "Header");
        check_err(&file(&"{\"a\":".repeat(1000), &[]), "Header");
        check_err(&file("{} x", &[]), "Header");
        check_err(&file("{\"__metadata__\":{\"a\":1}}", &[]), "Header");
        check_err(&file("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", &[]), "Duplicate { name: \"a\"");
        check_err(&file("{\"__metadata__\":{},\"__metadata__\":{}}", &[]), "Duplicate");
        let inner = &good[1..good.len() - 1];
        check_err(&file(&format!("{{{inner},{inner}}}"), &[0; 8]), "Duplicate { name: \"a\"");
        check_err(&file(&tensor("F16", "[4]", "[0,8]"), &[0; 8]), "Dtype { name: \"a\", dtype: \"F16\"");
        check_err(&file(&tensor("F32", "[3]", "[0,8]"), &[0; 8]), "Size { name: \"a\", wanted: 12, given: 8");
        check_err(&file(&tensor("F32", "[0]", "[8,0]"), &[0; 8]), "Layout");
        check_err(
            &file(&tensor("F32", "[2]", "[4,12]"), &[0; 12]),
            "Layout { name: \"a\", start: 4, free: 0",
        );
        check_err(&file(&tensor("F32", "[4294967296,4294967296]", "[0,8]"), &[0; 8]), "Shape");
        check_err(&file(&tensor("F32", "[0,4294967296,4294967296]", "[0,0]"), &[]), "Shape");
        check_err(&file(&tensor("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), &[0; 8]), "Shape");
        check_err(&file(&tensor("F32", "[-1]", "[0,8]"), &[0; 8]), "Header");
        check_err(&file(&tensor("F32", "[1e400]", "[0,8]"), &[0; 8]), "Header");
        check_err(&file(&good, &[0; 7]), "Truncated { wanted: 8, given: 7");
        check_err(&file(&good, &[0; 9]), "OverLong { wanted: 8, given: 9");
        check_err(&file(&tensor("F32", "[1000000000000]", "[0,4000000000000]"), &[0; 8]), "Truncated");
        check_err(&file("{}", &[0]), "OverLong");
        // Two tensors that share their bytes.
        let shared = inner.replacen('a', "b", 1);
        check_err(
            &file(&format!("{{{inner},{shared}}}"), &[0; 8]),
            "Layout { name: \"b\", start: 0, free: 8",
        );
        let many: Vec<String> = (0..=MAX_TENSORS).map(|i| inner.replacen('a', &i.to_string(), 1)).collect();
        check_err(&file(&format!("{{{}}}", many.join(",")), &[0; 8]), "TooMany { count: 4097");
    }
}
