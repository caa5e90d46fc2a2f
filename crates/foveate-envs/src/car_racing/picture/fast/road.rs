//! Road tiles and kerbs, added up in one layer.
//!
//! Neighbours share their edges exactly, so coverages sum to one and no seam is visible. Where two quads
//! share an edge, the one drawn later extends half a pixel into the other; all other edges extend outwards
//! over the grass.

use super::layer::Layer;
use super::lens::{Lens, Reach, grow};
use crate::car_racing::scene::{Colors, Paint, RoadQuad, Scene};

/// Data that depends on the track only, built once per track.
#[derive(Debug, Clone, Default)]
pub(super) struct RoadIndex {
    built: Option<(u64, usize)>,
    /// Centre and radius of each quad.
    circles: Vec<[f32; 3]>,
    /// The edges of each quad that a later quad covers.
    reach: Vec<[Reach; 4]>,
    /// The earlier quad whose first edge is this quad's third, as in a chain of tiles or kerbs.
    before: Vec<Option<u32>>,
    visible: Vec<u32>,
    /// For each quad, its index among the pieces of this frame.
    places: Vec<u32>,
    pieces: Vec<Piece>,
}

/// A visible quad of this frame.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Corners in cells.
    corners: [[f32; 2]; 4],
    weight: [f32; 4],
    /// True if the third edge is the first edge of an earlier piece, which then draws it.
    joined: bool,
    /// Weight of the first edge, minus that of the joined piece.
    front: [f32; 4],
}

const NOWHERE: u32 = u32::MAX;

impl RoadIndex {
    /// Adds the quads that may be visible.
    pub(super) fn draw(&mut self, scene: &Scene<'_>, lens: &Lens, layer: &mut Layer<4>) {
        if self.built != Some((scene.track_id, scene.road.len())) {
            self.build(scene.road);
            self.built = Some((scene.track_id, scene.road.len()));
        }
        self.cull(lens);
        self.place(scene, lens);
        for piece in &self.pieces {
            let [a, b, c, d] = piece.corners;
            if piece.front != [0.0; 4] {
                layer.edge(a, b, piece.front);
            }
            layer.edge(b, c, piece.weight);
            if !piece.joined {
                layer.edge(c, d, piece.weight);
            }
            layer.edge(d, a, piece.weight);
        }
    }

    /// Converts visible quads to pieces. Two consecutive pieces share one edge, weighted with the difference
    /// of their colours; with equal colours the edge is not drawn.
    fn place(&mut self, scene: &Scene<'_>, lens: &Lens) {
        /// Corners closer than this share of a cell count as one corner.
        const NEAR: f32 = 0.05;
        let palette = Palette::new(&scene.colors);
        self.pieces.clear();
        for &at in &self.visible {
            let quad = &scene.road[at as usize];
            let corners = quad.corners.map(|corner| lens.pixel(corner));
            let Some((mut corners, sign)) = grow(corners, self.reach[at as usize]) else { continue };
            let weight = palette.weight(quad.paint).map(|w| w * sign);
            let mut joined = false;
            let before = self.before[at as usize].map(|before| self.places[before as usize]);
            if let Some(before) = before.and_then(|place| self.pieces.get_mut(place as usize)) {
                let near =
                    |a: [f32; 2], b: [f32; 2]| (a[0] - b[0]).abs() < NEAR && (a[1] - b[1]).abs() < NEAR;
                if near(before.corners[0], corners[3]) && near(before.corners[1], corners[2]) {
                    corners[3] = before.corners[0];
                    corners[2] = before.corners[1];
                    joined = true;
                    for (front, weight) in before.front.iter_mut().zip(weight) {
                        *front -= weight;
                    }
                }
            }
            self.places[at as usize] = self.pieces.len() as u32;
            self.pieces.push(Piece { corners, weight, joined, front: weight });
        }
        for &at in &self.visible {
            self.places[at as usize] = NOWHERE;
        }
    }

    fn build(&mut self, road: &[RoadQuad]) {
        self.circles.clear();
        self.reach.clear();
        self.before.clear();
        self.before.resize(road.len(), None);
        self.places.clear();
        self.places.resize(road.len(), NOWHERE);
        self.visible.clear();
        self.visible.reserve(road.len());
        self.pieces.clear();
        self.pieces.reserve(road.len());
        for (i, quad) in road.iter().enumerate() {
            let centre = [0, 1].map(|k| quad.corners.iter().map(|c| c[k]).sum::<f64>() * 0.25);
            let radius =
                quad.corners.iter().map(|c| (c[0] - centre[0]).hypot(c[1] - centre[1])).fold(0.0, f64::max);
            self.circles.push([centre[0] as f32, centre[1] as f32, radius as f32 + 0.01]);
            // Neighbours are close in draw order; the last ones close the loop with the first.
            let near = i + 1..(i + 6).min(road.len());
            let later = near.clone().chain(road.len().saturating_sub(3).max(near.end)..road.len());
            let mut reach = [Reach::Out; 4];
            for j in later {
                let other = &road[j].corners;
                for (e, reach) in reach.iter_mut().enumerate() {
                    if other.contains(&quad.corners[e]) && other.contains(&quad.corners[(e + 1) % 4]) {
                        *reach = Reach::In;
                    }
                }
                if other[3] == quad.corners[0] && other[2] == quad.corners[1] {
                    self.before[j] = Some(i as u32);
                }
            }
            self.reach.push(reach);
        }
    }

    /// Lists the quads whose circle overlaps the view, in draw order.
    fn cull(&mut self, lens: &Lens) {
        let scale = lens.zoom as f32;
        let (a, b) = (lens.cos as f32 * scale, lens.sin as f32 * scale);
        let [x0, y0] = lens.offset.map(|v| v as f32);
        self.visible.clear();
        for (i, &[x, y, radius]) in self.circles.iter().enumerate() {
            let (cx, cy, r) = (x * a - y * b + x0, x * b + y * a + y0, radius * scale + 3.0);
            if (cx - 500.0).abs() < 500.0 + r && (cy - 450.0).abs() < 350.0 + r {
                self.visible.push(i as u32);
            }
        }
    }
}

/// Colours in the format of the road layer: R, G, B, coverage.
struct Palette {
    stripes: [[f32; 4]; 3],
}

impl Palette {
    fn new(colors: &Colors) -> Self {
        // The reference adds 2.55 per stripe and truncates to integers when it draws.
        let stripe = |i: f64| {
            let [r, g, b] = colors.road.map(|c| (c + 0.01 * i * 255.0) as u8 as f32);
            [r, g, b, 1.0]
        };
        Palette { stripes: [stripe(0.0), stripe(1.0), stripe(2.0)] }
    }

    fn weight(&self, paint: Paint) -> [f32; 4] {
        match paint {
            Paint::Road { stripe } => self.stripes[usize::from(stripe.min(2))],
            Paint::White => [255.0, 255.0, 255.0, 1.0],
            Paint::Red => [255.0, 0.0, 0.0, 1.0],
            Paint::Rgb([r, g, b]) => [f32::from(r), f32::from(g), f32::from(b), 1.0],
        }
    }
}
