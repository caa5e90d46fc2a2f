//! Pixels on the edges of geoms: the mean of four samples, each of them as bright as its geom is in that pixel.

use foveate_kernels::plain::Plain;

use crate::frame::Frame;
use crate::lanes::{LANES, Wide, Words, add_bytes, dot, max, select, select_word};
use crate::layer::{Layer, PLANE, SKY, any};
use crate::light::{lit, packed, to_viewer};
use crate::rows::{paint, points};
use crate::view::View;

/// Where the samples are, in pixels from a pixel's upper left corner: those of llvmpipe.
const SAMPLES: [[f32; 2]; 4] = [[0.375, 0.875], [0.875, 0.625], [0.125, 0.375], [0.625, 0.125]];

/// Edge pixels that are smoothed together.
const CHUNK: usize = 256;

/// The cosine between the line of sight and the normal of the outermost face that is seen of a round shape: OpenGL draws 28.
const STEEPEST: f32 = 0.11;

/// More than one thing.
const MIXED: u32 = u32::MAX - 1;

/// No link in a list.
const END: u16 = u16::MAX;

/// What smoothing needs of a picture.
#[derive(Debug, Clone)]
pub(crate) struct EdgeBuffers {
    /// What is in front, with one more block on both sides of each row and one more row above and below.
    front: Vec<Words>,
    /// The picture without bodies.
    under: Vec<Words>,
    /// The picture without bodies and without what the mirror shows.
    bare: Vec<Words>,
    /// What is in front in the mirror, padded like `front`.
    mirror_front: Vec<Words>,
    /// Its colours.
    mirror_colour: Vec<Words>,
    /// For every block of `front` and of `mirror_front`: what is in front in all of its pixels; [`MIXED`] where that differs.
    whole: [Vec<u32>; 2],
    /// The places of edge pixels of this picture: rows in the upper half.
    places: Vec<u32>,
    /// For each body, then for each plane: its first link.
    heads: Vec<u16>,
    /// Which heads lead somewhere.
    touched: Vec<u32>,
    /// An edge pixel where something may be seen, and the next such.
    links: Vec<(u16, u16)>,
    chunk: Box<Chunk>,
    /// The edges of planes, of the picture and of what the mirror shows.
    still: [StillEdges; 2],
    /// True if they are known.
    still_known: bool,
}

/// Edge pixels where planes and sky alone are seen: their samples see the same while the layer stays.
#[derive(Debug, Clone)]
struct StillEdges {
    /// Ascending.
    places: Vec<u32>,
    edges: Vec<StillEdge>,
}

#[derive(Debug, Clone)]
struct StillEdge {
    /// What is in front in the pixel and in those beside.
    seen: Seen,
    /// The pixel whose colour each sample has; [`NOWHERE`] for none.
    from: [u32; SAMPLES.len()],
}

/// What is in front in a pixel, left and right of it, above and below.
type Seen = [u32; 5];

/// One of so many pixels may be a still edge.
const MOST_STILL: usize = 4;

/// No pixel.
const NOWHERE: u32 = u32::MAX;

/// Numbers of each pixel of a chunk.
#[derive(Debug, Clone)]
struct Chunk {
    place: [u32; CHUNK],
    seen_beside: [Seen; CHUNK],
    x: [f32; CHUNK],
    y: [f32; CHUNK],
    /// Of what is nearest in each sample.
    depth: [[f32; SAMPLES.len()]; CHUNK],
    seen: [[u32; SAMPLES.len()]; CHUNK],
    /// Sums of the first and third byte of colours, and of the second.
    even: [u32; CHUNK],
    odd: [u32; CHUNK],
}

impl EdgeBuffers {
    pub(crate) fn new(blocks: usize, height: usize) -> EdgeBuffers {
        let most_still = blocks * LANES * height / MOST_STILL;
        EdgeBuffers {
            front: vec![[0; LANES]; (blocks + 2) * (height + 2)],
            under: vec![[0; LANES]; blocks * height],
            bare: vec![[0; LANES]; blocks * height],
            mirror_front: vec![[0; LANES]; (blocks + 2) * (height + 2)],
            mirror_colour: vec![[0; LANES]; blocks * height],
            whole: [(); 2].map(|()| vec![MIXED; (blocks + 2) * (height + 2)]),
            places: Vec::with_capacity(blocks * LANES * height),
            heads: Vec::new(),
            touched: Vec::new(),
            links: Vec::with_capacity(5 * CHUNK),
            chunk: Box::new(Chunk {
                place: [0; CHUNK],
                seen_beside: [[0; 5]; CHUNK],
                x: [0.0; CHUNK],
                y: [0.0; CHUNK],
                depth: [[0.0; SAMPLES.len()]; CHUNK],
                seen: [[0; SAMPLES.len()]; CHUNK],
                even: [0; CHUNK],
                odd: [0; CHUNK],
            }),
            still: [(); 2].map(|()| StillEdges {
                places: Vec::with_capacity(most_still),
                edges: Vec::with_capacity(most_still),
            }),
            still_known: false,
        }
    }

