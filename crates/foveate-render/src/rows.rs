//! Rows of a picture: bodies, their shadows and their mirror images before the layer of planes and sky.

use foveate_kernels::plain::Plain;

use crate::edges::EdgeBuffers;
use crate::frame::{Body, Frame};
use crate::lanes::{LANES, Wide, Wide3, Words, add_bytes, mask, mix_bytes, select, select_word};
use crate::layer::{Layer, PLANE, SKY, any, of, put};
use crate::light::{MAX_SHADOWS, lit, packed, to_viewer};
use crate::view::View;

/// How far above a surface its way to a light begins, in metres: like the bias of a shadow map.
const LIFT: f32 = 2e-3;

/// One row of a picture, in blocks.
#[derive(Debug, Clone)]
pub(crate) struct RowBuffers {
    depth: Vec<Wide>,
    front: Vec<Words>,
    colour: Vec<Words>,
    /// All bits where the light of a pass does not reach a plane.
    dark: [Vec<Words>; MAX_SHADOWS],
    /// Blocks with such a pixel.
    shaded: Vec<bool>,
    mirror_depth: Vec<Wide>,
    mirror_front: Vec<Words>,
    mirror_colour: Vec<Words>,
    /// For each body: pixels that are still to be painted; none between pictures.
    pending: Vec<Pixels>,
}

/// Pixels of one body, of any rows, that are painted together.
#[derive(Debug, Clone)]
struct Pixels {
    count: usize,
    /// Of their rays.
    x: Wide,
    y: Wide,
    depth: Wide,
    /// Their places in the picture, row by row.
    place: [usize; LANES],
}

impl Pixels {
    const NONE: Pixels =
        Pixels { count: 0, x: [0.0; LANES], y: [0.0; LANES], depth: [1.0; LANES], place: [0; LANES] };
}

impl RowBuffers {
    pub(crate) fn new(blocks: usize) -> RowBuffers {
        let numbers = || vec![[0.0; LANES]; blocks];
        let words = || vec![[0; LANES]; blocks];
        RowBuffers {
            depth: numbers(),
            front: words(),
            colour: words(),
            dark: std::array::from_fn(|_| words()),
            shaded: vec![false; blocks],
            mirror_depth: numbers(),
            mirror_front: words(),
            mirror_colour: words(),
            pending: Vec::new(),
        }
    }
}

/// Draws all rows.
pub(crate) struct DrawRows<'a> {
    pub(crate) frame: &'a Frame,
    pub(crate) view: &'a View,
    pub(crate) columns: &'a [Wide],
    pub(crate) layer: &'a Layer,
    pub(crate) rows: &'a mut RowBuffers,
    /// Where edges are to be smoothed: what that needs is left there.
    pub(crate) edges: Option<&'a mut EdgeBuffers>,
    pub(crate) rgb: &'a mut [u8],
}

impl Plain for DrawRows<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let DrawRows { frame, view, columns, layer, rows, mut edges, rgb } = self;
        rows.pending.resize(frame.bodies.len(), Pixels::NONE);
        for y in 0..view.height {
            let row = Row { frame, view, columns, layer, y };
            row.draw(rows);
            if let Some(edges) = &mut edges
                && frame.mirror.is_some()
            {
                edges.keep_bare(y, &rows.colour);
            }
            let mirrors = row.draw_mirror(rows);
            row.draw_glass(rows);
            if let Some(edges) = &mut edges {
                edges.keep(y, view.width, &rows.front, &rows.colour);
                if frame.mirror.is_some() {
                    let mirror = mirrors.then_some((&rows.mirror_front[..], &rows.mirror_colour[..]));
                    edges.keep_mirror(y, view.width, mirror);
                }
            }
            write_rgb(&rows.colour, &mut rgb[y * view.width * 3..][..view.width * 3]);
            row.draw_bodies(rows, rgb);
        }
        for (body, pixels) in frame.bodies.iter().zip(&mut rows.pending) {
            if pixels.count > 0 {
                draw_pixels(frame, view, layer, body, pixels, rgb);
            }
        }
    }
}

struct Row<'a> {
    frame: &'a Frame,
    view: &'a View,
    columns: &'a [Wide],
    layer: &'a Layer,
    y: usize,
}

