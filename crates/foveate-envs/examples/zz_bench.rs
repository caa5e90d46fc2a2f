use foveate_envs::car_racing::{picture::classic::ClassicPicture, scene::*, track::Track};
use foveate_envs::random::{Pcg64, Stream};
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    s.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1e-9
}
fn main() {
    let mut p = ClassicPicture::new();
    let mut frame = vec![0u8; 96 * 96 * 3];
    let mut sum = 0u64;
    for (name, t0) in [("steady", 2.0), ("zoom0.02", 0.02), ("zoom0.5", 0.5)] {
        let mut total = 0.0;
        let mut n = 0u32;
        for seed in 0..4 {
            let mut track = Track::default();
            let mut stream = Stream::Gymnasium(Pcg64::seeded(seed));
            track.create(&mut stream);
            let at = |pt: &foveate_envs::car_racing::track::TrackPoint| {
                let a = pt.beta as f32;
                let hull = Body {
                    position: [pt.x as f32, pt.y as f32],
                    angle: a,
                    sin: a.sin(),
                    cos: a.cos(),
                    velocity: [-60.0 * (a + 0.1).sin(), 60.0 * (a + 0.1).cos()],
                    spin: 0.3,
                };
                let wheels = [[-1.1, 1.6], [1.1, 1.6], [-1.1, -1.64], [1.1, -1.64]].map(|q| Wheel {
                    body: Body { position: hull.to_world(q), ..hull },
                    phase: f64::from(a) * 37.0,
                    omega: 90.0,
                });
                Scene {
                    road: &track.road,
                    track_id: seed,
                    t: t0,
                    hull,
                    wheels,
                    steering_angle: 0.1,
                    score: 1.0,
                    colors: Colors::default(),
                    backdrop: None,
                    side_bars: 0.0,
                    blob: None,
                }
            };
            let scenes: Vec<Scene> = track.points.iter().map(at).collect();
            let start = cpu();
            for _ in 0..20 {
                for s in &scenes {
                    p.draw(s, &mut frame);
                    sum += u64::from(frame[5000]);
                    n += 1;
                }
            }
            total += cpu() - start;
        }
        println!("{name}: {:.2} us/frame ({sum})", total / f64::from(n) * 1e6);
    }
}
