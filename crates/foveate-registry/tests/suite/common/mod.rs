//! What tests of Atari's worlds share.

use foveate_core::{Action, Env};

/// Choices and rewards of up to so many steps of the episode under way, in which the expert acts.
pub(crate) fn advised(env: &mut dyn Env, steps: usize) -> Vec<(usize, f64)> {
    let mut scores = vec![0.0; env.spec().action.len()];
    let mut played = vec![];
    while played.len() < steps {
        env.expert(&mut scores).expect("it has one");
        let best = (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best });
        let step = env.step(Action::Discrete(best)).expect("it goes on");
        played.push((best, step.reward));
        if step.is_over() {
            break;
        }
    }
    played
}
