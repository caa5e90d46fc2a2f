//! Index of the road: positions of all pieces, computed once per track.

use super::canvas::{Canvas, Point};
use super::{View, WORLD_ROWS, paint};
use crate::car_racing::picture::SIDE;
use crate::car_racing::scene::{RoadQuad, Scene};

/// Centres and extents of the road's pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct RoadIndex {
    /// Identifies the road: number of the reset, number of pieces, and one corner.
    track: Option<(u64, usize, [u64; 2])>,
    pieces: Vec<Piece>,
    /// Largest distance of a corner from its piece's centre.
    reach: f64,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    centre: Point,
    convex: bool,
}

impl RoadIndex {
    /// Rebuilds the index when the scene has another road.
    pub(super) fn update(&mut self, scene: &Scene<'_>) {
        let corner = scene.road.last().map_or([0; 2], |quad| quad.corners[0].map(f64::to_bits));
        let track = Some((scene.track_id, scene.road.len(), corner));
        if self.track == track {
            return;
        }
        self.track = track;
        self.pieces.clear();
        self.reach = 0.0;
        for quad in scene.road {
            let corners = &quad.corners;
            let centre = [0, 1].map(|i| corners.iter().map(|corner| corner[i]).sum::<f64>() / 4.0);
            for corner in corners {
                let (dx, dy) = (corner[0] - centre[0], corner[1] - centre[1]);
                self.reach = self.reach.max((dx * dx + dy * dy).sqrt());
            }
            self.pieces.push(Piece { centre, convex: is_convex(corners) });
        }
    }

    /// Draws the visible pieces, in order.
    pub(super) fn draw(&self, scene: &Scene<'_>, view: &View, canvas: &mut Canvas) {
        let margin = view.scale.map(|scale| scale * self.reach);
        for (quad, piece) in scene.road.iter().zip(&self.pieces) {
            let [x, y] = view.pixel(piece.centre);
            let visible = x > -margin[0]
                && x < SIDE as f64 + margin[0]
                && y > -margin[1]
                && y < WORLD_ROWS as f64 + margin[1];
            if visible {
                draw_quad(quad, piece.convex, scene, view, canvas);
            }
        }
    }
}

fn draw_quad(quad: &RoadQuad, convex: bool, scene: &Scene<'_>, view: &View, canvas: &mut Canvas) {
    let color = paint(quad.paint, &scene.colors);
    let [a, b, c, d] = quad.corners.map(|corner| view.pixel(corner));
    if convex {
        canvas.fill(&[a, b, c, d], color);
    } else {
        // OpenGL does not define the result for such a quad; drivers split it along a diagonal, Mesa along
        // this one.
        canvas.fill(&[a, b, d], color);
        canvas.fill(&[b, c, d], color);
    }
}

/// Returns whether all corners turn the same way.
fn is_convex(corners: &[Point; 4]) -> bool {
    let turns = [0, 1, 2, 3].map(|i| {
        let (a, b, c) = (corners[i], corners[(i + 1) % 4], corners[(i + 2) % 4]);
        (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])
    });
    turns.iter().all(|&turn| turn >= 0.0) || turns.iter().all(|&turn| turn <= 0.0)
}
