//! Planes: their visibility, their texture, and their light, which OpenGL computes at the points of a grid and interpolates.

use crate::lanes::{
    LANES, V3, Wide, Wide3, Words, add, clamp01, cross, dot, floor, mask, max, min, pack, scale, select, sub,
};
use crate::layer::any;
use crate::light::{Lamps, MAX_SHADOWS, Paint, lit, to_viewer};
use crate::solid::Ends;
use crate::view::{Polygon, View, mirror_direction, mirror_point};
use crate::{Checker, Geom};

/// A plane in the camera's frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plane {
    /// Its centre.
    pub(crate) at: V3,
    /// Its axes; the last is its normal.
    pub(crate) axes: [V3; 3],
    /// Half its sides.
    size: [f32; 2],
    grid: [Grid; 2],
    pub(crate) paint: Paint,
    texture: Option<Texture>,
    /// Side of a pixel at depth 1.
    pixel: f32,
    /// How much it mirrors.
    pub(crate) reflectance: f32,
    /// True if it is drawn after all else.
    pub(crate) transparent: bool,
    /// How much of what is behind it, it hides: 256 for all.
    pub(crate) opacity: u32,
}

/// The lines of the grid along one axis: a margin, cells of one width, a margin.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Grid {
    half: f32,
    margin: f32,
    cell: f32,
    cells: f32,
}

impl Grid {
    fn new(half: f32, spacing: f32) -> Grid {
        let q = spacing.max(half / 198.0);
        let cells = (half / q).floor();
        let cells = cells - cells % 2.0;
        Grid { half, margin: (half - cells * q).max(0.0), cell: 2.0 * q, cells }
    }

    /// The number of the cell that holds a coordinate: 0 for the first margin.
    #[inline(always)]
    fn number(&self, at: f32) -> f32 {
        let beyond = at + (self.half - self.margin);
        let number = floor(beyond * (1.0 / self.cell)) + 1.0;
        let last = self.cells + select(self.margin > 0.0, 1.0, 0.0);
        max(min(number, last), select(self.margin > 0.0, 0.0, 1.0))
    }

    /// Start and width of a cell.
    fn cell(&self, number: f32) -> (f32, f32) {
        if number < 1.0 {
            (-self.half, self.margin)
        } else if number > self.cells {
            (self.half - self.margin, self.margin)
        } else {
            (self.margin - self.half + (number - 1.0) * self.cell, self.cell)
        }
    }
}

/// A checker, ready to be filtered.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Texture {
    first: V3,
    second: V3,
    border: V3,
    /// Half the width of the border, in periods.
    border_half: f32,
    texels: f32,
    /// Periods per metre along the axes.
    per_metre: [f32; 2],
    /// Periods at the centre.
    offset: [f32; 2],
}

impl Texture {
    fn new(checker: &Checker, size: [f32; 2]) -> Texture {
        let colour = |bytes: [u8; 3]| bytes.map(|byte| f32::from(byte) / 255.0);
        let repeat = checker.repeat.map(|r| if r.abs() < 1e4 { r } else { 1.0 });
        let per_metre =
            [0, 1].map(|k| if checker.uniform { 0.5 * repeat[k] } else { 0.5 * repeat[k] / size[k] });
        let texels = checker.texels.clamp(1, 16384) as f32;
        Texture {
            first: colour(checker.first),
            second: colour(checker.second),
            border: colour(checker.border.unwrap_or(checker.second)),
            border_half: if checker.border.is_some() { 1.0 / texels } else { 0.0 },
            texels,
            // The second axis of the texture runs against the plane's.
            per_metre: [per_metre[0], -per_metre[1]],
            offset: [per_metre[0] * size[0], per_metre[1] * size[1]],
        }
    }
}

/// A cell of a grid, split along a diagonal: the light on each half is linear.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaneCell {
    /// The plane and the cell's numbers on it.
    key: [u32; 3],
    origin: [f32; 2],
    /// One over the width.
    inverse: [f32; 2],
    /// `[pass, half, channel]`: the light at the origin, and what it gains per metre along x and y.
    light: [[[V3; 3]; 2]; 1 + MAX_SHADOWS],
}

