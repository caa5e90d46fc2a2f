//! Agents with random weights.

use foveate_core::{Agent, Seed};

/// The agent with every tensor drawn anew: normal numbers of the tensor's own root mean square.
pub(super) fn random_weights(agent: &dyn Agent, seed: Seed) -> Box<dyn Agent> {
    random_tensors(agent, seed, &|_| true)
}

/// The same with the tensors of these names only.
pub(super) fn random_tensors(agent: &dyn Agent, seed: Seed, which: &dyn Fn(&str) -> bool) -> Box<dyn Agent> {
    let mut random = agent.boxed_clone();
    let mut params = agent.params();
    let mut rest = &mut params[..];
    for (i, tensor) in agent.tensors().iter().enumerate() {
        let (part, after) = rest.split_at_mut(tensor.len().min(rest.len()));
        rest = after;
        if !which(&tensor.name) {
            continue;
        }
        let squares: f64 = part.iter().map(|&w| f64::from(w).powi(2)).sum();
        let size = (squares / part.len().max(1) as f64).sqrt();
        let mut rng = seed.child("tensor", i as u64).rng();
        part.fill_with(|| (size * rng.normal()) as f32);
    }
    // As many as there were, and finite: nothing that an agent refuses.
    let taken = random.set_params(&params);
    debug_assert_eq!(taken, Ok(()));
    random
}
