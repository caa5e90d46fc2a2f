//! The versions of MuJoCo that are supported, with the layouts of the structures that are read.
//!
//! MuJoCo's structures change between releases, and its library does not describe them. So every supported version has one entry
//! in [`VERSIONS`], taken from the headers of that release, and all other versions are refused. To add one, print the offsets with
//! a C program that includes its `mujoco/mujoco.h`, and add an entry; the tests of this crate and of the worlds then compare it
//! with MuJoCo itself.

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
}

/// Offsets in `mjModel`, in bytes. The counts are 64-bit integers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ModelLayout {
    pub(crate) nq: usize,
    pub(crate) nv: usize,
    pub(crate) nu: usize,
    pub(crate) ncam: usize,
    pub(crate) nsensor: usize,
    pub(crate) nsensordata: usize,
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
    pub(crate) texid: usize,
    pub(crate) texuniform: usize,
    pub(crate) size: usize,
    pub(crate) pos: usize,
    pub(crate) mat: usize,
    pub(crate) rgba: usize,
    /// Emission, specular, shininess and reflectance.
    pub(crate) emission: usize,
    pub(crate) texrepeat: usize,
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
}

/// All supported versions, the recommended one first.
pub(crate) static VERSIONS: &[Version] = &[Version {
    number: 3_017_000,
    name: "3.17.0",
    model: ModelLayout {
        nq: 0,
        nv: 8,
        nu: 16,
        ncam: 152,
        nsensor: 504,
        nsensordata: 744,
        shadow_clip: 1248,
        shadow_scale: 1252,
        extent: 1752,
        time_step: 792,
        integrator: 1040,
        control_limited: 4984,
        control_range: 4992,
    },
    scene: SceneLayout {
        scene_size: 11584,
        maxgeom: 0,
        ngeom: 4,
        geoms: 8,
        nflex: 24,
        nskin: 132,
        nlight: 176,
        lights: 180,
        cameras: 11380,
        geom_size: 252,
        geom: GeomLayout {
            kind: 0,
            objtype: 8,
            objid: 12,
            matid: 20,
            texid: 24,
            texuniform: 28,
            size: 40,
            pos: 52,
            mat: 64,
            rgba: 100,
            emission: 116,
            texrepeat: 132,
            transparent: 248,
        },
        light_size: 112,
        light: LightLayout {
            pos: 4,
            dir: 16,
            kind: 28,
            attenuation: 36,
            cutoff: 48,
            exponent: 52,
            ambient: 56,
            diffuse: 68,
            specular: 80,
            headlight: 92,
            castshadow: 93,
        },
        gl_camera_size: 64,
        gl_camera: GlCameraLayout {
            pos: 0,
            forward: 12,
            up: 24,
            frustum_top: 48,
            frustum_near: 52,
            orthographic: 60,
        },
        camera_size: 72,
        camera_type: 0,
        camera_fixed: 4,
        option_size: 92,
        option_flags: 50,
        option_flag_count: 31,
        contact_points: 14,
        perturb_size: 144,
    },
    objects: Objects { body: 1, joint: 3, geom: 5, site: 6, camera: 7, sensor: 20 },
}];

/// The names of all supported versions, as in `3.17.0`.
pub(crate) fn names() -> String {
    let names: Vec<&str> = VERSIONS.iter().map(|version| version.name).collect();
    names.join(", ")
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
            (337, "3.3.7"),
            (210, "2.1.0"),
            (3_006_000, "3.6.0"),
            (3_016_001, "3.16.1"),
            (-1, "number -1"),
            (4001, "number 4001"),
        ] {
            assert_eq!(supported(number).expect_err("not supported"), name);
        }
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
            assert!(scene.geom.transparent < scene.geom_size && scene.geom.texrepeat + 8 <= scene.geom_size);
            assert!(scene.light.castshadow < scene.light_size);
            assert!(scene.gl_camera.frustum_near + 8 <= scene.gl_camera_size);
            assert!(scene.option_flags + scene.option_flag_count <= scene.option_size);
            assert!(scene.contact_points < scene.option_flag_count);
            assert!(scene.camera_fixed + 4 <= scene.camera_size);
        }
    }
}