/// Cells computed for this picture.
#[derive(Debug, Clone)]
pub(crate) struct Cells(Vec<PlaneCell>);

impl Cells {
    const COUNT: usize = 512;

    pub(crate) fn new() -> Cells {
        let cell = PlaneCell {
            key: [u32::MAX; 3],
            origin: [0.0; 2],
            inverse: [0.0; 2],
            light: [[[[0.0; 3]; 3]; 2]; 1 + MAX_SHADOWS],
        };
        Cells(vec![cell; Self::COUNT])
    }

    /// Forgets all cells.
    pub(crate) fn clear(&mut self) {
        for cell in &mut self.0 {
            cell.key = [u32::MAX; 3];
        }
    }

    /// Where a cell is kept.
    #[inline(always)]
    fn slot(key: [u32; 3]) -> usize {
        let mixed = key[0]
            .wrapping_mul(97)
            .wrapping_add(key[1].wrapping_mul(13))
            .wrapping_add(key[2].wrapping_mul(31));
        mixed as usize % Self::COUNT
    }
}

impl Plane {
    /// `None` for a plane that is not drawn.
    pub(crate) fn new(geom: &Geom, view: &View) -> Option<Plane> {
        let size = [geom.size[0], geom.size[1]];
        let at = view.place(geom.position);
        let axes = view.turn_axes(&geom.rotation);
        let sound = at.iter().chain(axes.iter().flatten()).all(|x| x.abs() < 1e8);
        if !sound || !size.iter().all(|&s| s > 1e-6 && s < 1e7) {
            return None;
        }
        let behind = dot(axes[2], at) > 0.0;
        let alpha = clamp01(geom.rgba[3]) * if behind { 0.3 } else { 1.0 };
        // OpenGL mixes what is less opaque than this.
        let transparent = geom.transparent || geom.rgba[3] < 0.995 || behind;
        let opacity = if transparent {
            // OpenGL draws it twice.
            (256.0 * (1.0 - (1.0 - alpha) * (1.0 - alpha)) + 0.5) as u32
        } else {
            256
        };
        let spacing = if geom.size[2] > 0.0 && geom.size[2] < 1e8 { geom.size[2] } else { 0.0 };
        Some(Plane {
            at,
            axes,
            size,
            grid: size.map(|half| Grid::new(half, spacing)),
            paint: Paint::new(geom),
            texture: geom.texture.map(|checker| Texture::new(&checker, size)),
            pixel: view.pixel,
            reflectance: clamp01(geom.reflectance),
            transparent,
            opacity,
        })
    }

    /// Its image in another plane, dimmed by that plane's reflectance; `None` when that sees its back.
    pub(crate) fn mirrored(&self, mirror: &Plane) -> Option<Plane> {
        let normal = mirror.axes[2];
        let plane = Plane {
            at: mirror_point(self.at, mirror.at, normal),
            axes: self.axes.map(|axis| mirror_direction(axis, normal)),
            paint: self.paint.dimmed(mirror.reflectance),
            ..*self
        };
        (dot(plane.axes[2], plane.at) < 0.0).then_some(plane)
    }

    /// Its picture.
    pub(crate) fn polygon(&self, view: &View) -> Polygon {
        let corner = |x: f32, y: f32| add(self.at, add(scale(self.axes[0], x), scale(self.axes[1], y)));
        let [x, y] = self.size;
        Polygon::new(view, [corner(-x, -y), corner(x, -y), corner(x, y), corner(-x, y)])
    }

    /// Returns whether the rectangle around two circles in its plane touches it.
    pub(crate) fn is_touched_by(&self, circles: Ends) -> bool {
        (0..2).all(|k| {
            let [a, b] = circles.centres.map(|centre| dot(self.axes[k], sub(centre, self.at)));
            let reach = self.size[k] + circles.radius;
            !(a.min(b) > reach || a.max(b) < -reach)
        })
    }

    /// The picture of a rectangle on it around two circles.
    pub(crate) fn around(&self, circles: Ends, view: &View) -> Polygon {
        let [a, b] = circles.centres;
        let (way, radius) = (sub(b, a), circles.radius);
        let length = dot(way, way).sqrt();
        let along = if length > 1e-6 { scale(way, radius / length) } else { scale(self.axes[0], radius) };
        let across = cross(self.axes[2], along);
        let corners = [
            sub(sub(a, along), across),
            sub(add(b, along), across),
            add(add(b, along), across),
            add(sub(a, along), across),
        ];
        Polygon::new(view, corners)
    }

