//! Road tiles and kerbs: one layer in which they add up.
//!
//! Neighbours share their edges exactly, so coverages sum to one and no seam shows. Where two quads share an edge, the one
//! drawn later reaches half a pixel into the other; everywhere else they reach out over the grass.

use super::layer::Layer;
use super::lens::{Lens, Reach, grow};
use crate::car_racing::scene::{Colors, Paint, RoadQuad, Scene};

/// Where each quad is and which of its edges a later quad covers; built once per track.
#[derive(Debug, Clone, Default)]
pub(super) struct RoadIndex {
    built: Option<(u64, usize)>,
    /// Centre and radius.
    circles: Vec<[f32; 3]>,
    reach: Vec<[Reach; 4]>,
    visible: Vec<u32>,
}

impl RoadIndex {
    /// Adds the quads that may show.
    pub(super) fn draw(&mut self, scene: &Scene<'_>, lens: &Lens, layer: &mut Layer<4>) {
        if self.built != Some((scene.track_id, scene.road.len())) {
            self.build(scene.road);
            self.built = Some((scene.track_id, scene.road.len()));
        }
        self.cull(lens);
        let palette = Palette::new(&scene.colors);
        for &at in &self.visible {
            let quad = &scene.road[at as usize];
            let corners = quad.corners.map(|corner| lens.pixel(corner));
            if let Some(points) = grow(corners, self.reach[at as usize]) {
                layer.polygon(&points, palette.weight(quad.paint));
            }
        }
    }

    fn build(&mut self, road: &[RoadQuad]) {
        self.circles.clear();
        self.reach.clear();
        self.visible.clear();
        self.visible.reserve(road.len());
        for (i, quad) in road.iter().enumerate() {
            let centre = [0, 1].map(|k| quad.corners.iter().map(|c| c[k]).sum::<f64>() * 0.25);
            let radius =
                quad.corners.iter().map(|c| (c[0] - centre[0]).hypot(c[1] - centre[1])).fold(0.0, f64::max);
            self.circles.push([centre[0] as f32, centre[1] as f32, radius as f32 + 0.01]);
            // Neighbours follow closely in draw order; the last ones close the loop with the first.
            let later =
                (i + 1..(i + 4).min(road.len())).chain(road.len().saturating_sub(2).max(i + 4)..road.len());
            let mut reach = [Reach::Out; 4];
            for other in later.map(|j| &road[j]) {
                for (e, reach) in reach.iter_mut().enumerate() {
                    let edge = [quad.corners[e], quad.corners[(e + 1) % 4]];
                    if other.corners.contains(&edge[0]) && other.corners.contains(&edge[1]) {
                        *reach = Reach::In;
                    }
                }
            }
            self.reach.push(reach);
        }
    }

    /// Lists the quads whose circle meets the view, in draw order.
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

/// Colours as the road layer adds them: R, G, B, coverage.
struct Palette {
    stripes: [[f32; 4]; 3],
}

impl Palette {
    fn new(colors: &Colors) -> Self {
        // The reference adds 2.55 per stripe and cuts to integers when it draws.
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
