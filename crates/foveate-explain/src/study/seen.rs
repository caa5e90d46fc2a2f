//! What an agent saw: pictures of any shape, as people see them and as interventions change them.

use foveate_core::{Env, Image, ImageBuf, Observation, PatchGrid, PixelShape, Pixels};

use super::StudyError;
use crate::OriginalOrder;
use crate::overlay::lies_over_one_frame;

/// What the blind agent is shown.
const GREY: u8 = 127;

/// The pictures of an observation: in RGB, the frames of a stack one below the other, and shuffled patches back at their
/// places in the world. [`SeenPicture::observation`] makes of it, changed or not, what the agent gets.
///
/// The grid of an agent lies over one frame of a stack or over all of them; the parts of the picture are what it lies
/// over. A place is changed in all parts alike, since the agent takes it from all of them.
#[derive(Clone)]
pub(super) struct SeenPicture {
    shape: PixelShape,
    /// The bytes of pixels that are neither grey nor RGB, of which interventions change some only.
    bytes: Vec<u8>,
    picture: ImageBuf,
    parts: usize,
    /// `[patches]`: the place in the world of each patch shown, if they are shuffled.
    order: Option<Vec<u32>>,
}

/// What `env` shows, which must be pictures.
pub(super) fn pictures(env: &dyn Env) -> Result<Pixels<'_>, StudyError> {
    if let Observation::Image(pixels) = env.observation() {
        return Ok(pixels);
    }
    let why = format!(
        "{} shows {}, and what is explained here is pictures; choose a world, or an option of it, that shows pictures alone",
        env.spec().id,
        env.spec().observation.describe()
    );
    Err(StudyError::Refused { why })
}

impl SeenPicture {
    /// What `env` shows, which must be pictures, to an agent that attends to places of `grid`.
    ///
    /// Patches go back to their places if the agent's own are the same patches; an agent with other ones sees a shuffled
    /// picture as any other.
    pub(super) fn of(env: &dyn Env, grid: Option<PatchGrid>) -> Result<Self, StudyError> {
        let pixels = pictures(env)?;
        Ok(SeenPicture::new(pixels, grid, env.sensor_order()))
    }

    fn new(pixels: Pixels<'_>, grid: Option<PatchGrid>, order: Option<&[u32]>) -> Self {
        let shape = pixels.shape();
        let parts = if grid.is_some_and(|grid| lies_over_one_frame(grid, shape)) { shape.frames } else { 1 };
        let mut picture = pixels.to_image();
        let same_sides = |grid: &PatchGrid| (grid.width(), grid.height()) == (shape.width, shape.height);
        let order = grid.filter(same_sides).and_then(|grid| {
            let order = OriginalOrder::new(order?, picture.width(), picture.height(), shape.frames)?;
            let same = (grid.patch(), grid.stride(), grid.len())
                == (order.patch(), order.patch(), order.places().len());
            (same && order.is_permutation()).then_some(order)
        });
        if let Some(order) = order {
            picture = order.restore(picture.as_image());
        }
        SeenPicture {
            shape,
            bytes: if matches!(shape.channels, 1 | 3) { vec![] } else { pixels.bytes().to_vec() },
            picture,
            parts,
            order: order.map(|order| order.places().to_vec()),
        }
    }