    /// Keeps what is in front in row `y`, and its colours without bodies.
    #[inline(always)]
    pub(crate) fn keep(&mut self, y: usize, width: usize, front: &[Words], under: &[Words]) {
        let blocks = front.len();
        let row = (y + 1) * (blocks + 2)..(y + 2) * (blocks + 2);
        keep_padded(&mut self.front[row.clone()], &mut self.whole[0][row], width, front);
        self.under[y * blocks..][..blocks].copy_from_slice(under);
    }

    /// Keeps the colours of row `y` without bodies and without what the mirror shows.
    #[inline(always)]
    pub(crate) fn keep_bare(&mut self, y: usize, bare: &[Words]) {
        self.bare[y * bare.len()..][..bare.len()].copy_from_slice(bare);
    }

    /// Keeps what is in front in the mirror in row `y`, with its colours; `None` if that is nothing.
    #[inline(always)]
    pub(crate) fn keep_mirror(&mut self, y: usize, width: usize, mirror: Option<(&[Words], &[Words])>) {
        let blocks = width.div_ceil(LANES);
        let row = (y + 1) * (blocks + 2)..(y + 2) * (blocks + 2);
        let (padded, whole) = (&mut self.mirror_front[row.clone()], &mut self.whole[1][row]);
        if let Some((front, colour)) = mirror {
            keep_padded(padded, whole, width, front);
            self.mirror_colour[y * blocks..][..blocks].copy_from_slice(colour);
        } else {
            padded.fill([SKY; LANES]);
            whole.fill(SKY);
        }
    }
}

/// Copies a row, and repeats its first and last pixel beyond the picture: nothing else begins there.
#[inline(always)]
fn keep_padded(row: &mut [Words], whole: &mut [u32], width: usize, front: &[Words]) {
    let blocks = front.len();
    row[1..=blocks].copy_from_slice(front);
    let (first, last) = (front[0][0], front[(width - 1) / LANES][(width - 1) % LANES]);
    row[0] = [first; LANES];
    row[blocks + 1] = [last; LANES];
    if !width.is_multiple_of(LANES) {
        row[blocks][width % LANES..].fill(last);
    }
    for (block, whole) in row.iter().zip(whole) {
        let mut differ = [0; LANES];
        for i in 0..LANES {
            differ[i] = block[i] ^ block[0];
        }
        *whole = if any(&differ) { MIXED } else { block[0] };
    }
}

/// Smooths the edges of a picture.
pub(crate) struct SmoothEdges<'a> {
    pub(crate) frame: &'a Frame,
    pub(crate) view: &'a View,
    pub(crate) layer: &'a Layer,
    pub(crate) edges: &'a mut EdgeBuffers,
    /// True if the layer is that of the picture before.
    pub(crate) layer_stayed: bool,
    pub(crate) rgb: &'a mut [u8],
}

impl Plain for SmoothEdges<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let SmoothEdges { frame, view, layer, edges, layer_stayed, rgb } = self;
        let things = frame.bodies.len() + frame.planes.len();
        edges.heads.clear();
        edges.heads.resize(things, END);
        edges.touched.clear();
        edges.touched.reserve(things);
        edges.still_known &= layer_stayed;
        if !edges.still_known {
            for still in &mut edges.still {
                still.places.clear();
                still.edges.clear();
            }
        }
        let still = match (layer_stayed, edges.still_known) {
            (false, _) => Still::Ignore,
            (true, false) => Still::Record,
            (true, true) => Still::Use,
        };
        if frame.mirror.is_some() && !(frame.mirrored_bodies.is_empty() && frame.mirrored_planes.is_empty()) {
            find(&mut edges.mirror_front, &mut edges.whole[1], &mut edges.places, view);
            smooth_all::<true>(frame, view, layer, edges, still, rgb);
        }
        find(&mut edges.front, &mut edges.whole[0], &mut edges.places, view);
        smooth_all::<false>(frame, view, layer, edges, still, rgb);
        edges.still_known = layer_stayed;
    }
}