impl Row<'_> {
    /// Finds what is in front, and draws planes and sky.
    #[inline(always)]
    fn draw(&self, rows: &mut RowBuffers) {
        let Row { frame, view, columns, layer, y } = *self;
        let blocks = columns.len();
        let row = y * blocks..(y + 1) * blocks;
        let ray_y = [view.ray_y(y as f32 + 0.5); LANES];
        let depth = &layer.depth[row.clone()];
        let ground = if layer.has_glass { &layer.solid } else { &layer.front };
        let ground = &ground[row.clone()];
        rows.depth.copy_from_slice(depth);
        rows.front.copy_from_slice(&layer.front[row.clone()]);
        for (number, body) in frame.bodies.iter().enumerate() {
            let span = body.hull.span(y, view.width);
            for b in span.start / LANES..span.end.div_ceil(LANES) {
                let t = body.solid.depth(&columns[b], &ray_y);
                let (depth, front) = (&mut rows.depth[b], &mut rows.front[b]);
                for i in 0..LANES {
                    let nearer = (t[i] >= view.near) & (t[i] < depth[i]);
                    depth[i] = select(nearer, t[i], depth[i]);
                    front[i] = select_word(nearer, number as u32, front[i]);
                }
            }
        }
        rows.colour.copy_from_slice(&layer.still[row.clone()]);
        if !frame.casts.iter().any(|cast| cast.polygon.rows.contains(&y)) {
            return;
        }
        rows.shaded.fill(false);
        for (k, lamp) in frame.shadow.iter().enumerate() {
            let dark = &mut rows.dark[k];
            dark.fill([0; LANES]);
            for cast in frame.casts.iter().filter(|cast| cast.lamp == k && cast.polygon.rows.contains(&y)) {
                let span = cast.polygon.span(y, view.width);
                let n = frame.planes[cast.plane as usize].axes[2];
                for b in span.start / LANES..span.end.div_ceil(LANES) {
                    let mut here = of(&ground[b], PLANE | cast.plane);
                    if !any(&here) {
                        continue;
                    }
                    let p = points(&columns[b], &ray_y, &depth[b]);
                    let o = lifted(&p, &n.map(|n| [n; LANES]));
                    let (way, end) = lamp.way(&o);
                    let mut hit = [0; LANES];
                    frame.bodies[cast.body].solid.shade(&o, &way, end, &here, &mut hit);
                    if !any(&hit) {
                        continue;
                    }
                    let covered = lamp.covers(&p);
                    for i in 0..LANES {
                        here[i] &= hit[i] & covered[i];
                        dark[b][i] |= here[i];
                    }
                    rows.shaded[b] |= any(&here);
                }
            }
        }
        // The passes are added in their order, as where nothing is in a shadow.
        for b in (0..blocks).filter(|&b| rows.shaded[b]) {
            let mut colour = layer.base[row.start + b];
            for k in 0..frame.shadow.len() {
                let added = &layer.added[k][row.start + b];
                for i in 0..LANES {
                    colour[i] = add_bytes(colour[i], added[i] & !rows.dark[k][b][i]);
                }
            }
            rows.colour[b] = colour;
        }
    }

    /// Lays transparent planes over the others.
    #[inline(always)]
    fn draw_glass(&self, rows: &mut RowBuffers) {
        if self.layer.has_glass {
            let blocks = self.columns.len();
            let glass = &self.layer.glass[self.y * blocks..][..blocks];
            for b in 0..blocks {
                for i in 0..LANES {
                    rows.colour[b][i] = through(glass[b][i], rows.colour[b][i]);
                }
            }
        }
    }

    /// Adds what the mirror shows. Returns whether that is anything.
    #[inline(always)]
    fn draw_mirror(&self, rows: &mut RowBuffers) -> bool {
        let Row { frame, view, columns, layer, y } = *self;
        let Some(mirror) = frame.mirror else { return false };
        let polygon = frame.polygons[mirror as usize].span(y, view.width);
        if polygon.is_empty() {
            return false;
        }
        let ray_y = &[view.ray_y(y as f32 + 0.5); LANES];
        let blocks = columns.len();
        let row = y * blocks..(y + 1) * blocks;
        let depth = &layer.depth[row.clone()];
        let ground = if layer.has_glass { &layer.solid } else { &layer.front };
        let ground = &ground[row.clone()];
        let whole = polygon.start / LANES..polygon.end.div_ceil(LANES);
        let planes = !frame.mirrored_planes.is_empty();
        let bodies = frame.mirrored_bodies.iter().any(|body| body.hull.rows.contains(&y));
        if planes {
            rows.mirror_depth.copy_from_slice(&layer.mirror_depth[row.clone()]);
            rows.mirror_front.copy_from_slice(&layer.mirror_front[row.clone()]);
            rows.mirror_colour.copy_from_slice(&layer.mirrored[row]);
        } else if bodies {
            rows.mirror_depth[whole.clone()].fill([f32::INFINITY; LANES]);
            rows.mirror_front.fill([SKY; LANES]);
            rows.mirror_colour.fill([0; LANES]);
        } else {
            return false;
        }
        if bodies {
            for (number, body) in frame.mirrored_bodies.iter().enumerate() {
                let span = body.hull.span(y, view.width);
                for b in (span.start / LANES).max(whole.start)..span.end.div_ceil(LANES).min(whole.end) {
                    let t = body.solid.depth(&columns[b], ray_y);
                    for i in 0..LANES {
                        let here = (ground[b][i] == PLANE | mirror)
                            & (t[i] > depth[b][i])
                            & (t[i] < rows.mirror_depth[b][i]);
                        rows.mirror_depth[b][i] = select(here, t[i], rows.mirror_depth[b][i]);
                        rows.mirror_front[b][i] = select_word(here, number as u32, rows.mirror_front[b][i]);
                    }
                }
            }
            for (number, body) in frame.mirrored_bodies.iter().enumerate() {
                let span = body.hull.span(y, view.width);
                for b in (span.start / LANES).max(whole.start)..span.end.div_ceil(LANES).min(whole.end) {
                    let here = of(&rows.mirror_front[b], number as u32);
                    if any(&here) {
                        let p = points(&columns[b], ray_y, &rows.mirror_depth[b]);
                        let n = body.solid.normal(&p);
                        let colour = packed(&lit(&frame.mirrored_lamps, &body.paint, &p, &to_viewer(&p), &n));
                        put(&mut rows.mirror_colour[b], &colour, &here);
                    }
                }
            }
        }
        for b in whole {
            for i in 0..LANES {
                let seen = rows.mirror_colour[b][i] & mask(ground[b][i] == PLANE | mirror);
                rows.colour[b][i] = add_bytes(rows.colour[b][i], seen);
            }
        }
        true
    }

    /// Draws the bodies before all else. Their pixels wait until there is a whole block of one body: most bodies are narrower than
    /// a block.
    #[inline(always)]
    fn draw_bodies(&self, rows: &mut RowBuffers, rgb: &mut [u8]) {
        let Row { frame, view, columns, layer, y } = *self;
        let ray_y = view.ray_y(y as f32 + 0.5);
        for (number, body) in frame.bodies.iter().enumerate() {
            let span = body.hull.span(y, view.width);
            for b in span.start / LANES..span.end.div_ceil(LANES) {
                let here = of(&rows.front[b], number as u32);
                if !any(&here) {
                    continue;
                }
                let pixels = &mut rows.pending[number];
                let first = b * LANES;
                for i in 0..LANES.min(view.width - first) {
                    if here[i] == 0 {
                        continue;
                    }
                    let at = pixels.count % LANES;
                    pixels.x[at] = columns[b][i];
                    pixels.y[at] = ray_y;
                    pixels.depth[at] = rows.depth[b][i];
                    pixels.place[at] = y * view.width + first + i;
                    pixels.count += 1;
                    if pixels.count == LANES {
                        draw_pixels(frame, view, layer, body, pixels, rgb);
                    }
                }
            }
        }
    }
}