    /// All frames, one below the other.
    pub(super) fn picture(&self) -> Image<'_> {
        self.picture.as_image()
    }

    /// How many pictures the agent's grid lies over, one below the other.
    pub(super) const fn parts(&self) -> usize {
        self.parts
    }

    /// Returns whether the agent gets the patches in another order.
    pub(super) const fn is_shuffled(&self) -> bool {
        self.order.is_some()
    }

    /// Width and height of the picture that the agent's grid lies over.
    pub(super) fn size(&self) -> [usize; 2] {
        [self.picture.width(), self.picture.height() / self.parts.max(1)]
    }

    /// What `pixels` show in place of what `env` shows.
    pub(super) fn of_pixels(pixels: Option<Pixels<'_>>, env: &dyn Env) -> Result<Self, StudyError> {
        let pixels = pixels.map_or_else(|| pictures(env), Ok)?;
        Ok(SeenPicture::new(pixels, None, env.sensor_order()))
    }

    /// Pictures of the stack.
    pub(super) const fn frames(&self) -> usize {
        self.shape.frames
    }

    /// The newest picture of the stack, whatever the agent's grid lies over.
    pub(super) fn newest_frame(&self) -> Image<'_> {
        let (width, height) = (self.shape.width, self.shape.height);
        let rgb = self.picture.rgb();
        let newest = rgb.get(rgb.len().saturating_sub(width * height * 3)..).unwrap_or(rgb);
        Image::new(width, height, newest).unwrap_or_else(|| self.picture())
    }

    /// The newest picture that the agent's grid lies over.
    pub(super) fn newest(&self) -> Image<'_> {
        self.newest_of(&self.picture)
    }

    /// The same part of a changed picture.
    pub(super) fn newest_of<'c>(&self, changed: &'c ImageBuf) -> Image<'c> {
        let [width, height] = self.size();
        let rgb = &changed.rgb()[changed.rgb().len() - width * height * 3..];
        Image::new(width, height, rgb).expect("the last part")
    }

    /// `[patches]`: values of the patches shown, by their places in the world.
    pub(super) fn restored<T: Copy + Default>(&self, values: &[T]) -> Vec<T> {
        match &self.order {
            Some(order) if order.len() == values.len() => {
                let mut restored = vec![T::default(); values.len()];
                for (&place, &value) in order.iter().zip(values) {
                    restored[place as usize] = value;
                }
                restored
            }
            _ => values.to_vec(),
        }
    }

    /// Patches shown, as places in the world.
    pub(super) fn places(&self, mut patches: Vec<u32>) -> Vec<u32> {
        if let Some(order) = &self.order {
            for patch in &mut patches {
                *patch = order.get(*patch as usize).copied().unwrap_or(*patch);
            }
        }
        patches
    }

    /// The observation with `changed` for its pictures; its bytes are written to `bytes`.
    pub(super) fn observation<'s>(&self, changed: Image<'_>, bytes: &'s mut Vec<u8>) -> Observation<'s> {
        let order = self.order.as_ref().and_then(|order| {
            OriginalOrder::new(order, changed.width(), changed.height(), self.shape.frames)
        });
        let shuffled = order.map(|order| order.shuffle(changed));
        let rgb = shuffled.as_ref().map_or(changed.rgb(), ImageBuf::rgb).as_chunks::<3>().0;
        bytes.clear();
        match self.shape.channels {
            1 => bytes.extend(rgb.iter().map(|pixel| pixel[0])),
            3 => bytes.extend_from_slice(rgb.as_flattened()),
            channels => {
                bytes.extend_from_slice(&self.bytes);
                let shown = if channels == 2 { 1 } else { 3 };
                for (pixel, new) in bytes.chunks_exact_mut(channels.max(1)).zip(rgb) {
                    pixel[..shown].copy_from_slice(&new[..shown]);
                }
            }
        }
        Observation::Image(Pixels::new(self.shape, bytes).expect("as many bytes as there were"))
    }

    /// Grey instead of what there is to see.
    pub(super) fn blindfold(&self) -> ImageBuf {
        let mut grey = ImageBuf::black(self.picture.width(), self.picture.height());
        grey.rgb_mut().fill(GREY);
        grey
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two frames of 4 x 2 pixels whose bytes are all different.
    fn pixels(bytes: &[u8], channels: usize) -> Pixels<'_> {
        Pixels::new(PixelShape { frames: 2, height: 2, width: 4, channels }, bytes).expect("2 x 2 x 4 pixels")
    }

    #[test]
    fn unchanged_it_is_what_the_agent_saw() {
        let grid = |height| PatchGrid::tile(4, height, 2, 2).ok();
        for channels in [1, 2, 3, 4] {
            let bytes: Vec<u8> = (0..16 * channels as u8).collect();
            let pixels = pixels(&bytes, channels);
            for (grid, order, parts) in [
                (grid(2), None, 2),
                (grid(2), Some(&[1, 0][..]), 2),
                (grid(2), Some(&[1, 1]), 2),
                (grid(4), Some(&[1, 0]), 1),
                (PatchGrid::tile(2, 1, 1, 1).ok(), Some(&[1, 0]), 2),
                (None, Some(&[1, 0]), 1),
            ] {
                let seen = SeenPicture::new(pixels, grid, order);
                assert_eq!((seen.parts(), seen.size()), (parts, [4, 4 / parts]));
                let mut out = vec![];
                let again = seen.observation(seen.picture(), &mut out);
                assert!(again == Observation::Image(pixels), "{channels} channels, order {order:?}");
            }
        }
    }

    #[test]
    fn shuffled_patches_are_changed_at_their_places_in_the_world() {
        let bytes: Vec<u8> = (0..16).collect();
        let seen = SeenPicture::new(pixels(&bytes, 1), PatchGrid::tile(4, 2, 2, 2).ok(), Some(&[1, 0]));
        let row = |image: Image<'_>, y: usize| (0..4).map(|x| image.pixel(x, y)[0]).collect::<Vec<_>>();
        assert_eq!(row(seen.picture(), 0), [2, 3, 0, 1]);
        assert_eq!(row(seen.newest(), 1), [14, 15, 12, 13]);
        assert_eq!((seen.restored(&[0.5, 2.0]), seen.places(vec![1, 1, 0])), (vec![2.0, 0.5], vec![0, 0, 1]));
        // The left patch of the world, black in both frames, is the right one that the agent gets.
        let mut changed = seen.picture.clone();
        for y in 0..4 {
            changed.rgb_mut()[y * 12..y * 12 + 6].fill(0);
        }
        let mut out = vec![];
        seen.observation(changed.as_image(), &mut out);
        assert_eq!(out, [0, 1, 0, 0, 4, 5, 0, 0, 8, 9, 0, 0, 12, 13, 0, 0]);
    }
}