/// What is done about [`StillEdges`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Still {
    Ignore,
    Record,
    Use,
}

/// Lists the pixels beside which something else is in front.
#[inline(always)]
fn find(front: &mut [Words], whole: &mut [u32], places: &mut Vec<u32>, view: &View) {
    places.clear();
    let wide = view.width.div_ceil(LANES) + 2;
    // Above the first row and below the last, nothing else begins.
    front.copy_within(wide..2 * wide, 0);
    front.copy_within(view.height * wide..(view.height + 1) * wide, (view.height + 1) * wide);
    whole.copy_within(wide..2 * wide, 0);
    whole.copy_within(view.height * wide..(view.height + 1) * wide, (view.height + 1) * wide);
    let front = front.as_flattened();
    let stride = wide * LANES;
    for y in 0..view.height {
        let rows = [0, 1, 2].map(|row| &whole[(y + row) * wide..][..wide]);
        for b in 1..wide - 1 {
            let thing = rows[1][b];
            let beside = (rows[1][b - 1] ^ thing) | (rows[1][b + 1] ^ thing);
            if thing != MIXED && beside | (rows[0][b] ^ thing) | (rows[2][b] ^ thing) == 0 {
                continue;
            }
            let at = (y + 1) * stride + b * LANES;
            let here = block(front, at);
            let others = [
                block(front, at - 1),
                block(front, at + 1),
                block(front, at - stride),
                block(front, at + stride),
            ];
            let mut differ = [0; LANES];
            for other in others {
                for i in 0..LANES {
                    differ[i] |= here[i] ^ other[i];
                }
            }
            if any(&differ) {
                let x = (b - 1) * LANES;
                for (i, &differ) in differ.iter().enumerate() {
                    if differ != 0 && x + i < view.width {
                        places.push((y as u32) << 16 | (x + i) as u32);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn block(front: &[u32], at: usize) -> &Words {
    front[at..at + LANES].first_chunk().expect("a slice of as many lanes")
}

/// Smooths the listed pixels.
#[inline(always)]
fn smooth_all<const MIRROR: bool>(
    frame: &Frame,
    view: &View,
    layer: &Layer,
    edges: &mut EdgeBuffers,
    still: Still,
    rgb: &mut [u8],
) {
    let (mut done, mut next) = (0, 0);
    while done < edges.places.len() {
        let end = (done + CHUNK).min(edges.places.len());
        next = smooth::<MIRROR>(frame, view, layer, edges, (still, next), done..end, rgb);
        done = end;
    }
}

/// Smooths some of the listed pixels: those of the picture, or those in the mirror. Still edges before `next` are done; returns
/// which is next then.
#[inline(always)]
fn smooth<const MIRROR: bool>(
    frame: &Frame,
    view: &View,
    layer: &Layer,
    edges: &mut EdgeBuffers,
    (use_of_still, mut next): (Still, usize),
    range: std::ops::Range<usize>,
    rgb: &mut [u8],
) -> usize {
    let EdgeBuffers {
        front,
        under,
        bare,
        mirror_front,
        mirror_colour,
        places,
        heads,
        touched,
        links,
        chunk,
        still,
        whole: _,
        still_known: _,
    } = edges;
    let still = &mut still[usize::from(MIRROR)];
    let most_still = view.width * view.height / MOST_STILL;
    let direct_front = front.as_flattened();
    let front = if MIRROR { mirror_front.as_flattened() } else { direct_front };
    let under = under.as_flattened_mut();
    let layer_front = layer.front.as_flattened();
    let bodies = if MIRROR { &frame.mirrored_bodies } else { &frame.bodies };
    let stride = view.width.div_ceil(LANES) * LANES;
    let wide = stride + 2 * LANES;
    let mirror_colour = mirror_colour.as_flattened();
    let bare = bare.as_flattened();
    let mut count = 0;
    links.clear();
    touched.clear();
    for &place in &places[range] {
        let (x, y) = ((place & 0xffff) as usize, (place >> 16) as usize);
        let at = (y + 1) * wide + LANES + x;
        let seen = [front[at], front[at - 1], front[at + 1], front[at - wide], front[at + wide]];
        if use_of_still == Still::Use {
            while next < still.places.len() && still.places[next] < place {
                next += 1;
            }
            if still.places.get(next) == Some(&place) && still.edges[next].seen == seen {
                let [even, odd] = sums(&still.edges[next].from, if MIRROR { mirror_colour } else { &*under });
                let mut colour = mean(even, odd);
                if MIRROR {
                    colour = add_bytes(bare[y * stride + x], colour);
                    under[y * stride + x] = colour;
                }
                if !MIRROR || direct_front[at] & PLANE != 0 {
                    rgb[(y * view.width + x) * 3..][..3].copy_from_slice(&colour.to_le_bytes()[..3]);
                }
                continue;
            }
        }
        let edge = count;
        count += 1;
        chunk.place[edge] = place;
        chunk.seen_beside[edge] = seen;
        chunk.x[edge] = view.ray_x(x as f32);
        chunk.y[edge] = view.ray_y(y as f32);
        for (i, &thing) in seen.iter().enumerate() {
            if thing == SKY || seen[..i].contains(&thing) {
                continue;
            }
            let head = head(thing, frame);
            if heads[head] == END {
                touched.push(thing);
            }
            links.push((edge as u16, heads[head]));
            heads[head] = (links.len() - 1) as u16;
        }
        // Behind a body, planes may begin and end.
        let behind = if MIRROR { SKY } else { layer_front[y * stride + x] };
        if behind != SKY && !seen.contains(&behind) {
            let head = head(behind, frame);
            if heads[head] == END {
                touched.push(behind);
            }
            links.push((edge as u16, heads[head]));
            heads[head] = (links.len() - 1) as u16;
        }
    }
    chunk.depth[..count].fill([view.far; SAMPLES.len()]);
    chunk.seen[..count].fill([SKY; SAMPLES.len()]);
    chunk.even[..count].fill(0);
    chunk.odd[..count].fill(0);
    for &thing in touched.iter() {
        let mut at = heads[head(thing, frame)];
        while at != END {
            let lanes = Lanes::take(links, &mut at, chunk);
            let mut depths = [[0.0; SAMPLES.len()]; LANES];
            for (s, [dx, dy]) in SAMPLES.iter().enumerate() {
                let (mut x, mut y) = ([0.0; LANES], [0.0; LANES]);
                for i in 0..LANES {
                    x[i] = lanes.x[i] + dx * view.pixel;
                    y[i] = lanes.y[i] - dy * view.pixel;
                }
                let t = if thing & PLANE == 0 {
                    bodies[thing as usize].solid.depth(&x, &y)
                } else if MIRROR {
                    frame.mirrored_planes[(thing & !PLANE) as usize].0.depth(&x, &y)
                } else {
                    frame.planes[(thing & !PLANE) as usize].depth(&x, &y)
                };
                let mut near = [view.near; LANES];
                if MIRROR && let Some(mirror) = frame.mirror {
                    near = frame.planes[mirror as usize].depth(&x, &y);
                }
                for i in 0..LANES {
                    depths[i][s] = select(t[i] >= near[i], t[i], f32::INFINITY);
                }
            }
            for i in 0..LANES {
                let edge = lanes.edges[i];
                let (depth, seen) = (&mut chunk.depth[edge], &mut chunk.seen[edge]);
                for s in 0..SAMPLES.len() {
                    let nearer = depths[i][s] < depth[s];
                    depth[s] = select(nearer, depths[i][s], depth[s]);
                    seen[s] = select_word(nearer, thing, seen[s]);
                }
            }
        }
    }
    for &thing in touched.iter() {
        if thing & PLANE == 0 {
            add_body::<MIRROR>(frame, view, chunk, links, heads[thing as usize], thing);
        }
        heads[head(thing, frame)] = END;
    }
    for edge in 0..count {
        let place = chunk.place[edge];
        let (x, y) = ((place & 0xffff) as usize, (place >> 16) as usize);
        let at = y * stride + x;
        let (mut even, mut odd) = (chunk.even[edge], chunk.odd[edge]);
        let mut sources = [NOWHERE; SAMPLES.len()];
        for s in 0..SAMPLES.len() {
            let thing = chunk.seen[edge][s];
            if thing & PLANE == 0 {
                continue;
            }
            if MIRROR && thing == SKY {
                continue;
            }
            // A plane that is not in front at the centre is as bright as in the pixel beside.
            let is_at = |x: usize, y: usize| {
                if MIRROR {
                    front[(y + 1) * wide + LANES + x] == thing
                } else {
                    layer_front[y * stride + x] == thing
                }
            };
            let mut from = at;
            if !is_at(x, y) {
                let beside = [
                    (x > 0).then(|| (x - 1, y)),
                    (x + 1 < view.width).then_some((x + 1, y)),
                    (y > 0).then(|| (x, y - 1)),
                    (y + 1 < view.height).then_some((x, y + 1)),
                ];
                let beside = beside.into_iter().flatten().find(|&(x, y)| is_at(x, y));
                from = beside.map_or(at, |(x, y)| y * stride + x);
            }
            sources[s] = from as u32;
        }
        let [of_planes, odd_of_planes] = sums(&sources, if MIRROR { mirror_colour } else { &*under });
        even += of_planes;
        odd += odd_of_planes;
        let seen = chunk.seen_beside[edge];
        let is_still = seen.iter().all(|thing| thing & PLANE != 0);
        if use_of_still == Still::Record && is_still && still.places.len() < most_still {
            still.places.push(place);
            still.edges.push(StillEdge { seen, from: sources });
        }
        let mut colour = mean(even, odd);
        if MIRROR {
            colour = add_bytes(bare[at], colour);
            under[at] = colour;
        }
        if !MIRROR || direct_front[(y + 1) * wide + LANES + x] & PLANE != 0 {
            rgb[(y * view.width + x) * 3..][..3].copy_from_slice(&colour.to_le_bytes()[..3]);
        }
    }
    next
}

/// The sums of the colours of some pixels: of the first and third byte, and of the second.
#[inline(always)]
fn sums(places: &[u32; SAMPLES.len()], colours: &[u32]) -> [u32; 2] {
    let [mut even, mut odd] = [0, 0];
    for &place in places.iter().filter(|&&place| place != NOWHERE) {
        let colour = colours[place as usize];
        even += colour & 0x00ff_00ff;
        odd += colour >> 8 & 0x00ff_00ff;
    }
    [even, odd]
}

/// The mean of four colours, of which these are the [`sums`].
#[inline(always)]
fn mean(even: u32, odd: u32) -> u32 {
    ((even + 0x0002_0002) >> 2 & 0x00ff_00ff) | ((odd + 2) >> 2 & 0xff) << 8
}

/// Adds a body's colour to the pixels in whose samples it is in front.
#[inline(always)]
fn add_body<const MIRROR: bool>(
    frame: &Frame,
    view: &View,
    chunk: &mut Chunk,
    links: &[(u16, u16)],
    from: u16,
    thing: u32,
) {
    let body = if MIRROR { &frame.mirrored_bodies[thing as usize] } else { &frame.bodies[thing as usize] };
    let mut at = from;
    while at != END {
        let lanes = Lanes::take_seen(links, &mut at, chunk, thing);
        if lanes.count == 0 {
            break;
        }
        let (mut x, mut y, mut depth) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for i in 0..LANES {
            let Mean { x: right, y: down, last } = MEANS[lanes.samples[i]];
            x[i] = right;
            y[i] = down;
            depth[i] = chunk.depth[lanes.edges[i]][last];
        }
        for i in 0..LANES {
            x[i] = lanes.x[i] + x[i] * view.pixel;
            y[i] = lanes.y[i] - y[i] * view.pixel;
        }
        let middle = body.solid.depth(&x, &y);
        for i in 0..LANES {
            // Rounding may miss the body.
            depth[i] = select(middle[i] >= view.near, middle[i], depth[i]);
        }
        let p = points(&x, &y, &depth);
        let n = body.solid.normal(&p);
        // OpenGL draws flat faces, and computes their colour at the pixel's centre, even beside the face.
        let mut on_face = [[0.0; LANES]; 3];
        for i in 0..LANES {
            let (p, mut n) = ([p[0][i], p[1][i], p[2][i]], [n[0][i], n[1][i], n[2][i]]);
            let ray = [lanes.x[i] + 0.5 * view.pixel, lanes.y[i] - 0.5 * view.pixel, 1.0];
            let length = dot(ray, ray).sqrt();
            // With 28 faces around, none is seen at a smaller angle.
            let away = max(dot(n, ray) + STEEPEST * length, 0.0) / (length * length);
            for k in 0..3 {
                n[k] -= away * ray[k];
            }
            let t = dot(n, p) / dot(n, ray);
            for k in 0..3 {
                on_face[k][i] = ray[k] * t;
            }
        }
        let n = if body.solid.is_round() { body.solid.normal(&on_face) } else { n };
        let colour = if MIRROR {
            packed(&lit(&frame.mirrored_lamps, &body.paint, &on_face, &to_viewer(&on_face), &n))
        } else {
            paint(frame, body, &on_face, &n, &[u32::MAX; LANES])
        };
        for i in 0..lanes.count {
            let (edge, times) = (lanes.edges[i], lanes.samples[i].count_ones());
            chunk.even[edge] += times * (colour[i] & 0x00ff_00ff);
            chunk.odd[edge] += times * (colour[i] >> 8 & 0x00ff_00ff);
        }
    }
}

/// Edge pixels of one list.
struct Lanes {
    edges: [usize; LANES],
    /// Their number; the last one fills the other lanes.
    count: usize,
    x: Wide,
    y: Wide,
    /// Bit s: something is in front in sample s.
    samples: [usize; LANES],
}

impl Lanes {
    /// The next of a list.
    #[inline(always)]
    fn take(links: &[(u16, u16)], at: &mut u16, chunk: &Chunk) -> Lanes {
        let mut lanes = Lanes::none();
        let mut last = 0;
        for i in 0..LANES {
            if *at != END {
                let (edge, next) = links[*at as usize];
                last = edge as usize % CHUNK;
                *at = next;
                lanes.count += 1;
            }
            lanes.edges[i] = last;
            lanes.x[i] = chunk.x[last];
            lanes.y[i] = chunk.y[last];
        }
        lanes
    }

    /// The next of a list in which `thing` is in front in some sample.
    #[inline(always)]
    fn take_seen(links: &[(u16, u16)], at: &mut u16, chunk: &Chunk, thing: u32) -> Lanes {
        let mut lanes = Lanes::none();
        while *at != END && lanes.count < LANES {
            let (edge, next) = links[*at as usize];
            *at = next;
            let edge = edge as usize % CHUNK;
            let mut samples = 0;
            for (s, &seen) in chunk.seen[edge].iter().enumerate() {
                samples |= usize::from(seen == thing) << s;
            }
            if samples != 0 {
                lanes.edges[lanes.count] = edge;
                lanes.samples[lanes.count] = samples;
                lanes.count += 1;
            }
        }
        let last = lanes.count.saturating_sub(1);
        for i in 0..LANES {
            let from = if i < last { i } else { last };
            let edge = lanes.edges[from];
            lanes.edges[i] = edge;
            lanes.samples[i] = lanes.samples[from];
            lanes.x[i] = chunk.x[edge];
            lanes.y[i] = chunk.y[edge];
        }
        lanes
    }

    #[inline(always)]
    fn none() -> Lanes {
        Lanes { edges: [0; LANES], count: 0, x: [0.0; LANES], y: [0.0; LANES], samples: [0; LANES] }
    }
}

/// The middle of some samples.
#[derive(Clone, Copy)]
struct Mean {
    /// In pixels from the upper left corner.
    x: f32,
    y: f32,
    /// The last of the samples.
    last: usize,
}

/// The middle of each set of samples: bit s stands for sample s.
static MEANS: [Mean; 1 << SAMPLES.len()] = means();

const fn means() -> [Mean; 1 << SAMPLES.len()] {
    let mut means = [Mean { x: 0.0, y: 0.0, last: 0 }; 1 << SAMPLES.len()];
    let mut set = 1;
    while set < means.len() {
        let mut s = 0;
        while s < SAMPLES.len() {
            if set >> s & 1 == 1 {
                means[set].x += SAMPLES[s][0];
                means[set].y += SAMPLES[s][1];
                means[set].last = s;
            }
            s += 1;
        }
        let inverse = 1.0 / set.count_ones() as f32;
        means[set].x *= inverse;
        means[set].y *= inverse;
        set += 1;
    }
    means
}

#[inline(always)]
fn head(thing: u32, frame: &Frame) -> usize {
    if thing & PLANE == 0 { thing as usize } else { frame.bodies.len() + (thing & !PLANE) as usize }
}
