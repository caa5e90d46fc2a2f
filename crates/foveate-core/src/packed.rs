//! Pictures with large even areas, in little memory: run-length coding.
//!
//! A picture is a sequence of runs. A control byte `c` below 128 is followed by `c + 1` bytes as they are; a control
//! byte from 128 on is followed by one byte that occurs `c - 126` times. A picture without any runs takes 1/128 more
//! than its bytes.

use serde::{Deserialize, Serialize};

/// Fewest equal bytes that are stored as a run.
const LEAST: usize = 3;
/// Most bytes of a run, and most bytes that are stored as they are, behind one control byte.
const MOST_EQUAL: usize = 129;
const MOST_PLAIN: usize = 128;

/// A list of pictures, each of any number of bytes.
///
/// ```
/// use foveate_core::PackedPictures;
/// let mut pictures = PackedPictures::default();
/// let picture = [[7; 100], [9; 100]].concat();
/// pictures.push(&picture);
/// let mut again = [0; 200];
/// pictures.unpack(0, &mut again)?;
/// assert_eq!((pictures.len(), pictures.packed().len(), again.as_slice()), (1, 4, &*picture));
/// # Ok::<(), foveate_core::PackedError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedPictures {
    /// `[pictures]`: where each picture ends in `packed`.
    ends: Vec<u64>,
    packed: Vec<u8>,
}

/// Pictures from outside that do not make sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackedError {
    /// There is no such picture.
    #[error("picture {index} of {pictures} does not exist")]
    Missing {
        /// The one that was asked for.
        index: usize,
        /// Their number.
        pictures: usize,
    },
    /// It does not have the length that it should have.
    #[error("picture {index} does not have {wanted} bytes")]
    Length {
        /// The one.
        index: usize,
        /// Bytes that it should have.
        wanted: usize,
    },
    /// The ends of the pictures contradict the bytes.
    #[error("the ends of {pictures} pictures contradict their {bytes} packed bytes")]
    Ends {
        /// Their number.
        pictures: usize,
        /// Packed bytes.
        bytes: usize,
    },
}

impl PackedPictures {
    /// The pictures of which [`ends`](Self::ends) and [`packed`](Self::packed) are known, each of `len` bytes.
    ///
    /// # Errors
    /// When they contradict each other, or a picture has another length.
    pub fn from_parts(ends: Vec<u64>, packed: Vec<u8>, len: usize) -> Result<Self, PackedError> {
        let pictures = PackedPictures { ends, packed };
        pictures.check(len)?;
        Ok(pictures)
    }

    /// Checks pictures from outside: each must have `len` bytes.
    ///
    /// # Errors
    /// When one has not, or the ends of the pictures contradict the bytes.
    pub fn check(&self, len: usize) -> Result<(), PackedError> {
        let PackedPictures { ends, packed } = self;
        let ordered = ends.is_sorted() && ends.last().copied().unwrap_or(0) == packed.len() as u64;
        if !ordered {
            return Err(PackedError::Ends { pictures: ends.len(), bytes: packed.len() });
        }
        for index in 0..self.len() {
            let mut rest = self.picture(index)?;
            let mut sum = 0;
            while let Some((run, behind)) = Run::first(rest) {
                (sum, rest) = (sum + run.len(), behind);
            }
            if sum != len || !rest.is_empty() {
                return Err(PackedError::Length { index, wanted: len });
            }
        }
        Ok(())
    }

    /// Adds a picture.
    pub fn push(&mut self, picture: &[u8]) {
        let packed = &mut self.packed;
        let mut rest = picture;
        while !rest.is_empty() {
            let equal = equal_bytes(rest);
            if equal >= LEAST {
                packed.extend([(equal + 126) as u8, rest[0]]);
                rest = &rest[equal..];
                continue;
            }
            let most = rest.len().min(MOST_PLAIN);
            let plain = (1..most).find(|&at| equal_bytes(&rest[at..]) >= LEAST).unwrap_or(most);
            packed.push((plain - 1) as u8);
            packed.extend(&rest[..plain]);
            rest = &rest[plain..];
        }
        self.ends.push(packed.len() as u64);
    }

    /// Writes picture `index` to `to`.
    ///
    /// # Errors
    /// When there is no such picture, or it does not have the length of `to`.
    pub fn unpack(&self, index: usize, to: &mut [u8]) -> Result<(), PackedError> {
        let wanted = to.len();
        let unfit = || PackedError::Length { index, wanted };
        let mut packed = self.picture(index)?;
        let mut to = to;
        while let Some((run, behind)) = Run::first(packed) {
            let (next, rest) = to.split_at_mut_checked(run.len()).ok_or_else(unfit)?;
            match run {
                Run::Plain(bytes) => next.copy_from_slice(bytes),
                Run::Equal(byte, _) => next.fill(byte),
            }
            (to, packed) = (rest, behind);
        }
        if to.is_empty() && packed.is_empty() { Ok(()) } else { Err(unfit()) }
    }

