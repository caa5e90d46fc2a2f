//! The versions of MuJoCo that are supported, with the layouts of the structures that are read.
//!
//! MuJoCo's structures change between releases, and its library does not describe them. So every supported version has one entry
//! in [`VERSIONS`], made from the headers of that release, and all other versions are refused. `cargo xtask mujoco-layouts` makes
//! the entries: to add a version, add its name to the list in `xtask/src/mujoco.rs`. The tests of this crate and of the worlds
//! compare some of them with MuJoCo itself.

#[rustfmt::skip]
mod layouts;

pub(crate) use layouts::VERSIONS;

/// A supported version of MuJoCo.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// What `mj_version()` returns.
    pub(crate) number: i32,
    /// The same for people, and in the name of its file.
    pub(crate) name: &'static str,
    pub(crate) model: ModelLayout,
    pub(crate) scene: SceneLayout,
    pub(crate) objects: Objects,
    pub(crate) states: States,
}

/// Offsets in `mjModel`, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ModelLayout {
    /// Bytes of a count, and of what `mj_sizeModel` returns: 4 in old versions, then 8.
    pub(crate) count_size: usize,
    pub(crate) size_size: usize,
    pub(crate) nq: usize,
    pub(crate) nv: usize,
    pub(crate) nu: usize,
    pub(crate) ncam: usize,
    pub(crate) nsensor: usize,
    pub(crate) nsensordata: usize,
    pub(crate) nkey: usize,
    pub(crate) nmat: usize,
    /// Pointers to what materials have: `mat_texid`, `texture_roles` 32-bit integers each, of which that at `texture_role` is the
    /// texture of its colour; `mat_texuniform`, a byte each; `mat_texrepeat`, two 32-bit floats each.
    pub(crate) mat_texid: usize,
    pub(crate) mat_texuniform: usize,
    pub(crate) mat_texrepeat: usize,
    pub(crate) texture_roles: usize,
    pub(crate) texture_role: usize,
    /// `vis.map.shadowclip`, 32-bit float.
    pub(crate) shadow_clip: usize,
    /// `vis.map.shadowscale`, 32-bit float.
    pub(crate) shadow_scale: usize,
    /// `stat.extent`, 64-bit float.
    pub(crate) extent: usize,
    /// `opt.timestep`, 64-bit float.
    pub(crate) time_step: usize,
    /// `opt.integrator`, 32-bit integer.
    pub(crate) integrator: usize,
    /// `actuator_ctrllimited`, pointer to `nu` bytes.
    pub(crate) control_limited: usize,
    /// `actuator_ctrlrange`, pointer to `nu` pairs of 64-bit floats.
    pub(crate) control_range: usize,
    /// Pointers to `nsensor` 32-bit integers: how many numbers a sensor has, and the index of its first one.
    pub(crate) sensor_dim: usize,
    pub(crate) sensor_adr: usize,
    /// Pointer to `nsensor` 64-bit floats, seconds; `None` where sensors have no delays.
    pub(crate) sensor_delay: Option<usize>,
    /// In `mjData`: `sensordata`, pointer to `nsensordata` 64-bit floats.
    pub(crate) sensor_data: usize,
}

/// Sizes and offsets of the structures of `mjvisualize.h`, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SceneLayout {
    pub(crate) scene_size: usize,
    pub(crate) maxgeom: usize,
    pub(crate) ngeom: usize,
    pub(crate) geoms: usize,
    pub(crate) nflex: usize,
    pub(crate) nskin: usize,
    pub(crate) nlight: usize,
    pub(crate) lights: usize,
    /// The two cameras of a stereo pair.
    pub(crate) cameras: usize,
    pub(crate) geom_size: usize,
    pub(crate) geom: GeomLayout,
    pub(crate) light_size: usize,
    pub(crate) light: LightLayout,
    pub(crate) gl_camera_size: usize,
    pub(crate) gl_camera: GlCameraLayout,
    pub(crate) camera_size: usize,
    pub(crate) camera_type: usize,
    pub(crate) camera_fixed: usize,
    pub(crate) option_size: usize,
    pub(crate) option_flags: usize,
    /// Number of flags, a byte each.
    pub(crate) option_flag_count: usize,
    /// The flag that shows contact points.
    pub(crate) contact_points: usize,
    pub(crate) perturb_size: usize,
}

