//! The picture of the sky.

use crate::CubeMap;
use crate::lanes::{V3, add_bytes, mix_bytes};
use crate::view::View;

/// Draws the sky into rows of `stride` pixels.
pub(crate) fn draw(map: &CubeMap, view: &View, stride: usize, picture: &mut [u32]) {
    let [right, up, forward] = view.axes.map(swap);
    let step = view.pixel;
    for (y, row) in picture.chunks_exact_mut(stride).enumerate() {
        let ry = view.ray_y(y as f32 + 0.5);
        for (x, pixel) in row.iter_mut().enumerate().take(view.width) {
            let rx = view.ray_x(x as f32 + 0.5);
            let d: V3 = std::array::from_fn(|k| rx * right[k] + (ry * up[k] + forward[k]));
            let (face, [s, t, m]) = face_of(d);
            let inverse = 1.0 / m;
            // How far neighbouring pixels are apart on the face, in faces.
            let change = |along: V3| {
                let [ds, dt, dm] = in_face(face, along);
                let change = |a: f32, da: f32| ((da - a * inverse * dm) * inverse * 0.5 * step).abs();
                change(s, ds).max(change(t, dt))
            };
            let rho = change(right).max(change(up)) * map.side() as f32;
            let at = [(s * inverse + 1.0) * 0.5, (t * inverse + 1.0) * 0.5];
            *pixel = sample(map, face, at, rho);
        }
    }
}

/// From a scene's axes, with z up, to OpenGL's, with y up.
fn swap(v: V3) -> V3 {
    [v[0], v[2], -v[1]]
}

/// The face that a direction meets, and the direction along that face: s to the right, t down, and outwards.
fn face_of(d: V3) -> (usize, V3) {
    let [x, y, z] = d.map(f32::abs);
    let face = if x >= y && x >= z {
        usize::from(d[0] < 0.0)
    } else if y >= z {
        2 + usize::from(d[1] < 0.0)
    } else {
        4 + usize::from(d[2] < 0.0)
    };
    (face, in_face(face, d))
}

/// A vector along a face: s, t and outwards. OpenGL 4.6, table 8.19.
fn in_face(face: usize, d: V3) -> V3 {
    let [x, y, z] = d;
    match face {
        0 => [-z, -y, x],
        1 => [z, -y, -x],
        2 => [x, z, y],
        3 => [x, -z, -y],
        4 => [x, -y, z],
        _ => [-x, -y, -z],
    }
}

/// The texture at a point of a face, from 0 to 1 each, where pixels are `rho` texels wide.
fn sample(map: &CubeMap, face: usize, at: [f32; 2], rho: f32) -> u32 {
    let level = rho.max(1.0).log2();
    let last = map.levels() - 1;
    let whole = (level as usize).min(last);
    let part = ((level - level.floor()) * 256.0) as u32;
    let fine = bilinear(map, whole, face, at);
    if part == 0 || whole == last {
        return fine;
    }
    mix_bytes(fine, bilinear(map, whole + 1, face, at), part)
}

fn bilinear(map: &CubeMap, level: usize, face: usize, at: [f32; 2]) -> u32 {
    let side = map.side() >> level;
    let texels = map.face(level, face);
    let place = |x: f32| {
        let x = x * side as f32 - 0.5;
        let whole = x.floor();
        let low = (whole.max(0.0) as usize).min(side - 1);
        let high = ((whole + 1.0).max(0.0) as usize).min(side - 1);
        (low, high, ((x - whole) * 256.0) as u32)
    };
    let ((x0, x1, px), (y0, y1, py)) = (place(at[0]), place(at[1]));
    let top = mix_bytes(texels[y0 * side + x0], texels[y0 * side + x1], px);
    let bottom = mix_bytes(texels[y1 * side + x0], texels[y1 * side + x1], px);
    add_bytes(mix_bytes(top, bottom, py), 0)
}
