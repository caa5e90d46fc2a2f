//! The world rendered for people: any size, smooth edges, square pixels.
//!
//! The camera is that of Gymnasium's `CarRacing-v3`. The colours are softer, the road has painted lines, the
//! car a shadow and a driver, and a dark strip holds the instruments: the score, the speed (marks every 25
//! units per second), the wheel speeds (front blue, rear violet), the steering (green) and the spin (red);
//! both point right for a right turn. Agents never receive this picture.

mod car;
mod hud;
mod land;
mod lens;

use foveate_core::ImageBuf;
use lens::Lens;

use crate::canvas::{Canvas, Ink};
use crate::car_racing::scene::Scene;

/// Draws `scene` into all of `view`, at any size. Small pictures have no instruments.
pub fn draw(scene: &Scene<'_>, view: &mut ImageBuf) {
    if view.width() == 0 || view.height() == 0 {
        return;
    }
    let mut canvas = Canvas::new(view);
    let [width, height] = canvas.size();
    let lens = Lens::new(scene, [width, height], hud::strip_height([width, height]));
    land::ground(scene, &lens, &mut canvas);
    land::road(scene, &lens, &mut canvas);
    car::draw(scene, &lens, &mut canvas);
    let bar = (scene.side_bars / 1000.0) as f32 * width;
    if bar > 0.0 {
        for (left, right) in [(0.0, bar), (width - bar, width)] {
            canvas.fill(&[[left, 0.0], [right, 0.0], [right, height], [left, height]], Ink::new([0; 3]));
        }
    }
    hud::draw(scene, &mut canvas);
}
