//! Compares the exact picture with Gymnasium's frames, byte for byte.

use crate::frames::{self, Record};
use foveate_envs::car_racing::picture::exact::ExactPicture;
use foveate_envs::car_racing::picture::{FRAME_BYTES, SIDE};
use foveate_envs::car_racing::scene::{Body, Colors, Scene, Wheel};

/// Counts differing bytes and prints the first few.
#[derive(Default)]
struct Differences {
    bytes: usize,
    pictures: usize,
}

impl Differences {
    fn compare(&mut self, what: &str, ours: &[u8], theirs: &[u8], channels: usize, width: usize) {
        assert_eq!(ours.len(), theirs.len());
        let before = self.bytes;
        for (i, (a, b)) in ours.iter().zip(theirs).enumerate().filter(|(_, (a, b))| a != b) {
            if self.bytes < 20 {
                let (pixel, c) = (i / channels, i % channels);
                eprintln!(
                    "{what}: x {} y {} channel {c}: ours {a}, theirs {b}",
                    pixel % width,
                    pixel / width
                );
            }
            self.bytes += 1;
        }
        self.pictures += usize::from(self.bytes > before);
    }
}

#[test]
fn frames_equal_gymnasiums() {
    let Some((mut child, mut stream)) = frames::start("full") else { return };
    let mut picture = ExactPicture::new();
    let mut frame = vec![0; FRAME_BYTES];
    let mut differences = Differences::default();
    let (mut n_frames, mut n_texts) = (0, 0);
    while let Some(record) = stream.next().expect("the oracle's stream is whole") {
        match record {
            Record::Frame(theirs) => {
                let scene = stream.scene();
                picture.draw(&scene, &mut frame);
                let what = format!("frame {n_frames} (track {}, t {:.2})", scene.track_id, scene.t);
                differences.compare(&what, &frame, &theirs, 3, SIDE);
                n_frames += 1;
            }
            Record::Text(score, theirs) => {
                picture.draw(&text_scene(score), &mut frame);
                let corner: Vec<u8> = frame
                    .chunks_exact(3 * SIDE)
                    .skip(84)
                    .flat_map(|row| row[..36].iter().step_by(3))
                    .copied()
                    .collect();
                differences.compare(&format!("score {score}"), &corner, &theirs, 1, 12);
                n_texts += 1;
            }
            Record::Cpu(..) => {}
        }
    }
    assert!(child.wait().expect("the oracle ends").success());
    eprintln!("{n_frames} frames and {n_texts} scores compared");
    assert!(n_frames > 1000 && n_texts > 300, "the oracle gave {n_frames} frames and {n_texts} scores");
    assert_eq!((differences.bytes, differences.pictures), (0, 0), "differing bytes, in so many pictures");
}

/// A car at rest on plain grass: only the score changes.
fn text_scene(score: f64) -> Scene<'static> {
    Scene {
        road: &[],
        track_id: 0,
        t: 2.0,
        hull: Body { cos: 1.0, ..Body::default() },
        wheels: [Wheel::default(); 4],
        steering_angle: 0.0,
        score,
        colors: Colors::default(),
        backdrop: None,
        side_bars: 0.0,
        indicators: true,
        blob: None,
    }
}
