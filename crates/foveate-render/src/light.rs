//! Lights in the camera's frame, and what they add to a surface: the fixed-function formulas of OpenGL.

use crate::lanes::{LANES, V3, Wide3, Words, clamp01, cross, dot, mask, max, pack, power, select, sub, unit};
use crate::solid::Ends;
use crate::view::{View, mirror_direction, mirror_point};
use crate::{Geom, Light, LightKind, ShadowVolume};

/// Lights that cast shadows: OpenGL draws the scene once more for each.
pub(crate) const MAX_SHADOWS: usize = 4;

/// The lights of a picture: those without shadows, which OpenGL adds in one pass, and those with, which take a pass each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lamps<'a> {
    pub(crate) plain: &'a [Lamp],
    pub(crate) shadow: &'a [Lamp],
}

/// A light in the camera's frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lamp {
    kind: LightKind,
    position: V3,
    /// Of its rays.
    direction: V3,
    ambient: V3,
    diffuse: V3,
    specular: V3,
    attenuation: V3,
    cutoff_cos: f32,
    exponent: f32,
    /// Two directions across its own, along the sides of its shadow map.
    across: [V3; 2],
    /// Half the side of the shadow map, at distance 1 for a spot.
    reach: f32,
}

impl Lamp {
    /// `None` for a light that is not finite.
    pub(crate) fn new(light: &Light, view: &View, volume: ShadowVolume) -> Option<Lamp> {
        let direction = unit(light.direction);
        let numbers = [
            light.position,
            direction,
            light.ambient,
            light.diffuse,
            light.specular,
            light.attenuation,
            [light.cutoff_deg, light.exponent, 0.0],
        ];
        if !numbers.iter().flatten().all(|x| x.abs() < 1e8) {
            return None;
        }
        let up = if direction[2].abs() > 0.9 { [0.0, 1.0, 0.0] } else { [0.0, 0.0, 1.0] };
        let side = unit(cross(direction, up));
        let cutoff = light.cutoff_deg.clamp(0.0, 90.0).to_radians();
        Some(Lamp {
            kind: light.kind,
            position: view.place(light.position),
            direction: view.turn(direction),
            ambient: light.ambient,
            diffuse: light.diffuse,
            specular: light.specular,
            attenuation: light.attenuation,
            cutoff_cos: cutoff.cos(),
            exponent: light.exponent.clamp(0.0, 128.0),
            across: [view.turn(side), view.turn(cross(side, direction))],
            reach: match light.kind {
                LightKind::Spot => (cutoff * volume.spot_scale.clamp(0.0, 0.999)).tan(),
                _ => volume.directional_half_side,
            },
        })
    }

    /// The light as seen in a mirror.
    pub(crate) fn mirrored(&self, at: V3, normal: V3) -> Lamp {
        Lamp {
            position: mirror_point(self.position, at, normal),
            direction: mirror_direction(self.direction, normal),
            across: self.across.map(|side| mirror_direction(side, normal)),
            ..*self
        }
    }

    /// The way from points `p` to the light, not of unit length, and how many times it fits.
    #[inline(always)]
    pub(crate) fn way(&self, p: &Wide3) -> (Wide3, f32) {
        let mut way = [[0.0; LANES]; 3];
        if self.kind == LightKind::Directional {
            for k in 0..3 {
                way[k] = [-self.direction[k]; LANES];
            }
            return (way, f32::INFINITY);
        }
        for k in 0..3 {
            for i in 0..LANES {
                way[k][i] = self.position[k] - p[k][i];
            }
        }
        (way, 1.0)
    }

    /// All bits where the shadow map covers a point.
    #[inline(always)]
    pub(crate) fn covers(&self, p: &Wide3) -> Words {
        let spot = self.kind == LightKind::Spot;
        let (l, d, [a, b], reach) = (self.position, self.direction, self.across, self.reach);
        let mut covered = [0; LANES];
        for i in 0..LANES {
            let q = sub([p[0][i], p[1][i], p[2][i]], l);
            let limit = select(spot, reach * dot(q, d), reach);
            covered[i] = mask((dot(q, a).abs() <= limit) & (dot(q, b).abs() <= limit));
        }
        covered
    }