    /// The radius of a sphere around its centre that holds it.
    pub(crate) fn radius(&self) -> f32 {
        (self.size[0] * self.size[0] + self.size[1] * self.size[1]).sqrt()
    }

    /// The depth at which the rays through the pixels (x, y) hit; NaN where they do not.
    #[inline(always)]
    pub(crate) fn depth(&self, x: &Wide, y: &Wide) -> Wide {
        let [ax, ay, n] = self.axes;
        let (away, ox, oy) = (dot(n, self.at), dot(ax, self.at), dot(ay, self.at));
        let mut depth = [0.0; LANES];
        for i in 0..LANES {
            let t = away / (n[0] * x[i] + (n[1] * y[i] + n[2]));
            let lx = t * (ax[0] * x[i] + (ax[1] * y[i] + ax[2])) - ox;
            let ly = t * (ay[0] * x[i] + (ay[1] * y[i] + ay[2])) - oy;
            let inside = (lx.abs() <= self.size[0]) & (ly.abs() <= self.size[1]);
            depth[i] = select(inside, t, f32::NAN);
        }
        depth
    }

    /// The light on a cell, computed for all passes.
    #[inline(always)]
    fn cell<'a>(
        &self,
        number: [f32; 2],
        index: u32,
        lamps: &Lamps<'_>,
        cells: &'a mut Cells,
    ) -> &'a PlaneCell {
        let key = [index, number[0] as u32, number[1] as u32];
        let cell = &mut cells.0[Cells::slot(key)];
        if cell.key == key {
            return cell;
        }
        cell.key = key;
        let (x, width) = self.grid[0].cell(number[0]);
        let (y, height) = self.grid[1].cell(number[1]);
        cell.origin = [x, y];
        cell.inverse = [1.0 / width, 1.0 / height];
        // Its corners: (x, y), (x1, y), (x, y1), (x1, y1).
        let (mut p, mut n) = ([[0.0; LANES]; 3], [[0.0; LANES]; 3]);
        for i in 0..LANES {
            let lx = x + if i & 1 == 1 { width } else { 0.0 };
            let ly = y + if i & 2 == 2 { height } else { 0.0 };
            for k in 0..3 {
                p[k][i] = self.at[k] + (self.axes[0][k] * lx + self.axes[1][k] * ly);
                n[k][i] = self.axes[2][k];
            }
        }
        let v = to_viewer(&p);
        for pass in 0..=lamps.shadow.len() {
            let colour = if pass == 0 {
                lit(lamps.plain, &self.paint, &p, &v, &n)
            } else {
                lit(&lamps.shadow[pass - 1..pass], &self.paint.unlit(), &p, &v, &n)
            };
            for c in 0..3 {
                let v = &colour[c];
                let near = [(v[1] - v[0]) * cell.inverse[0], (v[2] - v[0]) * cell.inverse[1]];
                let far = [(v[3] - v[2]) * cell.inverse[0], (v[3] - v[1]) * cell.inverse[1]];
                cell.light[pass][0][c] = [v[0], near[0], near[1]];
                cell.light[pass][1][c] = [v[3] - far[0] * width - far[1] * height, far[0], far[1]];
            }
        }
        cell
    }

    /// Its colours at the pixels (x, y) with these depths, for every pass.
    #[inline(always)]
    pub(crate) fn colours(
        &self,
        index: u32,
        lamps: &Lamps<'_>,
        cells: &mut Cells,
        at: (&Wide, &Wide, &Wide),
        colours: &mut [Words; 1 + MAX_SHADOWS],
    ) {
        let (x, y, depth) = at;
        let [ax, ay, n] = self.axes;
        let (ox, oy) = (dot(ax, self.at), dot(ay, self.at));
        let (mut lx, mut ly) = ([0.0; LANES], [0.0; LANES]);
        let (mut cx, mut cy) = ([0.0; LANES], [0.0; LANES]);
        for i in 0..LANES {
            let px = depth[i] * (ax[0] * x[i] + (ax[1] * y[i] + ax[2])) - ox;
            let py = depth[i] * (ay[0] * x[i] + (ay[1] * y[i] + ay[2])) - oy;
            // Beside the plane, where the depth is that of something else.
            lx[i] = max(min(px, self.size[0]), -self.size[0]);
            ly[i] = max(min(py, self.size[1]), -self.size[1]);
            cx[i] = self.grid[0].number(lx[i]);
            cy[i] = self.grid[1].number(ly[i]);
        }
        let texture = self.texture(x, y, depth, &lx, &ly, n);
        let passes = 1 + lamps.shadow.len();
        let mut light = [[[0.0; LANES]; 3]; 1 + MAX_SHADOWS];
        let mut same = true;
        for i in 1..LANES {
            same &= (cx[i] == cx[0]) & (cy[i] == cy[0]);
        }
        if same {
            let cell = self.cell([cx[0], cy[0]], index, lamps, cells);
            let (mut far, mut dx, mut dy) = ([false; LANES], [0.0; LANES], [0.0; LANES]);
            for i in 0..LANES {
                dx[i] = lx[i] - cell.origin[0];
                dy[i] = ly[i] - cell.origin[1];
                far[i] = dx[i] * cell.inverse[0] + dy[i] * cell.inverse[1] > 1.0;
            }
            for pass in 0..passes {
                for c in 0..3 {
                    let [a, b] = [cell.light[pass][0][c], cell.light[pass][1][c]];
                    for i in 0..LANES {
                        let near_light = a[0] + (a[1] * dx[i] + a[2] * dy[i]);
                        let far_light = b[0] + (b[1] * dx[i] + b[2] * dy[i]);
                        light[pass][c][i] = select(far[i], far_light, near_light);
                    }
                }
            }
        } else {
            for i in 0..LANES {
                let cell = self.cell([cx[i], cy[i]], index, lamps, cells);
                let (dx, dy) = (lx[i] - cell.origin[0], ly[i] - cell.origin[1]);
                let half = usize::from(dx * cell.inverse[0] + dy * cell.inverse[1] > 1.0);
                for pass in 0..passes {
                    for c in 0..3 {
                        let a = cell.light[pass][half][c];
                        light[pass][c][i] = a[0] + (a[1] * dx + a[2] * dy);
                    }
                }
            }
        }
        for pass in 0..passes {
            for i in 0..LANES {
                let c = [0, 1, 2].map(|c| clamp01(light[pass][c][i] * texture[c][i]));
                colours[pass][i] = pack(c[0], c[1], c[2]);
            }
        }
    }

    /// The texture at points (lx, ly), filtered over the pixel.
    #[inline(always)]
    fn texture(&self, x: &Wide, y: &Wide, depth: &Wide, lx: &Wide, ly: &Wide, n: V3) -> Wide3 {
        let Some(texture) = self.texture else { return [[1.0; LANES]; 3] };
        let [ax, ay, _] = self.axes;
        let [ku, kv] = texture.per_metre;
        let mut rgb = [[0.0; LANES]; 3];
        let (mut u, mut v, mut blend) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        // Texels along a side of the two mipmaps that are mixed.
        let (mut fine_side, mut coarse_side) = ([0.0; LANES], [0.0; LANES]);
        for i in 0..LANES {
            let inverse = 1.0 / (n[0] * x[i] + (n[1] * y[i] + n[2]));
            let along = ax[0] * x[i] + (ax[1] * y[i] + ax[2]);
            let across = ay[0] * x[i] + (ay[1] * y[i] + ay[2]);
            let (gx, gy) = (n[0] * inverse, n[1] * inverse);
            let change_u = max((ax[0] - gx * along).abs(), (ax[1] - gy * along).abs());
            let change_v = max((ay[0] - gx * across).abs(), (ay[1] - gy * across).abs());
            let rho =
                depth[i] * max(change_u * ku.abs(), change_v * kv.abs()) * (texture.texels * self.pixel);
            // The size of the mipmap's texels, and how much the next one is mixed in.
            let level = max(rho, 1.0);
            let octave = f32::from_bits(level.to_bits() & 0x7f80_0000);
            let m = f32::from_bits(level.to_bits() & 0x007f_ffff | 0x3f80_0000);
            blend[i] = FIT[0] + m * (FIT[1] + m * (FIT[2] + m * FIT[3]));
            let side = texture.texels * (1.0 / octave);
            fine_side[i] = max(floor(side), 1.0);
            coarse_side[i] = max(floor(0.5 * side), 1.0);
            let (along, across) = (texture.offset[0] + lx[i] * ku, texture.offset[1] + ly[i] * kv);
            u[i] = along - floor(along);
            v[i] = across - floor(across);
        }
        let mut at_edges = [0; LANES];
        for i in 0..LANES {
            // Half a window of the coarser mipmap, and the border.
            let reach = 1.5 / coarse_side[i] + texture.border_half;
            at_edges[i] = mask(min(to_edge(u[i]), to_edge(v[i])) <= reach);
        }
        if !any(&at_edges) {
            // Every pixel is within one field.
            for i in 0..LANES {
                let first = (u[i] < 0.5) == (v[i] < 0.5);
                for c in 0..3 {
                    rgb[c][i] = select(first, texture.first[c], texture.second[c]);
                }
            }
            return rgb;
        }
        for i in 0..LANES {
            let fine = mipmap(u[i], v[i], fine_side[i], texture.border_half);
            let coarse = mipmap(u[i], v[i], coarse_side[i], texture.border_half);
            let first = fine.0 + (coarse.0 - fine.0) * blend[i];
            let border = fine.1 + (coarse.1 - fine.1) * blend[i];
            for c in 0..3 {
                let fields = texture.second[c] + (texture.first[c] - texture.second[c]) * first;
                rgb[c][i] = fields + (texture.border[c] - fields) * border;
            }
        }
        rgb
    }
}