/// Paints the pixels of a body that wait.
#[inline(always)]
fn draw_pixels(frame: &Frame, view: &View, layer: &Layer, body: &Body, pixels: &mut Pixels, rgb: &mut [u8]) {
    let p = points(&pixels.x, &pixels.y, &pixels.depth);
    let mut here = [0; LANES];
    for i in 0..LANES {
        here[i] = mask(i < pixels.count);
    }
    let colour = paint(frame, body, &p, &body.solid.normal(&p), &here);
    for i in 0..pixels.count.min(LANES) {
        let place = pixels.place[i];
        let mut colour = colour[i];
        if layer.has_glass {
            let (y, x) = (place / view.width, place % view.width);
            let at = y * view.width.div_ceil(LANES) + x / LANES;
            let behind = pixels.depth[i] > layer.glass_depth[at][x % LANES];
            colour = through(layer.glass[at][x % LANES] & mask(behind), colour);
        }
        rgb[place * 3..][..3].copy_from_slice(&colour.to_le_bytes()[..3]);
    }
    pixels.count = 0;
}

/// The colour of a body at points with normals; only where `here` has its bits.
#[inline(always)]
pub(crate) fn paint(frame: &Frame, body: &Body, p: &Wide3, n: &Wide3, here: &Words) -> Words {
    let v = to_viewer(p);
    let mut colour = packed(&lit(&frame.plain, &body.paint, p, &v, n));
    for (k, lamp) in frame.shadow.iter().enumerate() {
        let added = packed(&lit(std::slice::from_ref(lamp), &body.paint.unlit(), p, &v, n));
        let mut dark = [0; LANES];
        let shaders = frame.shaders(body, k);
        // Pixels that the light reaches, as far as is known: what faces away from it needs no shadow.
        let mut bright = [0; LANES];
        for i in 0..LANES {
            bright[i] = mask(added[i] != 0) & here[i];
        }
        if !shaders.is_empty() && any(&bright) {
            let o = lifted(p, n);
            let (way, end) = lamp.way(&o);
            for &shader in shaders {
                frame.bodies[shader as usize].solid.shade(&o, &way, end, &bright, &mut dark);
                for i in 0..LANES {
                    bright[i] &= !dark[i];
                }
                if !any(&bright) {
                    break;
                }
            }
            let covered = lamp.covers(p);
            for i in 0..LANES {
                dark[i] &= covered[i];
            }
        }
        for i in 0..LANES {
            colour[i] = add_bytes(colour[i], added[i] & !dark[i]);
        }
    }
    colour
}