    /// Returns whether a solid between two spheres can cast a shadow on something within `radius` of `centre`.
    pub(crate) fn can_shade(&self, caster: Ends, centre: V3, radius: f32) -> bool {
        // All ways from there to the light are within `radius` of the way from the centre.
        let (origin, way) = match self.kind {
            LightKind::Directional => (centre, self.direction.map(|x| -x * 1e4)),
            _ => (centre, sub(self.position, centre)),
        };
        segments_distance_squared(origin, way, caster.centres[0], sub(caster.centres[1], caster.centres[0]))
            <= (radius + caster.radius) * (radius + caster.radius) * 1.0001 + 1e-12
    }

    /// Two spheres on the plane through `at` that the shadow of a solid lies between; `None` when the shadow may be anywhere,
    /// an empty option when there is none.
    pub(crate) fn shadow_on_plane(&self, caster: Ends, at: V3, normal: V3) -> Shadow {
        let mut centres = [[0.0; 3]; 2];
        let mut largest = 0.0_f32;
        let mut behind = 0;
        for (centre, c) in centres.iter_mut().zip(caster.centres) {
            let height = dot(normal, sub(c, at));
            behind += usize::from(height < -caster.radius);
            if self.kind == LightKind::Directional {
                let fall = dot(normal, self.direction);
                if fall > -0.1 {
                    return Shadow::Anywhere;
                }
                *centre = std::array::from_fn(|k| c[k] - self.direction[k] * height / fall);
                largest = largest.max(caster.radius / -fall);
                continue;
            }
            let light_height = dot(normal, sub(self.position, at));
            let d = sub(c, self.position);
            let square = dot(d, d) - caster.radius * caster.radius;
            let depth = -dot(normal, d);
            if !(light_height > 0.0
                && square > 0.0
                && depth > caster.radius * 1.01
                && depth > 1e-3 * light_height)
            {
                return Shadow::Anywhere;
            }
            let aside = (dot(d, d) / (depth * depth) - 1.0).max(0.0).sqrt();
            let half = caster.radius / square.sqrt();
            let left = 1.0 - aside * half;
            if left < 0.1 {
                return Shadow::Anywhere;
            }
            largest = largest.max(light_height * ((aside + half) / left - aside));
            *centre = std::array::from_fn(|k| self.position[k] + d[k] * light_height / depth);
        }
        if behind == 2 {
            return Shadow::Nowhere;
        }
        Shadow::Between(Ends { centres, radius: largest * 1.001 })
    }
}

/// Where the shadow of a solid lies on a plane.
pub(crate) enum Shadow {
    Nowhere,
    Between(Ends),
    Anywhere,
}

/// The square of the least distance between two segments, each from a point along a vector.
fn segments_distance_squared(p: V3, d: V3, q: V3, e: V3) -> f32 {
    let r = sub(p, q);
    let (dd, ee, de) = (dot(d, d).max(1e-20), dot(e, e).max(1e-20), dot(d, e));
    let (dr, er) = (dot(d, r), dot(e, r));
    let determinant = dd * ee - de * de;
    let mut s =
        if determinant > 1e-6 * dd * ee { ((de * er - dr * ee) / determinant).clamp(0.0, 1.0) } else { 0.0 };
    let t = ((de * s + er) / ee).clamp(0.0, 1.0);
    s = ((de * t - dr) / dd).clamp(0.0, 1.0);
    let between: V3 = std::array::from_fn(|k| r[k] + s * d[k] - t * e[k]);
    dot(between, between)
}

/// What a surface does with light.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Paint {
    pub(crate) rgb: V3,
    emission: f32,
    specular: f32,
    power: f32,
}

impl Paint {
    /// The colour of a geom; numbers out of range are brought into it.
    pub(crate) fn new(geom: &Geom) -> Paint {
        Paint {
            rgb: [0, 1, 2].map(|k| clamp01(geom.rgba[k])),
            emission: clamp01(geom.emission),
            specular: clamp01(geom.specular),
            power: 128.0 * clamp01(geom.shininess),
        }
    }

