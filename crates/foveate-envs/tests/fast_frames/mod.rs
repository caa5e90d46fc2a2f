//! Reads what `oracle/fast_frames.py` writes: scenes and the frames that Gymnasium drew of them.

use foveate_envs::car_racing::picture::FRAME_BYTES;
use foveate_envs::car_racing::scene::{Body, Colors, Paint, RoadQuad, Scene, Wheel};

/// One episode.
pub struct Run {
    pub name: String,
    pub colors: Colors,
    pub shots: Vec<Shot>,
}

/// One frame and the world it shows.
pub struct Shot {
    pub road: Vec<RoadQuad>,
    pub t: f64,
    pub hull: Body,
    pub wheels: [Wheel; 4],
    pub steering_angle: f32,
    pub score: f64,
    pub frame: Vec<u8>,
}

impl Shot {
    /// The scene, on track `track_id`.
    pub fn scene(&self, colors: Colors, track_id: u64) -> Scene<'_> {
        Scene {
            road: &self.road,
            track_id,
            t: self.t,
            hull: self.hull,
            wheels: self.wheels,
            steering_angle: self.steering_angle,
            score: self.score,
            colors,
            backdrop: None,
            side_bars: 0.0,
            blob: None,
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (head, tail) = self.0.split_at(N);
        self.0 = tail;
        head.try_into().expect("N bytes")
    }
    fn f32(&mut self) -> f32 {
        f32::from_le_bytes(self.bytes())
    }
    fn f64(&mut self) -> f64 {
        f64::from_le_bytes(self.bytes())
    }
    fn body(&mut self) -> Body {
        let [x, y, angle, sin, cos, vx, vy, spin] = std::array::from_fn(|_| self.f32());
        Body { position: [x, y], angle, sin, cos, velocity: [vx, vy], spin }
    }
}

/// All runs of a dump.
pub fn read(bytes: &[u8]) -> Vec<Run> {
    let mut r = Reader(bytes);
    let mut runs = Vec::new();
    while !r.0.is_empty() {
        let len = usize::from(u16::from_le_bytes(r.bytes()));
        let (name, rest) = r.0.split_at(len);
        r.0 = rest;
        let quads = u32::from_le_bytes(r.bytes());
        let corners: Vec<[[f64; 2]; 4]> =
            (0..quads).map(|_| std::array::from_fn(|_| std::array::from_fn(|_| r.f64()))).collect();
        let [road, field, grass] = std::array::from_fn(|_| std::array::from_fn(|_| r.f64()));
        let mut shots = Vec::new();
        while r.bytes::<1>() == [1] {
            let road = corners
                .iter()
                .map(|&corners| {
                    let paint = match r.bytes::<1>()[0] {
                        3 => Paint::White,
                        4 => Paint::Red,
                        stripe => Paint::Road { stripe },
                    };
                    RoadQuad { corners, paint }
                })
                .collect();
            let t = r.f64();
            let hull = r.body();
            let wheels = std::array::from_fn(|_| Wheel { body: r.body(), phase: r.f64(), omega: r.f64() });
            let (steering_angle, score) = (r.f32(), r.f64());
            let frame = r.bytes::<FRAME_BYTES>().to_vec();
            shots.push(Shot { road, t, hull, wheels, steering_angle, score, frame });
        }
        let name = String::from_utf8(name.to_vec()).expect("a name");
        runs.push(Run { name, colors: Colors { road, field, grass }, shots });
    }
    runs
}
