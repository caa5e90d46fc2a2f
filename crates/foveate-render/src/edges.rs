//! Pixels on the edges of geoms: the mean of four samples, each of them as bright as its geom is in that pixel.

use foveate_kernels::plain::Plain;

use crate::frame::Frame;
use crate::lanes::{LANES, Wide, Words, select};
use crate::layer::{Layer, PLANE, SKY};
use crate::rows::paint;
use crate::view::View;

/// Where the samples are, in pixels from a pixel's upper left corner: those of llvmpipe.
const SAMPLES: [[f32; 2]; 4] = [[0.375, 0.875], [0.875, 0.625], [0.125, 0.375], [0.625, 0.125]];

/// Edge pixels that are smoothed together.
const CHUNK: usize = 256;

/// No link in a list.
const END: u16 = u16::MAX;

/// What smoothing needs of a picture.
#[derive(Debug, Clone)]
pub(crate) struct EdgeBuffers {
    /// What is in front, with one more block on both sides of each row and one more row above and below.
    front: Vec<Words>,
    /// The picture without bodies.
    under: Vec<Words>,
    /// The places of edge pixels of this picture: rows in the upper half.
    places: Vec<u32>,
    /// For each body, then for each plane: its first link.
    heads: Vec<u16>,
    /// Which heads lead somewhere.
    touched: Vec<u32>,
    /// An edge pixel where something may be seen, and the next such.
    links: Vec<(u16, u16)>,
    chunk: Box<Chunk>,
}

/// Numbers of each pixel of a chunk.
#[derive(Debug, Clone)]
struct Chunk {
    x: [f32; CHUNK],
    y: [f32; CHUNK],
    depth: [[f32; CHUNK]; 4],
    seen: [[u32; CHUNK]; 4],
    /// Sums of the first and third byte of colours, and of the second.
    even: [u32; CHUNK],
    odd: [u32; CHUNK],
}

impl EdgeBuffers {
    pub(crate) fn new(blocks: usize, height: usize) -> EdgeBuffers {
        EdgeBuffers {
            front: vec![[0; LANES]; (blocks + 2) * (height + 2)],
            under: vec![[0; LANES]; blocks * height],
            places: Vec::with_capacity(blocks * LANES * height),
            heads: Vec::new(),
            touched: Vec::new(),
            links: Vec::with_capacity(5 * CHUNK),
            chunk: Box::new(Chunk {
                x: [0.0; CHUNK],
                y: [0.0; CHUNK],
                depth: [[0.0; CHUNK]; 4],
                seen: [[0; CHUNK]; 4],
                even: [0; CHUNK],
                odd: [0; CHUNK],
            }),
        }
    }

    /// Keeps what is in front in row `y`, and its colours without bodies.
    #[inline(always)]
    pub(crate) fn keep(&mut self, y: usize, width: usize, front: &[Words], under: &[Words]) {
        let blocks = front.len();
        let wide = blocks + 2;
        let row = &mut self.front[(y + 1) * wide..][..wide];
        row[1..=blocks].copy_from_slice(front);
        // Beyond the picture, nothing else begins.
        let (first, last) = (front[0][0], front[(width - 1) / LANES][(width - 1) % LANES]);
        row[0] = [first; LANES];
        row[wide - 1] = [last; LANES];
        for i in width % LANES..LANES {
            if width % LANES != 0 {
                row[blocks][i] = last;
            }
        }
        self.under[y * blocks..][..blocks].copy_from_slice(under);
    }
}

/// Smooths the edges of a picture.
pub(crate) struct SmoothEdges<'a> {
    pub(crate) frame: &'a Frame,
    pub(crate) view: &'a View,
    pub(crate) layer: &'a Layer,
    pub(crate) edges: &'a mut EdgeBuffers,
    pub(crate) rgb: &'a mut [u8],
}

impl Plain for SmoothEdges<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let SmoothEdges { frame, view, layer, edges, rgb } = self;
        find(edges, view);
        edges.heads.clear();
        edges.heads.resize(frame.bodies.len() + frame.planes.len(), END);
        edges.touched.clear();
        edges.touched.reserve(frame.bodies.len() + frame.planes.len());
        let mut done = 0;
        while done < edges.places.len() {
            let end = (done + CHUNK).min(edges.places.len());
            smooth(frame, view, layer, edges, done..end, rgb);
            done = end;
        }
    }
}

