//! Scenes of the DeepMind Control suite and the pictures that software OpenGL makes of them, from `oracle/scenes.py`.
//!
//! `FOVEATE_WORLDS_PYTHON` names a Python with MuJoCo, `dm_control` and EGL; without it the tests print that they were skipped.
#![allow(dead_code, unreachable_pub)] // the tests and the example use different parts

use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use foveate_render::{Camera, Checker, CubeMap, Geom, Light, LightKind, Scene, ShadowVolume, Shape};

/// The suite's tasks with a picture of their own.
pub const TASKS: [&str; 6] =
    ["cheetah/run", "walker/walk", "cartpole/swingup", "ball_in_cup/catch", "reacher/easy", "finger/spin"];

/// A running script.
pub struct Oracle {
    child: Child,
    pipe: BufReader<ChildStdout>,
    sizes: usize,
}

/// A scene with its pictures.
pub struct State {
    pub scene: Scene,
    pub pictures: Vec<Picture>,
}

/// A picture by OpenGL.
pub struct Picture {
    pub height: usize,
    pub width: usize,
    /// CPU seconds that it took.
    pub seconds: f64,
    /// `[height, width, 3]`
    pub rgb: Vec<u8>,
}

impl Oracle {
    /// Starts the script; prints a note and returns `None` where it cannot run.
    pub fn start(mode: &str, states: usize, tasks: &[&str], sizes: &[&str]) -> Option<Oracle> {
        let python = foveate_toy::needs::worlds_python()?;
        let check = "import os; os.environ.setdefault('MUJOCO_GL', 'egl'); from dm_control import suite; \
                     suite.load('cartpole', 'swingup').physics.render(8, 8)";
        let checked = Command::new(&python).args(["-B", "-c", check]).output();
        let checked = checked.expect("FOVEATE_WORLDS_PYTHON names a Python that starts");
        if !checked.status.success() {
            let text = String::from_utf8_lossy(&checked.stderr);
            let reason = text.lines().rev().find(|line| line.contains("Error")).unwrap_or("no reason given");
            foveate_toy::needs::skip(&format!("dm_control cannot draw with MUJOCO_GL=egl: {reason}"));
            return None;
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/scenes.py");
        let mut child = Command::new(python)
            .args(["-B".as_ref(), path.as_os_str()])
            .arg(mode)
            .arg(states.to_string())
            .args(tasks)
            .arg("--")
            .args(sizes)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a Python that started before");
        let pipe = BufReader::with_capacity(1 << 20, child.stdout.take().expect("its output was asked for"));
        Some(Oracle { child, pipe, sizes: sizes.len() })
    }

    /// The next task: its sky and the number of its states; `None` at the end.
    pub fn task(&mut self) -> Option<(Arc<CubeMap>, usize)> {
        if self.number() == 0.0 {
            return None;
        }
        let side = self.count();
        let rgb = self.bytes(6 * side * side * 3);
        let sky = CubeMap::from_faces(side, &rgb).expect("the bytes of six faces");
        Some((Arc::new(sky), self.count()))
    }

    /// The next state of the task.
    pub fn state(&mut self, sky: &Arc<CubeMap>) -> State {
        let [position, forward, up] = [(); 3].map(|()| self.floats());
        let [half_height, near, far, directional_half_side, spot_scale] = self.floats();
        let camera = Camera { position, forward, up, half_height, near, far };
        let lights = (0..self.count()).map(|_| self.light()).collect();
        let geoms = (0..self.count()).map(|_| self.geom()).collect();
        let shadow_volume = ShadowVolume { directional_half_side, spot_scale };
        let scene = Scene { camera, lights, geoms, sky: Some(Arc::clone(sky)), shadow_volume };
        let pictures = (0..self.sizes)
            .map(|_| {
                let (height, width, seconds) = (self.count(), self.count(), self.number());
                Picture { height, width, seconds, rgb: self.bytes(height * width * 3) }
            })
            .collect();
        State { scene, pictures }
    }

    fn light(&mut self) -> Light {
        let kind = match self.count() {
            0 => LightKind::Spot,
            1 => LightKind::Directional,
            _ => LightKind::Point,
        };
        let [position, direction, ambient, diffuse, specular, attenuation] = [(); 6].map(|()| self.floats());
        let [cutoff_deg, exponent, casts_shadow, headlight] = self.floats();
        Light {
            kind,
            position,
            direction,
            ambient,
            diffuse,
            specular,
            attenuation,
            cutoff_deg,
            exponent,
            casts_shadow: casts_shadow != 0.0,
            headlight: headlight != 0.0,
        }
    }

    fn geom(&mut self) -> Geom {
        let shape = match self.count() {
            0 => Shape::Plane,
            2 => Shape::Sphere,
            3 => Shape::Capsule,
            4 => Shape::Ellipsoid,
            5 => Shape::Cylinder,
            6 => Shape::Box,
            other => panic!("a geom of type {other} has no shape here"),
        };
        let (size, position, rotation, rgba) = (self.floats(), self.floats(), self.floats(), self.floats());
        let [emission, specular, shininess, reflectance, transparent, material, textured] = self.floats();
        let texture = (textured != 0.0).then(|| {
            let [u, v, uniform] = self.floats();
            Checker { repeat: [u, v], uniform: uniform != 0.0, ..Checker::default() }
        });
        Geom {
            shape,
            size,
            position,
            rotation,
            rgba,
            emission,
            specular,
            shininess,
            reflectance,
            transparent: transparent != 0.0,
            texture,
            material: (material >= 0.0).then_some(material as u32),
        }
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.raw(&mut bytes);
        bytes
    }

    fn raw(&mut self, bytes: &mut [u8]) {
        if let Err(error) = self.pipe.read_exact(bytes) {
            let status = self.child.wait();
            panic!("the script ended early ({error}, {status:?}); what it printed is above");
        }
    }

    fn number(&mut self) -> f64 {
        let mut bytes = [0; 8];
        self.raw(&mut bytes);
        f64::from_le_bytes(bytes)
    }

    fn count(&mut self) -> usize {
        let number = self.number();
        assert!(number.fract() == 0.0 && (0.0..1e6).contains(&number), "{number} is not a count");
        number as usize
    }

    fn floats<const N: usize>(&mut self) -> [f32; N] {
        [(); N].map(|()| self.number() as f32)
    }
}

impl Drop for Oracle {
    /// Stops the script when a test failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The difference of pictures of one size.
#[derive(Debug, Clone, Copy, Default)]
pub struct Difference {
    pictures: f64,
    sum: f64,
    /// The largest mean absolute difference of a picture, of 255.
    pub worst: f64,
    far: f64,
    bytes: f64,
}

impl Difference {
    /// Counts a pair of pictures.
    pub fn add(&mut self, ours: &[u8], theirs: &[u8]) {
        let all = ours.iter().zip(theirs).map(|(a, b)| u32::from(a.abs_diff(*b)));
        let mean = f64::from(all.clone().sum::<u32>()) / ours.len() as f64;
        self.pictures += 1.0;
        self.sum += mean;
        self.worst = self.worst.max(mean);
        self.far += all.filter(|difference| *difference > 16).count() as f64;
        self.bytes += ours.len() as f64;
    }

    /// The mean absolute difference, of 255.
    pub fn mean(&self) -> f64 {
        self.sum / self.pictures
    }

    /// The part of bytes that are more than 16 off.
    pub fn far(&self) -> f64 {
        self.far / self.bytes
    }
}