    /// Number of pictures.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// `[pictures]`: where each picture ends in [`packed`](Self::packed).
    pub fn ends(&self) -> &[u64] {
        &self.ends
    }

    /// All pictures, one behind the other, run-length coded.
    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// The runs of a picture.
    fn picture(&self, index: usize) -> Result<&[u8], PackedError> {
        let PackedPictures { ends, packed } = self;
        let end = *ends.get(index).ok_or(PackedError::Missing { index, pictures: ends.len() })?;
        let start = index.checked_sub(1).map_or(0, |before| ends[before]);
        let contradict = PackedError::Ends { pictures: ends.len(), bytes: packed.len() };
        packed.get(start as usize..end as usize).ok_or(contradict)
    }
}

/// How many bytes at the start of `bytes`, which is not empty, are equal; no more than fit a run.
fn equal_bytes(bytes: &[u8]) -> usize {
    bytes.iter().take(MOST_EQUAL).take_while(|&&byte| byte == bytes[0]).count()
}

/// Some bytes of a picture.
enum Run<'a> {
    Plain(&'a [u8]),
    Equal(u8, usize),
}

impl<'a> Run<'a> {
    /// The first run of `packed` and what is behind it; `None` at the end, or when the run is cut off.
    fn first(packed: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&control, rest) = packed.split_first()?;
        let control = usize::from(control);
        if control < MOST_PLAIN {
            let (bytes, behind) = rest.split_at_checked(control + 1)?;
            Some((Run::Plain(bytes), behind))
        } else {
            let (&byte, behind) = rest.split_first()?;
            Some((Run::Equal(byte, control - 126), behind))
        }
    }

    fn len(&self) -> usize {
        match self {
            Run::Plain(bytes) => bytes.len(),
            Run::Equal(_, count) => *count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    /// Pictures with runs of random lengths, up to `longest`.
    fn picture(seed: u64, len: usize, longest: u64) -> Vec<u8> {
        let mut rng = Seed::root(seed).rng();
        let mut bytes = vec![];
        while bytes.len() < len {
            let (byte, count) = (rng.below(256) as u8, 1 + rng.below(longest) as usize);
            bytes.extend(std::iter::repeat_n(byte, count));
        }
        bytes.truncate(len);
        bytes
    }

    #[test]
    fn pictures_come_back() {
        for (seed, longest) in [1, 2, 3, 4, 10, 129, 130, 1000].into_iter().enumerate() {
            let mut pictures = PackedPictures::default();
            let all: Vec<_> = (0..4).map(|i| picture(10 * seed as u64 + i, 5000, longest)).collect();
            for picture in &all {
                pictures.push(picture);
            }
            pictures.check(5000).unwrap();
            assert!(pictures.packed().len() <= 4 * 5000 * 130 / 128, "runs of up to {longest}");
            let mut again = vec![0; 5000];
            for (i, picture) in all.iter().enumerate() {
                pictures.unpack(i, &mut again).unwrap();
                assert_eq!(&again, picture, "runs of up to {longest}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut pictures = PackedPictures::default();
        pictures.push(&[5; 10]);
        pictures.push(&[1, 2, 3]);
        assert_eq!(pictures.check(10), Err(PackedError::Length { index: 1, wanted: 10 }));
        let mut to = [0; 11];
        assert_eq!(pictures.unpack(0, &mut to), Err(PackedError::Length { index: 0, wanted: 11 }));
        assert_eq!(pictures.unpack(2, &mut to), Err(PackedError::Missing { index: 2, pictures: 2 }));
        assert_eq!(pictures.unpack(0, &mut to[..9]), Err(PackedError::Length { index: 0, wanted: 9 }));
        for (ends, packed) in [
            (vec![3], vec![136, 5]),
            (vec![2, 1], vec![136, 5]),
            (vec![u64::MAX], vec![136, 5]),
            (vec![], vec![136, 5]),
            (vec![1], vec![136]),
            (vec![2], vec![9, 5]),
        ] {
            let refused = PackedPictures::from_parts(ends.clone(), packed.clone(), 10);
            assert!(refused.is_err(), "{ends:?} of {packed:?}");
            // Without a check before it, unpacking does not panic either.
            let inside = PackedPictures { ends, packed };
            let unpacked: Vec<_> = (0..3).map(|index| inside.unpack(index, &mut [0; 10]).is_ok()).collect();
            assert!(!unpacked[1..].contains(&true), "{inside:?}");
        }
        assert!(PackedPictures::from_parts(vec![2], vec![136, 5], 10).is_ok());
    }
}