/// Offsets in `mjvGeom`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GeomLayout {
    pub(crate) kind: usize,
    pub(crate) objtype: usize,
    pub(crate) objid: usize,
    pub(crate) matid: usize,
    pub(crate) size: usize,
    pub(crate) pos: usize,
    pub(crate) mat: usize,
    pub(crate) rgba: usize,
    /// Emission, specular, shininess and reflectance.
    pub(crate) emission: usize,
    pub(crate) transparent: usize,
}

/// Offsets in `mjvLight`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LightLayout {
    pub(crate) pos: usize,
    pub(crate) dir: usize,
    pub(crate) kind: usize,
    pub(crate) attenuation: usize,
    pub(crate) cutoff: usize,
    pub(crate) exponent: usize,
    pub(crate) ambient: usize,
    pub(crate) diffuse: usize,
    pub(crate) specular: usize,
    pub(crate) headlight: usize,
    pub(crate) castshadow: usize,
}

/// Offsets in `mjvGLCamera`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GlCameraLayout {
    pub(crate) pos: usize,
    pub(crate) forward: usize,
    pub(crate) up: usize,
    pub(crate) frustum_top: usize,
    /// Near and far.
    pub(crate) frustum_near: usize,
    pub(crate) orthographic: usize,
}

/// Numbers of `mjtObj`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Objects {
    pub(crate) body: i32,
    pub(crate) joint: i32,
    pub(crate) geom: i32,
    pub(crate) site: i32,
    pub(crate) camera: i32,
    pub(crate) sensor: i32,
    pub(crate) key: i32,
}

/// Bits of `mjtState`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct States {
    pub(crate) time: i32,
    pub(crate) positions: i32,
    pub(crate) velocities: i32,
    pub(crate) controls: i32,
    /// Of bodies that are placed from outside.
    pub(crate) mocap_positions: i32,
}

/// The names of all supported versions, oldest first.
pub(crate) fn names() -> String {
    let mut known: Vec<&Version> = VERSIONS.iter().collect();
    known.sort_by_key(|version| number_of(version.name));
    known.iter().map(|version| version.name).collect::<Vec<_>>().join(", ")
}

/// The numbers of a name such as `3.17.0`, for comparisons; `None` for another text.
pub(crate) fn number_of(name: &str) -> Option<[u32; 3]> {
    let mut parts = name.split('.').map(|part| part.parse().ok());
    let number = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(number)
}

/// The entry of the version that `mj_version()` returned; otherwise its name, as far as it can be told.
pub(crate) fn supported(number: i32) -> Result<&'static Version, String> {
    VERSIONS.iter().find(|version| version.number == number).ok_or_else(|| name_of(number))
}

/// The name of a version: 3017000 is 3.17.0; before 3.5, 337 was 3.3.7.
fn name_of(number: i32) -> String {
    let parts = match number {
        100..1000 => [number / 100, number / 10 % 10, number % 10],
        1_000_000.. => [number / 1_000_000, number / 1000 % 1000, number % 1000],
        _ => return format!("number {number}"),
    };
    parts.map(|part| part.to_string()).join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_named_as_people_name_them() {
        for (number, name) in [
            (331, "3.3.1"),
            (210, "2.1.0"),
            (3_006_009, "3.6.9"),
            (3_016_001, "3.16.1"),
            (-1, "number -1"),
            (4001, "number 4001"),
        ] {
            assert_eq!(supported(number).expect_err("not supported"), name);
        }
        assert_eq!(
            (number_of("3.17.0"), number_of("3.17"), number_of("a.1.2")),
            (Some([3, 17, 0]), None, None)
        );
        for version in VERSIONS {
            assert_eq!(supported(version.number), Ok(version));
            assert_eq!(name_of(version.number), version.name);
        }
    }

    #[test]
    fn fields_lie_within_their_structures() {
        for Version { scene, .. } in VERSIONS {
            assert!(scene.lights + 100 * scene.light_size <= scene.cameras);
            assert!(scene.cameras + 2 * scene.gl_camera_size <= scene.scene_size);
            assert!(scene.geoms % 8 == 0 && scene.geoms + 8 <= scene.scene_size);
            assert!(scene.geom.transparent < scene.geom_size && scene.geom.emission + 16 <= scene.geom_size);
            assert!(scene.light.castshadow < scene.light_size);
            assert!(scene.gl_camera.frustum_near + 8 <= scene.gl_camera_size);
            assert!(scene.option_flags + scene.option_flag_count <= scene.option_size);
            assert!(scene.contact_points < scene.option_flag_count);
            assert!(scene.camera_fixed + 4 <= scene.camera_size);
        }
    }
}