    /// As seen in a mirror that reflects this part of the light.
    pub(crate) fn dimmed(self, part: f32) -> Paint {
        Paint { rgb: self.rgb.map(|c| c * part), ..self }
    }

    /// Without its emission, for the second and further passes.
    pub(crate) fn unlit(self) -> Paint {
        Paint { emission: 0.0, ..self }
    }
}

/// The unit vectors from points to the viewer, who is at the origin.
#[inline(always)]
pub(crate) fn to_viewer(p: &Wide3) -> Wide3 {
    let mut v = [[0.0; LANES]; 3];
    for i in 0..LANES {
        let q = [p[0][i], p[1][i], p[2][i]];
        let inverse = -1.0 / dot(q, q).sqrt();
        for k in 0..3 {
            v[k][i] = q[k] * inverse;
        }
    }
    v
}

/// What `lamps` add to a surface at points `p` with normals `n`, each channel from 0 to 1. `v` is [`to_viewer`] of the points.
#[inline(always)]
pub(crate) fn lit(lamps: &[Lamp], paint: &Paint, p: &Wide3, v: &Wide3, n: &Wide3) -> Wide3 {
    let mut colour = [[0.0; LANES]; 3];
    for k in 0..3 {
        colour[k] = [paint.rgb[k] * paint.emission; LANES];
    }
    for lamp in lamps {
        let (mut l, _) = lamp.way(p);
        let mut strength = [1.0; LANES];
        if lamp.kind != LightKind::Directional {
            let (a, axis) = (lamp.attenuation, lamp.direction);
            let mut cosine = [1.0; LANES];
            for i in 0..LANES {
                let way = [l[0][i], l[1][i], l[2][i]];
                let distance = dot(way, way).sqrt();
                let inverse = 1.0 / distance;
                for k in 0..3 {
                    l[k][i] = way[k] * inverse;
                }
                cosine[i] = -dot([l[0][i], l[1][i], l[2][i]], axis);
                strength[i] = distance;
            }
            if a[1] == 0.0 && a[2] == 0.0 {
                strength = [1.0 / a[0]; LANES];
            } else {
                for i in 0..LANES {
                    let distance = strength[i];
                    strength[i] = 1.0 / (a[0] + distance * (a[1] + distance * a[2]));
                }
            }
            if lamp.kind == LightKind::Spot {
                for i in 0..LANES {
                    cosine[i] = select(cosine[i] >= lamp.cutoff_cos, cosine[i], 0.0);
                }
                let inside = cosine;
                power(&mut cosine, lamp.exponent);
                for i in 0..LANES {
                    strength[i] = select(inside[i] > 0.0, strength[i] * cosine[i], 0.0);
                }
            }
        }
        let mut facing = [0.0; LANES];
        let mut shine = [0.0; LANES];
        for i in 0..LANES {
            let n = [n[0][i], n[1][i], n[2][i]];
            let l = [l[0][i], l[1][i], l[2][i]];
            let h = [l[0] + v[0][i], l[1] + v[1][i], l[2] + v[2][i]];
            facing[i] = max(dot(n, l), 0.0);
            let cosine = max(dot(n, h) / dot(h, h).sqrt(), 0.0);
            shine[i] = select(facing[i] > 0.0, crate::lanes::min(cosine, 1.0), 0.0);
        }
        let flat = paint.power == 0.0;
        let facing_at_all = facing;
        power(&mut shine, paint.power);
        for i in 0..LANES {
            let shine = select(flat & (facing_at_all[i] <= 0.0), 0.0, shine[i]) * paint.specular;
            for k in 0..3 {
                let diffuse = paint.rgb[k] * (lamp.ambient[k] + lamp.diffuse[k] * facing[i]);
                colour[k][i] += strength[i] * (diffuse + lamp.specular[k] * shine);
            }
        }
    }
    for channel in &mut colour {
        for c in channel {
            *c = clamp01(*c);
        }
    }
    colour
}

/// Colours from 0 to 1 as bytes.
#[inline(always)]
pub(crate) fn packed(colour: &Wide3) -> Words {
    let mut words = [0; LANES];
    for i in 0..LANES {
        words[i] = pack(colour[0][i], colour[1][i], colour[2][i]);
    }
    words
}
