//! The picture of the sky.

use foveate_kernels::plain::Plain;

use crate::CubeMap;
use crate::lanes::{LANES, V3, Wide, Words, floor, max, min, mix_bytes, select, select_word};
use crate::view::View;

/// Draws the sky into rows of blocks.
pub(crate) struct DrawSky<'a> {
    pub(crate) map: &'a CubeMap,
    pub(crate) view: &'a View,
    pub(crate) columns: &'a [Wide],
    pub(crate) picture: &'a mut [Words],
}

impl Plain for DrawSky<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let DrawSky { map, view, columns, picture } = self;
        let [right, up, forward] = view.axes.map(swap);
        let scale = 0.5 * view.pixel * map.side() as f32;
        for (y, row) in picture.chunks_exact_mut(columns.len()).enumerate() {
            let ry = view.ray_y(y as f32 + 0.5);
            let begin: V3 = std::array::from_fn(|k| ry * up[k] + forward[k]);
            for (rx, pixels) in columns.iter().zip(row) {
                let mut d = [[0.0; LANES]; 3];
                for k in 0..3 {
                    for i in 0..LANES {
                        d[k][i] = rx[i] * right[k] + begin[k];
                    }
                }
                let faces = Faces::of(&d);
                let [s, t, m] = faces.along(&d);
                let [along_right, along_up] =
                    [right, up].map(|v| faces.along(&v.map(|component| [component; LANES])));
                let (mut rho, mut at) = ([0.0; LANES], [[0.0; LANES]; 2]);
                for i in 0..LANES {
                    let inverse = 1.0 / m[i];
                    // How far neighbouring pixels are apart on the face.
                    for [ds, dt, dm] in [&along_right, &along_up] {
                        let ds = (ds[i] - s[i] * inverse * dm[i]) * inverse;
                        let dt = (dt[i] - t[i] * inverse * dm[i]) * inverse;
                        rho[i] = max(rho[i], max(ds.abs(), dt.abs()));
                    }
                    rho[i] *= scale;
                    at[0][i] = (s[i] * inverse + 1.0) * 0.5;
                    at[1][i] = (t[i] * inverse + 1.0) * 0.5;
                }
                *pixels = sample(map, &faces.face, &at, &rho);
            }
        }
    }
}

/// From a scene's axes, with z up, to OpenGL's, with y up.
fn swap(v: V3) -> V3 {
    [v[0], v[2], -v[1]]
}

/// The faces that directions meet.
struct Faces {
    face: Words,
    /// Whether it is one across x, across y.
    x: [bool; LANES],
    y: [bool; LANES],
    /// 1, or -1 on the side of negative numbers.
    sign: Wide,
}

impl Faces {
    #[inline(always)]
    fn of(d: &[Wide; 3]) -> Faces {
        let mut faces = Faces { face: [0; LANES], x: [false; LANES], y: [false; LANES], sign: [0.0; LANES] };
        for i in 0..LANES {
            let [x, y, z] = [d[0][i].abs(), d[1][i].abs(), d[2][i].abs()];
            let is_x = (x >= y) & (x >= z);
            let is_y = !is_x & (y >= z);
            let main = select(is_x, d[0][i], select(is_y, d[1][i], d[2][i]));
            faces.x[i] = is_x;
            faces.y[i] = is_y;
            faces.sign[i] = select(main < 0.0, -1.0, 1.0);
            faces.face[i] = select_word(is_x, 0, select_word(is_y, 2, 4)) + u32::from(main < 0.0);
        }
        faces
    }

    /// Vectors along the faces: s to the right, t down, and outwards. OpenGL 4.6, table 8.19.
    #[inline(always)]
    fn along(&self, d: &[Wide; 3]) -> [Wide; 3] {
        let mut along = [[0.0; LANES]; 3];
        for i in 0..LANES {
            let ([x, y, z], sign) = ([d[0][i], d[1][i], d[2][i]], self.sign[i]);
            along[0][i] = select(self.x[i], -sign * z, select(self.y[i], x, sign * x));
            along[1][i] = select(self.y[i], sign * z, -y);
            along[2][i] = sign * select(self.x[i], x, select(self.y[i], y, z));
        }
        along
    }
}

