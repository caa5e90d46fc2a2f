//! V-trace (Espeholt et al. 2018, "IMPALA", equation 1): what values and actions of steps are to become that another policy
//! took.

/// Bounds of the ratios of probabilities, learner to actor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    /// ρ̄, of the temporal differences.
    pub(super) rho: f64,
    /// c̄, of the traces.
    pub(super) trace: f64,
    /// ρ̄ of the policy's gradient.
    pub(super) policy: f64,
}

/// Targets of the values, and advantages of the actions, of some steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Targets {
    /// `[steps]`
    pub(super) values: Vec<f64>,
    /// `[steps]`
    pub(super) advantages: Vec<f64>,
}

/// Computes the targets. `log_ratios` (`[steps]`) are the logarithms of the learner's probability of the action over the
/// actor's, `values` (`[steps + 1]`) the learner's estimates. The last of them counts unless the task ended with the last step
/// (`terminated`): after a truncation, and in the middle of an episode, there is more to come.
///
/// ```text
/// δ_t = min(ρ̄, ratio_t) (r_t + d_t V_{t+1} − V_t)
/// v_t = V_t + δ_t + d_t min(c̄, ratio_t) (v_{t+1} − V_{t+1}),  v_T = V_T
/// advantage_t = min(ρ̄_policy, ratio_t) (r_t + d_t v_{t+1} − V_t)
/// ```
pub(super) fn targets(
    log_ratios: &[f64],
    rewards: &[f64],
    values: &[f32],
    terminated: bool,
    discount: f64,
    bounds: Bounds,
) -> Targets {
    let steps = rewards.len();
    let mut targets = Targets { values: vec![0.0; steps], advantages: vec![0.0; steps] };
    let mut after = values.get(steps).map_or(0.0, |&value| f64::from(value));
    for t in (0..steps).rev() {
        let d = if terminated && t + 1 == steps { 0.0 } else { discount };
        let (value, beyond) = (f64::from(values[t]), f64::from(values[t + 1]));
        let ratio = log_ratios[t].exp();
        let surprise = ratio.min(bounds.rho) * (rewards[t] + d * beyond - value);
        targets.advantages[t] = ratio.min(bounds.policy) * (rewards[t] + d * after - value);
        after = value + surprise + d * ratio.min(bounds.trace) * (after - beyond);
        targets.values[t] = after;
    }
    targets
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;

    const ONES: Bounds = Bounds { rho: 1.0, trace: 1.0, policy: 1.0 };

    fn check(got: &[f64], expect: &[f64]) {
        assert_eq!(got.len(), expect.len());
        for (got, expect) in got.iter().zip(expect) {
            assert!((got - expect).abs() < 1e-12, "{got}, not {expect}");
        }
    }

    /// On the learner's own policy the targets are the discounted returns.
    #[test]
    fn without_a_difference_of_policies_targets_are_returns() {
        let (rewards, values) = ([1.0, 0.0, 2.0], [0.5_f32, 1.0, -1.0, 4.0]);
        let going = targets(&[0.0; 3], &rewards, &values, false, 0.5, ONES);
        check(&going.values, &[1.0 + 0.5 + 0.5, 0.0 + 1.0 + 1.0, 2.0 + 2.0]);
        check(&going.advantages, &[2.0 - 0.5, 2.0 - 1.0, 4.0 + 1.0]);
        let over = targets(&[0.0; 3], &rewards, &values, true, 0.5, ONES);
        check(&over.values, &[1.0 + 0.5, 1.0, 2.0]);
        check(&over.advantages, &[1.5 - 0.5, 1.0 - 1.0, 2.0 + 1.0]);
    }

    /// By hand: ratios 2, ½ and 4, of which the bounds leave 1, ½ and 1.
    #[test]
    fn ratios_are_bounded() {
        let logs = [2.0_f64.ln(), 0.5_f64.ln(), 4.0_f64.ln()];
        let (rewards, values) = ([1.0, 2.0, 3.0], [1.0_f32, 2.0, 4.0, 8.0]);
        // Step 2: δ = 1 (3 + 4 − 4) = 3, v = 7. Step 1: δ = ½ (2 + 2 − 2) = 1, v = 2 + 1 + ½ ½ (7 − 4) = 3.75.
        // Step 0: δ = 1 (1 + 1 − 1) = 1, v = 1 + 1 + ½ 1 (3.75 − 2) = 2.875.
        let got = targets(&logs, &rewards, &values, false, 0.5, ONES);
        check(&got.values, &[2.875, 3.75, 7.0]);
        check(&got.advantages, &[1.0 + 0.5 * 3.75 - 1.0, 0.5 * (2.0 + 0.5 * 7.0 - 2.0), 3.0 + 4.0 - 4.0]);
        // Wider bounds: ratios of 2 in all places.
        let bounds = Bounds { rho: 2.0, trace: 1.5, policy: 3.0 };
        let got = targets(&logs[..1], &rewards[..1], &values[..2], false, 0.5, bounds);
        check(&got.values, &[1.0 + 2.0 * (1.0 + 1.0 - 1.0)]);
        check(&got.advantages, &[2.0 * (1.0 + 1.0 - 1.0)]);
    }

    /// The sum of the paper, term by term.
    #[test]
    fn the_recursion_is_the_sum_of_the_paper() {
        let mut rng = Seed::root(3).rng();
        for terminated in [false, true] {
            let n = 9;
            let logs: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
            let rewards: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
            let values: Vec<f32> = (0..=n).map(|_| rng.normal() as f32).collect();
            let bounds = Bounds { rho: 1.2, trace: 0.9, policy: 1.0 };
            let value = |t: usize| if terminated && t == n { 0.0 } else { f64::from(values[t]) };
            let discount: f64 = 0.9;
            let slow: Vec<f64> = (0..n)
                .map(|s| {
                    let mut sum = value(s);
                    for t in s..n {
                        let traces: f64 = (s..t).map(|i| logs[i].exp().min(bounds.trace)).product();
                        let surprise =
                            logs[t].exp().min(bounds.rho) * (rewards[t] + discount * value(t + 1) - value(t));
                        sum += discount.powi((t - s) as i32) * traces * surprise;
                    }
                    sum
                })
                .collect();
            let got = targets(&logs, &rewards, &values, terminated, discount, bounds);
            check(&got.values, &slow);
        }
    }
}