/// How far a place in a period, from 0 to 1, is from the next edge of a field.
#[inline(always)]
fn to_edge(u: f32) -> f32 {
    min(min(u, (u - 0.5).abs()), 1.0 - u)
}

/// log2(m) for m from 1 to 2, within 2e-3: a least-squares fit.
const FIT: [f32; 4] = [-2.133_848, 3.010_784, -1.029_522, 0.153_918_48];

/// How much of a point in a mipmap of `side` texels has the first colour, and how much the border's.
#[inline(always)]
fn mipmap(u: f32, v: f32, side: f32, border_half: f32) -> (f32, f32) {
    let inverse = 1.0 / side;
    let ((fu, eu), (fv, ev)) = (fields(u, side, inverse, border_half), fields(v, side, inverse, border_half));
    (fu * fv + (1.0 - fu) * (1.0 - fv), 1.0 - (1.0 - eu) * (1.0 - ev))
}

/// Along one axis: how much lies in the first half of a period, and how much in the border. Texels are means, and between
/// their centres their values are interpolated.
#[inline(always)]
fn fields(u: f32, side: f32, inverse: f32, border_half: f32) -> (f32, f32) {
    let at = u * side - 0.5;
    let texel = floor(at);
    let part = at - texel;
    // The weight of everything up to a point: two texels, whose windows have three ends. With two texels or more, the first is
    // at -1/2 or above, the second from 0 to 1, the last from 0 to 3/2.
    let [x0, x1, x2] = [texel * inverse, (texel + 1.0) * inverse, (texel + 2.0) * inverse];
    let f = [min(max(x0, 0.0), 0.5), min(x1, 0.5), min(x2, 0.5) + max(x2 - 1.0, 0.0)];
    let (near, far) = (border_half, 1.0 - border_half);
    let b = [
        min(max(x0, -near), near) + max(x0 - far, 0.0),
        min(x1, near) + max(x1 - far, 0.0),
        min(x2, near) + min(max(x2 - far, 0.0), 2.0 * near),
    ];
    let mix = |x: [f32; 3]| ((x[1] - x[0]) + ((x[2] - x[1]) - (x[1] - x[0])) * part) * side;
    // A single texel is the mean of all.
    let single = side < 2.0;
    (select(single, 0.5, mix(f)), select(single, min(2.0 * near, 1.0), mix(b)))
}
