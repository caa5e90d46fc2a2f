//! The part of a picture that often stays as it is: planes and sky.

use foveate_kernels::plain::Plain;

use crate::frame::Frame;
use crate::lanes::{LANES, Wide, Words, add_bytes, mask, select, select_word};
use crate::light::{Lamp, Lamps, MAX_SHADOWS};
use crate::plane::{Cells, Plane};
use crate::view::View;

/// In a buffer of what is in front: a plane has this bit, and its number.
pub(crate) const PLANE: u32 = 1 << 30;
/// In a buffer of what is in front: nothing but the sky.
pub(crate) const SKY: u32 = u32::MAX;

/// All that is seen of planes and of the sky, in rows of blocks, kept while nothing of it changes.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    /// Depth of the nearest opaque plane.
    pub(crate) depth: Vec<Wide>,
    /// The nearest plane, transparent ones included.
    pub(crate) front: Vec<Words>,
    /// The nearest opaque plane, where that differs.
    pub(crate) solid: Vec<Words>,
    /// Colour of the sky and of opaque planes, without the lights that cast shadows.
    pub(crate) base: Vec<Words>,
    /// What each light that casts shadows adds.
    pub(crate) added: [Vec<Words>; MAX_SHADOWS],
    /// Colour with all lights, where nothing is in a shadow.
    pub(crate) still: Vec<Words>,
    /// Depth of other planes in the mirror.
    pub(crate) mirror_depth: Vec<Wide>,
    /// Which other plane is seen in the mirror: its number in [`Frame::mirrored_planes`], with [`PLANE`]; or [`SKY`].
    pub(crate) mirror_front: Vec<Words>,
    /// Its colour.
    pub(crate) mirrored: Vec<Words>,
    /// Depth of the nearest transparent plane.
    pub(crate) glass_depth: Vec<Wide>,
    /// Its colour, and in the highest byte its opacity less 1; 0 where there is none.
    pub(crate) glass: Vec<Words>,
    /// True if there is a transparent plane.
    pub(crate) has_glass: bool,
    cells: Cells,
    of: Option<Key>,
}

/// What a layer depends on, besides the sky.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    view: View,
    planes: Vec<Plane>,
    plain: Vec<Lamp>,
    shadow: Vec<Lamp>,
    mirror: Option<u32>,
}

impl Layer {
    pub(crate) fn new(blocks: usize, height: usize) -> Layer {
        let numbers = || vec![[0.0; LANES]; blocks * height];
        let words = || vec![[0; LANES]; blocks * height];
        Layer {
            depth: numbers(),
            front: words(),
            solid: words(),
            base: words(),
            added: std::array::from_fn(|_| Vec::new()),
            still: words(),
            mirror_depth: numbers(),
            mirror_front: words(),
            mirrored: words(),
            glass_depth: numbers(),
            glass: words(),
            has_glass: false,
            cells: Cells::new(),
            of: None,
        }
    }

    /// Returns whether it must be drawn anew. The next call takes for granted that it was.
    pub(crate) fn is_outdated(&mut self, frame: &Frame, view: &View) -> bool {
        let Some(key) = &mut self.of else {
            self.of = Some(Key {
                view: *view,
                planes: frame.planes.clone(),
                plain: frame.plain.clone(),
                shadow: frame.shadow.clone(),
                mirror: frame.mirror,
            });
            return true;
        };
        let same = key.view == *view
            && key.planes == frame.planes
            && key.plain == frame.plain
            && key.shadow == frame.shadow
            && key.mirror == frame.mirror;
        if !same {
            key.view = *view;
            key.planes.clone_from(&frame.planes);
            key.plain.clone_from(&frame.plain);
            key.shadow.clone_from(&frame.shadow);
            key.mirror = frame.mirror;
        }
        !same
    }
}

/// Draws a layer.
pub(crate) struct DrawLayer<'a> {
    pub(crate) frame: &'a Frame,
    pub(crate) view: &'a View,
    pub(crate) columns: &'a [Wide],
    pub(crate) sky: &'a [Words],
    pub(crate) layer: &'a mut Layer,
}

impl Plain for DrawLayer<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let DrawLayer { frame, view, columns, sky, layer } = self;
        let blocks = columns.len();
        for added in &mut layer.added[..frame.shadow.len()] {
            added.resize(blocks * view.height, [0; LANES]);
        }
        layer.has_glass = frame.planes.iter().any(|plane| plane.transparent);
        layer.cells.clear();
        for y in 0..view.height {
            draw_row(frame, view, columns, sky, layer, y);
        }
    }
}