/// Lists the pixels beside which something else is in front.
#[inline(always)]
fn find(edges: &mut EdgeBuffers, view: &View) {
    edges.places.clear();
    let wide = view.width.div_ceil(LANES) + 2;
    // Above the first row and below the last, nothing else begins.
    edges.front.copy_within(wide..2 * wide, 0);
    edges.front.copy_within(view.height * wide..(view.height + 1) * wide, (view.height + 1) * wide);
    let front = edges.front.as_flattened();
    let stride = wide * LANES;
    for y in 0..view.height {
        for b in 1..wide - 1 {
            let at = (y + 1) * stride + b * LANES;
            let here = block(front, at);
            let others =
                [block(front, at - 1), block(front, at + 1), block(front, at - stride), block(front, at + stride)];
            let mut differ = [0; LANES];
            for other in others {
                for i in 0..LANES {
                    differ[i] |= here[i] ^ other[i];
                }
            }
            let mut bits = 0;
            for i in 0..LANES {
                bits |= differ[i];
            }
            if bits != 0 {
                let x = (b - 1) * LANES;
                for (i, &differ) in differ.iter().enumerate() {
                    if differ != 0 && x + i < view.width {
                        edges.places.push((y as u32) << 16 | (x + i) as u32);
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

/// Smooths some of the listed pixels.
#[inline(always)]
fn smooth(
    frame: &Frame,
    view: &View,
    layer: &Layer,
    edges: &mut EdgeBuffers,
    range: std::ops::Range<usize>,
    rgb: &mut [u8],
) {
    let EdgeBuffers { front, under, places, heads, touched, links, chunk } = edges;
    let (front, under) = (front.as_flattened(), under.as_flattened());
    let layer_front = layer.front.as_flattened();
    let stride = view.width.div_ceil(LANES) * LANES;
    let wide = stride + 2 * LANES;
    let places = &places[range];
    let count = places.len();
    links.clear();
    touched.clear();
    for (edge, &place) in places.iter().enumerate() {
        let (x, y) = ((place & 0xffff) as usize, (place >> 16) as usize);
        chunk.x[edge] = view.ray_x(x as f32);
        chunk.y[edge] = view.ray_y(y as f32);
        let at = (y + 1) * wide + LANES + x;
        let seen = [front[at], front[at - 1], front[at + 1], front[at - wide], front[at + wide]];
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
        let behind = layer_front[y * stride + x];
        if behind != SKY && !seen.contains(&behind) {
            let head = head(behind, frame);
            if heads[head] == END {
                touched.push(behind);
            }
            links.push((edge as u16, heads[head]));
            heads[head] = (links.len() - 1) as u16;
        }
    }
    for s in 0..4 {
        chunk.depth[s][..count].fill(view.far);
        chunk.seen[s][..count].fill(SKY);
    }
    chunk.even[..count].fill(0);
    chunk.odd[..count].fill(0);
    for &thing in touched.iter() {
        let mut at = heads[head(thing, frame)];
        while at != END {
            let lanes = Lanes::take(links, &mut at, chunk);
            for (s, [dx, dy]) in SAMPLES.iter().enumerate() {
                let (mut x, mut y) = ([0.0; LANES], [0.0; LANES]);
                for i in 0..LANES {
                    x[i] = lanes.x[i] + dx * view.pixel;
                    y[i] = lanes.y[i] - dy * view.pixel;
                }
                let t = if thing & PLANE != 0 {
                    frame.planes[(thing & !PLANE) as usize].depth(&x, &y)
                } else {
                    frame.bodies[thing as usize].solid.depth(&x, &y)
                };
                for i in 0..LANES {
                    let edge = lanes.edges[i];
                    let depth = &mut chunk.depth[s][edge];
                    if t[i] >= view.near && t[i] < *depth {
                        *depth = t[i];
                        chunk.seen[s][edge] = thing;
                    }
                }
            }
        }
    }
    for &thing in touched.iter() {
        if thing & PLANE == 0 {
            add_body(frame, view, chunk, links, heads[thing as usize], thing);
        }
        heads[head(thing, frame)] = END;
    }
    for (edge, &place) in places.iter().enumerate() {
        let (x, y) = ((place & 0xffff) as usize, (place >> 16) as usize);
        let at = y * stride + x;
        let (mut even, mut odd) = (chunk.even[edge], chunk.odd[edge]);
        for s in 0..4 {
            let thing = chunk.seen[s][edge];
            if thing & PLANE == 0 {
                continue;
            }
            // A plane that is not in front at the centre is as bright as in the pixel beside.
            let mut from = at;
            if layer_front[at] != thing {
                let beside = [
                    (x > 0).then(|| at - 1),
                    (x + 1 < view.width).then_some(at + 1),
                    (y > 0).then(|| at.wrapping_sub(stride)),
                    (y + 1 < view.height).then_some(at + stride),
                ];
                from = beside.into_iter().flatten().find(|&at| layer_front[at] == thing).unwrap_or(at);
            }
            even += under[from] & 0x00ff_00ff;
            odd += under[from] >> 8 & 0x00ff_00ff;
        }
        let colour = ((even + 0x0002_0002) >> 2 & 0x00ff_00ff) | ((odd + 2) >> 2 & 0xff) << 8;
        rgb[(y * view.width + x) * 3..][..3].copy_from_slice(&colour.to_le_bytes()[..3]);
    }
}

/// Adds a body's colour to the pixels in whose samples it is in front.
#[inline(always)]
fn add_body(frame: &Frame, view: &View, chunk: &mut Chunk, links: &[(u16, u16)], from: u16, thing: u32) {
    let body = &frame.bodies[thing as usize];
    let mut at = from;
    while at != END {
        let lanes = Lanes::take(links, &mut at, chunk);
        let (mut x, mut y, mut times, mut depth) =
            ([0.0; LANES], [0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for (s, [dx, dy]) in SAMPLES.iter().enumerate() {
            for i in 0..LANES {
                let here = chunk.seen[s][lanes.edges[i]] == thing;
                let part = select(here, 1.0, 0.0);
                x[i] += part * dx;
                y[i] += part * dy;
                times[i] += part;
                depth[i] = select(here, chunk.depth[s][lanes.edges[i]], depth[i]);
            }
        }
        for i in 0..LANES {
            let inverse = 1.0 / select(times[i] > 0.0, times[i], 1.0);
            x[i] = lanes.x[i] + x[i] * inverse * view.pixel;
            y[i] = lanes.y[i] - y[i] * inverse * view.pixel;
        }
        // OpenGL computes the colour at the pixel's centre, even if the body does not cover that.
        let (mut cx, mut cy) = ([0.0; LANES], [0.0; LANES]);
        for i in 0..LANES {
            cx[i] = lanes.x[i] + 0.5 * view.pixel;
            cy[i] = lanes.y[i] - 0.5 * view.pixel;
        }
        let centre = body.solid.nearest_depth(&cx, &cy);
        let middle = body.solid.depth(&x, &y);
        for i in 0..LANES {
            let at_centre = centre[i] >= view.near;
            x[i] = select(at_centre, cx[i], x[i]);
            y[i] = select(at_centre, cy[i], y[i]);
            depth[i] = select(at_centre, centre[i], select(middle[i] >= view.near, middle[i], depth[i]));
        }
        let colour = paint(frame, body, &x, &y, &depth);
        for i in 0..lanes.count {
            let (edge, times) = (lanes.edges[i], times[i] as u32);
            chunk.even[edge] += times * (colour[i] & 0x00ff_00ff);
            chunk.odd[edge] += times * (colour[i] >> 8 & 0x00ff_00ff);
        }
    }
}

/// Edge pixels of one list.
struct Lanes {
    edges: [usize; LANES],
    /// How many there are; the last one fills the other lanes.
    count: usize,
    x: Wide,
    y: Wide,
}

impl Lanes {
    #[inline(always)]
    fn take(links: &[(u16, u16)], at: &mut u16, chunk: &Chunk) -> Lanes {
        let mut lanes = Lanes { edges: [0; LANES], count: 0, x: [0.0; LANES], y: [0.0; LANES] };
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
}

#[inline(always)]
fn head(thing: u32, frame: &Frame) -> usize {
    if thing & PLANE == 0 { thing as usize } else { frame.bodies.len() + (thing & !PLANE) as usize }
}
