//! Reads the output of `frames.py`.

use std::io::{self, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use foveate_envs::car_racing::picture::FRAME_BYTES;
use foveate_envs::car_racing::scene::{Body, Colors, Paint, RoadQuad, Scene, Wheel};

/// One record of the stream.
pub(crate) enum Record {
    /// The scene in [`Frames::scene`] and the environment's picture of it.
    Frame(Vec<u8>),
    /// A score and the 12 × 12 grey levels of the picture's lower left corner.
    Text(f64, Vec<u8>),
    /// The number of environment steps, and their CPU time in seconds.
    Cpu(u32, f64),
}

/// The stream, and the scene of the last frame.
pub(crate) struct Frames<R> {
    from: R,
    road: Vec<RoadQuad>,
    colors: Colors,
    track_id: u64,
    t: f64,
    score: f64,
    hull: Body,
    wheels: [Wheel; 4],
    steering_angle: f32,
}

/// Starts `frames.py` with the runs in `FOVEATE_FRAMES`, or with `kind` by default; the caller must wait for
/// the child at the end of its stream. Prints a note and returns `None` when no Python is configured.
pub(crate) fn start(kind: &str) -> Option<(Child, Frames<BufReader<ChildStdout>>)> {
    let python = foveate_toy::needs::python()?;
    let kind = std::env::var("FOVEATE_FRAMES").unwrap_or_else(|_| kind.to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/oracle/frames.py");
    let mut child = Command::new(python)
        .args([script, &kind])
        .env("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the Python that FOVEATE_PYTHON names starts");
    let stream = BufReader::with_capacity(1 << 20, child.stdout.take().expect("stdout is piped"));
    Some((child, Frames::new(stream)))
}

impl<R: Read> Frames<R> {
    /// Starts reading from `from`.
    pub(crate) fn new(from: R) -> Self {
        Frames {
            from,
            road: Vec::new(),
            colors: Colors::default(),
            track_id: 0,
            t: 0.0,
            score: 0.0,
            hull: Body::default(),
            wheels: [Wheel::default(); 4],
            steering_angle: 0.0,
        }
    }

    /// The scene of the last frame.
    pub(crate) fn scene(&self) -> Scene<'_> {
        Scene {
            road: &self.road,
            track_id: self.track_id,
            t: self.t,
            hull: self.hull,
            wheels: self.wheels,
            steering_angle: self.steering_angle,
            score: self.score,
            colors: self.colors,
            backdrop: None,
            side_bars: 0.0,
            indicators: true,
            blob: None,
        }
    }

    /// The next record; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Record>> {
        loop {
            match self.bytes(1)?[0] {
                b'E' => self.episode()?,
                b'F' => return self.frame().map(Some),
                b'T' => return Ok(Some(Record::Text(self.f64()?, self.bytes(144)?))),
                b'C' => return Ok(Some(Record::Cpu(u32::from_le_bytes(self.array()?), self.f64()?))),
                b'Z' => return Ok(None),
                other => return Err(io::Error::other(format!("no record begins with byte {other}"))),
            }
        }
    }

    fn episode(&mut self) -> io::Result<()> {
        let n = u32::from_le_bytes(self.array()?);
        self.road.clear();
        for _ in 0..n {
            let mut corners = [[0.0; 2]; 4];
            for c in corners.as_flattened_mut() {
                *c = self.f64()?;
            }
            self.road.push(RoadQuad { corners, paint: Paint::White });
        }
        for c in [&mut self.colors.road, &mut self.colors.field, &mut self.colors.grass] {
            let mut bytes = [0; 24];
            self.from.read_exact(&mut bytes)?;
            for (c, b) in c.iter_mut().zip(bytes.chunks_exact(8)) {
                *c = f64::from_le_bytes(b.try_into().expect("eight bytes"));
            }
        }
        self.track_id += 1;
        Ok(())
    }

    fn frame(&mut self) -> io::Result<Record> {
        (self.t, self.score) = (self.f64()?, self.f64()?);
        self.hull = self.body()?;
        for i in 0..4 {
            self.wheels[i] = Wheel { body: self.body()?, phase: self.f64()?, omega: self.f64()? };
        }
        self.steering_angle = self.f32()?;
        let paint = self.bytes(self.road.len())?;
        for (quad, paint) in self.road.iter_mut().zip(paint) {
            quad.paint = match paint {
                3 => Paint::White,
                4 => Paint::Red,
                stripe => Paint::Road { stripe },
            };
        }
        Ok(Record::Frame(self.bytes(FRAME_BYTES)?))
    }

    fn body(&mut self) -> io::Result<Body> {
        Ok(Body {
            position: [self.f32()?, self.f32()?],
            angle: self.f32()?,
            sin: self.f32()?,
            cos: self.f32()?,
            velocity: [self.f32()?, self.f32()?],
            spin: self.f32()?,
        })
    }

    fn f64(&mut self) -> io::Result<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    fn f32(&mut self) -> io::Result<f32> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn bytes(&mut self, n: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; n];
        self.from.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