/// A colour behind a transparent one, whose highest byte is its opacity less 1; 0 is nothing.
#[inline(always)]
fn through(glass: u32, colour: u32) -> u32 {
    let mixed = mix_bytes(colour, glass & 0x00ff_ffff, (glass >> 24) + 1) & 0x00ff_ffff;
    select_word(glass == 0, colour, mixed)
}

/// The points of rays at a depth.
#[inline(always)]
pub(crate) fn points(x: &Wide, y: &Wide, depth: &Wide) -> Wide3 {
    let mut p = [[0.0; LANES]; 3];
    for i in 0..LANES {
        p[0][i] = x[i] * depth[i];
        p[1][i] = y[i] * depth[i];
        p[2][i] = depth[i];
    }
    p
}

/// Points a little above a surface.
#[inline(always)]
fn lifted(p: &Wide3, n: &Wide3) -> Wide3 {
    let mut o = [[0.0; LANES]; 3];
    for k in 0..3 {
        for i in 0..LANES {
            o[k][i] = p[k][i] + n[k][i] * LIFT;
        }
    }
    o
}

/// Writes a row of words as bytes.
#[inline(always)]
fn write_rgb(row: &[Words], rgb: &mut [u8]) {
    for (words, bytes) in row.iter().zip(rgb.chunks_mut(3 * LANES)) {
        if let Ok(bytes) = <&mut [u8; 3 * LANES]>::try_from(&mut *bytes) {
            for k in 0..LANES / 4 {
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| words[4 * k + i] & 0x00ff_ffff);
                let three = [a | b << 24, b >> 8 | c << 16, c >> 16 | d << 8];
                for (j, word) in three.iter().enumerate() {
                    bytes[12 * k + 4 * j..][..4].copy_from_slice(&word.to_le_bytes());
                }
            }
        } else {
            for (word, bytes) in words.iter().zip(bytes.chunks_exact_mut(3)) {
                bytes.copy_from_slice(&word.to_le_bytes()[..3]);
            }
        }
    }
}
