//! The numbers behind an update: probabilities of actions, their entropy, advantages; all in double precision.

use foveate_core::{Action, ActionDistribution};

/// Logarithm of √(2π).
const LN_ROOT_TAU: f64 = 0.918_938_533_204_672_8;

/// An action as the distribution has it.
pub(crate) enum Taken<'a> {
    Choice(usize),
    Numbers(&'a [f64]),
}

/// `action`, if it belongs to `distribution`.
pub(crate) fn taken(distribution: ActionDistribution, action: Action<'_>) -> Option<Taken<'_>> {
    match (distribution, action) {
        (ActionDistribution::Choices(n), Action::Discrete(choice)) if choice < n => {
            Some(Taken::Choice(choice))
        }
        (ActionDistribution::Normal(n), Action::Continuous(numbers))
            if numbers.len() == n && numbers.iter().all(|x| x.is_finite()) =>
        {
            Some(Taken::Numbers(numbers))
        }
        _ => None,
    }
}

/// Logarithm of the probability (or its density) of an action, and the entropy of the distribution; writes the derivatives
/// of both with respect to the outputs to `d_log` and `d_entropy`, `[outputs]` each.
pub(crate) fn log_probability(
    outputs: &[f32],
    taken: &Taken<'_>,
    d_log: &mut [f64],
    d_entropy: &mut [f64],
) -> (f64, f64) {
    match *taken {
        Taken::Choice(choice) => {
            let most = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let total: f64 = outputs.iter().map(|&x| f64::from(x - most).exp()).sum();
            let log = |x: f32| f64::from(x - most) - total.ln();
            let entropy = -outputs.iter().map(|&x| log(x).exp() * log(x)).sum::<f64>();
            for ((i, &x), (d_log, d_entropy)) in
                outputs.iter().enumerate().zip(d_log.iter_mut().zip(d_entropy))
            {
                let p = log(x).exp();
                *d_log = f64::from(u8::from(i == choice)) - p;
                *d_entropy = -p * (log(x) + entropy);
            }
            (log(outputs[choice]), entropy)
        }
        Taken::Numbers(numbers) => {
            let n = numbers.len();
            let (means, deviations) = outputs.split_at(n);
            let (mut log, mut entropy) = (0.0, 0.0);
            for (i, &number) in numbers.iter().enumerate() {
                let ln_deviation = f64::from(deviations[i]);
                let deviation = ln_deviation.exp();
                let z = (number - f64::from(means[i])) / deviation;
                log -= 0.5 * z * z + ln_deviation + LN_ROOT_TAU;
                entropy += 0.5 + LN_ROOT_TAU + ln_deviation;
                (d_log[i], d_log[n + i]) = (z / deviation, z * z - 1.0);
                (d_entropy[i], d_entropy[n + i]) = (0.0, 1.0);
            }
            (log, entropy)
        }
    }
}

/// Generalised advantage estimation (Schulman et al. 2016): appends the advantage of every step to `to`. `values` are those
/// of the observations before each step and of the one after the last, `[steps + 1]`. That last one counts unless the task
/// ended (`terminated`): after a truncation there would have been more to come.
pub(crate) fn advantages(
    rewards: &[f64],
    values: &[f32],
    terminated: bool,
    discount: f64,
    lambda: f64,
    to: &mut Vec<f64>,
) {
    let (begin, steps) = (to.len(), rewards.len());
    to.resize(begin + steps, 0.0);
    let mut next = 0.0;
    for t in (0..steps).rev() {
        let beyond = if terminated && t + 1 == steps { 0.0 } else { f64::from(values[t + 1]) };
        let surprise = rewards[t] + discount * beyond - f64::from(values[t]);
        next = surprise + discount * lambda * next;
        to[begin + t] = next;
    }
}

/// Share of the variance of `targets` that `values` explain: 1 for all of it, 0 for none, below 0 for a worse guess than the
/// mean. 0 when there is no variance.
pub(crate) fn explained_variance(values: &[f32], targets: &[f64]) -> f64 {
    let n = targets.len().max(1) as f64;
    let variance = |numbers: &mut dyn Iterator<Item = f64>| {
        let (sum, squares) = numbers.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        (squares / n - (sum / n).powi(2)).max(0.0)
    };
    let all = variance(&mut targets.iter().copied());
    let rest = variance(&mut targets.iter().zip(values).map(|(target, &value)| target - f64::from(value)));
    if all > 0.0 { 1.0 - rest / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_those_of_the_functions() {
        let numbers = [0.3, -1.2];
        for (outputs, action) in [
            (vec![0.5_f32, -1.0, 2.0, 0.25], Taken::Choice(3)),
            (vec![0.5, -1.0, 2.0, 0.25], Taken::Choice(2)),
            (vec![0.5, -1.0, 0.3, -0.7], Taken::Numbers(&numbers)),
        ] {
            let n = outputs.len();
            let (mut d_log, mut d_entropy) = (vec![0.0; n], vec![0.0; n]);
            log_probability(&outputs, &action, &mut d_log, &mut d_entropy);
            for i in 0..n {
                let at = |step: f32| {
                    let mut moved = outputs.clone();
                    moved[i] += step;
                    log_probability(&moved, &action, &mut vec![0.0; n], &mut vec![0.0; n])
                };
                // The steps are exact in single precision.
                let h = 1.0 / 512.0;
                let ((up, more), (down, less)) = (at(h), at(-h));
                let (slope, gain) = ((up - down) / f64::from(2.0 * h), (more - less) / f64::from(2.0 * h));
                assert!((slope - d_log[i]).abs() < 1e-4, "{i}: {slope}, {}", d_log[i]);
                assert!((gain - d_entropy[i]).abs() < 1e-4, "{i}: {gain}, {}", d_entropy[i]);
            }
        }
        let outputs = [1.0_f32, 1.0, 1.0, 1.0];
        let (log, entropy) = log_probability(&outputs, &Taken::Choice(0), &mut [0.0; 4], &mut [0.0; 4]);
        assert!((log + 4.0_f64.ln()).abs() < 1e-12 && (entropy - 4.0_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn advantages_by_hand() {
        let (rewards, values) = ([1.0, 0.0, 2.0], [0.5_f32, 1.0, -1.0, 4.0]);
        for (terminated, lambda, expect) in [
            // With λ = 0 one step: r + 0.5 V' − V.
            (true, 0.0, [1.0 + 0.5 - 0.5, -0.5 - 1.0, 2.0 + 1.0]),
            (false, 0.0, [1.0 + 0.5 - 0.5, -0.5 - 1.0, 2.0 + 2.0 + 1.0]),
            // With λ = 1 the discounted return, minus V.
            (true, 1.0, [1.0 + 0.5 - 0.5, 1.0 - 1.0, 2.0 + 1.0]),
            (false, 1.0, [1.0 + 0.5 + 0.5 - 0.5, 1.0 + 1.0 - 1.0, 2.0 + 2.0 + 1.0]),
        ] {
            let mut got = vec![7.0];
            advantages(&rewards, &values, terminated, 0.5, lambda, &mut got);
            assert_eq!(got[0], 7.0);
            for (got, expect) in got[1..].iter().zip(expect) {
                assert!((got - expect).abs() < 1e-12, "{terminated} {lambda}: {got}, {expect}");
            }
        }
    }

    #[test]
    fn explained_variance_by_hand() {
        assert_eq!(explained_variance(&[1.0, 2.0], &[1.0, 2.0]), 1.0);
        assert_eq!(explained_variance(&[1.5, 1.5], &[1.0, 2.0]), 0.0);
        assert_eq!(explained_variance(&[2.0, 1.0], &[1.0, 2.0]), -3.0);
        assert_eq!(explained_variance(&[2.0, 1.0], &[1.0, 1.0]), 0.0);
    }

    #[test]
    fn actions_of_another_kind_are_not_taken() {
        let (choices, normal) = (ActionDistribution::Choices(2), ActionDistribution::Normal(1));
        assert!(
            taken(choices, Action::Discrete(1)).is_some()
                && taken(normal, Action::Continuous(&[2.0])).is_some()
        );
        for (distribution, action) in [
            (choices, Action::Discrete(2)),
            (choices, Action::Continuous(&[0.0])),
            (normal, Action::Discrete(0)),
            (normal, Action::Continuous(&[0.0, 0.0])),
            (normal, Action::Continuous(&[f64::NAN])),
        ] {
            assert!(taken(distribution, action).is_none());
        }
    }
}