#[inline(always)]
fn draw_row(frame: &Frame, view: &View, columns: &[Wide], sky: &[Words], layer: &mut Layer, y: usize) {
    let blocks = columns.len();
    let row = y * blocks..(y + 1) * blocks;
    let ray_y = [view.ray_y(y as f32 + 0.5); LANES];
    let Layer {
        depth,
        front,
        solid,
        base,
        added,
        still,
        mirror_depth,
        mirror_front,
        mirrored,
        glass_depth,
        glass,
        cells,
        ..
    } = layer;
    let (depth, front, base) = (&mut depth[row.clone()], &mut front[row.clone()], &mut base[row.clone()]);
    depth.fill([view.far; LANES]);
    front.fill([SKY; LANES]);
    base.copy_from_slice(&sky[row.clone()]);
    let shadows = frame.shadow.len();
    for added in &mut added[..shadows] {
        added[row.clone()].fill([0; LANES]);
    }
    let mut seen = 0;
    for (number, plane) in frame.planes.iter().enumerate().filter(|(_, plane)| !plane.transparent) {
        let span = frame.polygons[number].span(y, view.width);
        for b in span.start / LANES..span.end.div_ceil(LANES) {
            let t = plane.depth(&columns[b], &ray_y);
            for i in 0..LANES {
                let nearer = (t[i] >= view.near) & (t[i] < depth[b][i]);
                depth[b][i] = select(nearer, t[i], depth[b][i]);
                front[b][i] = select_word(nearer, PLANE | number as u32, front[b][i]);
            }
        }
        seen += usize::from(!span.is_empty());
    }
    let mut colours = [[0; LANES]; 1 + MAX_SHADOWS];
    if seen > 0 {
        for (number, plane) in frame.planes.iter().enumerate().filter(|(_, plane)| !plane.transparent) {
            let span = frame.polygons[number].span(y, view.width);
            for b in span.start / LANES..span.end.div_ceil(LANES) {
                let here = of(&front[b], PLANE | number as u32);
                if !any(&here) {
                    continue;
                }
                let at = (&columns[b], &ray_y, &depth[b]);
                plane.colours(number as u32, &frame.lamps(), cells, at, &mut colours);
                put(&mut base[b], &colours[0], &here);
                for k in 0..shadows {
                    put(&mut added[k][row.start + b], &colours[1 + k], &here);
                }
            }
        }
    }
    let still = &mut still[row.clone()];
    still.copy_from_slice(base);
    if seen > 0 {
        for added in &added[..shadows] {
            for (still, added) in still.iter_mut().zip(&added[row.clone()]) {
                for i in 0..LANES {
                    still[i] = add_bytes(still[i], added[i]);
                }
            }
        }
    }
    let all = Lamps { plain: &frame.mirrored_lamps, shadow: &[] };
    if let Some(mirror) = frame.mirror
        && !frame.mirrored_planes.is_empty()
    {
        let (mirror_depth, mirrored) = (&mut mirror_depth[row.clone()], &mut mirrored[row.clone()]);
        let mirror_front = &mut mirror_front[row.clone()];
        mirror_front.fill([SKY; LANES]);
        mirror_depth.fill([f32::INFINITY; LANES]);
        mirrored.fill([0; LANES]);
        for (number, (plane, polygon)) in frame.mirrored_planes.iter().enumerate() {
            let span = polygon.span(y, view.width);
            for b in span.start / LANES..span.end.div_ceil(LANES) {
                let mut here = of(&front[b], PLANE | mirror);
                if !any(&here) {
                    continue;
                }
                let t = plane.depth(&columns[b], &ray_y);
                for i in 0..LANES {
                    here[i] &= mask((t[i] > depth[b][i]) & (t[i] < mirror_depth[b][i]));
                    mirror_depth[b][i] = select(here[i] != 0, t[i], mirror_depth[b][i]);
                    mirror_front[b][i] = select_word(here[i] != 0, PLANE | number as u32, mirror_front[b][i]);
                }
                if any(&here) {
                    let number = (frame.planes.len() + number) as u32;
                    plane.colours(number, &all, cells, (&columns[b], &ray_y, &t), &mut colours);
                    put(&mut mirrored[b], &colours[0], &here);
                }
            }
        }
    }
    if layer.has_glass {
        solid[row.clone()].copy_from_slice(front);
        let (glass_depth, glass) = (&mut glass_depth[row.clone()], &mut glass[row.clone()]);
        glass_depth.fill([f32::INFINITY; LANES]);
        glass.fill([0; LANES]);
        let all = Lamps { plain: &frame.all, shadow: &[] };
        for (number, plane) in frame.planes.iter().enumerate().filter(|(_, plane)| plane.transparent) {
            let span = frame.polygons[number].span(y, view.width);
            for b in span.start / LANES..span.end.div_ceil(LANES) {
                let t = plane.depth(&columns[b], &ray_y);
                let mut here = [0; LANES];
                for i in 0..LANES {
                    let nearer = (t[i] >= view.near) & (t[i] < depth[b][i]) & (t[i] < glass_depth[b][i]);
                    here[i] = mask(nearer);
                    glass_depth[b][i] = select(nearer, t[i], glass_depth[b][i]);
                    front[b][i] = select_word(nearer, PLANE | number as u32, front[b][i]);
                }
                if any(&here) {
                    plane.colours(number as u32, &all, cells, (&columns[b], &ray_y, &t), &mut colours);
                    for colour in &mut colours[0] {
                        *colour |= (plane.opacity - 1) << 24;
                    }
                    put(&mut glass[b], &colours[0], &here);
                }
            }
        }
    }
}

/// All bits where `words` are `word`.
#[inline(always)]
pub(crate) fn of(words: &Words, word: u32) -> Words {
    let mut same = [0; LANES];
    for i in 0..LANES {
        same[i] = mask(words[i] == word);
    }
    same
}

#[inline(always)]
pub(crate) fn any(mask: &Words) -> bool {
    let mut bits = 0;
    for i in 0..LANES {
        bits |= mask[i];
    }
    bits != 0
}

/// Replaces `words` by `new` where `mask` has its bits.
#[inline(always)]
pub(crate) fn put(words: &mut Words, new: &Words, mask: &Words) {
    for i in 0..LANES {
        words[i] = (words[i] & !mask[i]) | (new[i] & mask[i]);
    }
}