/// The texture at points of faces, from 0 to 1 each, where pixels are `rho` texels wide.
#[inline(always)]
fn sample(map: &CubeMap, face: &Words, at: &[Wide; 2], rho: &Wide) -> Words {
    let last = map.levels() - 1;
    let (mut level, mut part) = ([0; LANES], [0; LANES]);
    let mut coarse = 0;
    for i in 0..LANES {
        let exact = log2(max(rho[i], 1.0));
        let whole = floor(exact);
        level[i] = whole_number(whole).min(last as u32);
        part[i] = select_word(level[i] == last as u32, 0, in_256ths(exact - whole));
        coarse |= part[i];
    }
    let fine = bilinear(map, &level, face, at);
    if coarse == 0 {
        return fine;
    }
    for level in &mut level {
        *level = (*level + 1).min(last as u32);
    }
    let coarse = bilinear(map, &level, face, at);
    let mut mixed = [0; LANES];
    for i in 0..LANES {
        mixed[i] = mix_bytes(fine[i], coarse[i], part[i]);
    }
    mixed
}

#[inline(always)]
fn bilinear(map: &CubeMap, level: &Words, face: &Words, at: &[Wide; 2]) -> Words {
    let (mut low, mut high, mut part) = ([[0; LANES]; 2], [[0; LANES]; 2], [[0; LANES]; 2]);
    let mut side = [0; LANES];
    for i in 0..LANES {
        side[i] = map.side() as u32 >> level[i];
    }
    for k in 0..2 {
        for i in 0..LANES {
            let last = side[i] as f32 - 1.0;
            let x = at[k][i] * side[i] as f32 - 0.5;
            let whole = floor(x);
            low[k][i] = whole_number(min(max(whole, 0.0), last));
            high[k][i] = whole_number(min(max(whole + 1.0, 0.0), last));
            part[k][i] = in_256ths(x - whole);
        }
    }
    let mut corners = [[0; LANES]; 4];
    for i in 0..LANES {
        let texels = map.face(level[i] as usize, face[i] as usize);
        let rows = [low[1][i], high[1][i]].map(|y| (y * side[i]) as usize);
        let columns = [low[0][i] as usize, high[0][i] as usize];
        for (k, corner) in corners.iter_mut().enumerate() {
            corner[i] = texels[rows[k / 2] + columns[k % 2]];
        }
    }
    let mut mixed = [0; LANES];
    for i in 0..LANES {
        let top = mix_bytes(corners[0][i], corners[1][i], part[0][i]);
        let bottom = mix_bytes(corners[2][i], corners[3][i], part[0][i]);
        mixed[i] = mix_bytes(top, bottom, part[1][i]);
    }
    mixed
}

/// The number that is not above x, for x from 0 to 2^22.
#[inline(always)]
fn whole_number(x: f32) -> u32 {
    (floor(x) + 8_388_608.0).to_bits() & 0x003f_ffff
}

/// A share in 256ths; NaN becomes 0.
#[inline(always)]
fn in_256ths(x: f32) -> u32 {
    whole_number(min(max(x * 256.0, 0.0), 256.0))
}

/// The logarithm to base 2 of a number of at least 1, within 3e-6 and rounding: the exponent, and a polynomial of the rest that is 0
/// and 1 at its ends, so that neighbouring exponents meet.
#[inline(always)]
fn log2(x: f32) -> f32 {
    let bits = x.to_bits();
    let exponent = (bits >> 23 & 0xff) as f32 - 127.0;
    let y = f32::from_bits(bits & 0x007f_ffff | 0x3f80_0000) - 1.0;
    let mut rest = 0.025_841_44;
    for factor in [-0.095_956_45, 0.181_948_88, -0.275_600_3, 0.442_544_94] {
        rest = rest * y + factor;
    }
    exponent + (y + y * (1.0 - y) * rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_near() {
        let mut x = 1.0_f32;
        while x < 1e6 {
            assert!((f64::from(log2(x)) - f64::from(x).log2()).abs() < 6e-6, "{x}");
            x *= 1.001;
        }
        assert_eq!([1.0, 2.0, 4.0, 1024.0].map(log2), [0.0, 1.0, 2.0, 10.0]);
    }

    #[test]
    fn directions_meet_the_faces_of_opengl() {
        // Outwards, to the right and down, of every face: OpenGL 4.6, table 8.19.
        let faces = [
            [[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, -1.0, 0.0]],
            [[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]],
            [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
            [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]],
            [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]],
            [[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]],
        ];
        for (face, [out, right, down]) in (0..).zip(faces) {
            let d: V3 = std::array::from_fn(|k| 2.0 * out[k] + 0.5 * right[k] - 0.25 * down[k]);
            let wide = d.map(|component| [component; LANES]);
            let faces = Faces::of(&wide);
            assert_eq!(faces.face, [face; LANES]);
            assert_eq!(faces.along(&wide).map(|lanes| lanes[0]), [0.5, -0.25, 2.0], "{face}");
        }
    }
}
