//! The replay buffer: the last transitions, drawn uniformly or by priority.

use foveate_core::{LearnError, Rng, StateDict, StateReader, Tensor, TensorData};

use crate::sum_tree::SumTree;

/// Most transitions that a buffer may hold.
pub(super) const MOST: usize = 10_000_000;

/// The newest transitions, at most `capacity`; the oldest are overwritten first.
///
/// All transitions lie in a few flat vectors, which never grow beyond the capacity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Replay {
    capacity: usize,
    /// Bytes of an observation.
    width: usize,
    /// Where the next transition is written.
    next: usize,
    /// `[len, 2, width]`: the observations before and after.
    observations: Vec<u8>,
    /// `[len]`
    actions: Vec<u32>,
    /// `[len]`: the discounted rewards of the steps of a transition.
    rewards: Vec<f32>,
    /// `[len]`: the factor of the value of the observation after; 0 where the task ended.
    discounts: Vec<f32>,
    /// Priorities to the power of α; empty when all are drawn equally.
    priorities: SumTree,
    /// What was overwritten since [`Replay::begin`]; `None` when nothing is to be undone.
    undo: Option<Undo>,
}

/// What a buffer was before it changed.
#[derive(Debug, Clone, PartialEq, Default)]
struct Undo {
    len: usize,
    next: usize,
    largest: f64,
    /// Of each overwritten transition, in order: its index, choice, rewards and discount.
    transitions: Vec<(usize, u32, f32, f32)>,
    /// `[transitions, 2, width]`: their observations.
    observations: Vec<u8>,
    /// Each changed priority, in order: its index and its old value.
    priorities: Vec<(usize, f64)>,
}

/// A transition of one or more steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry<'a> {
    /// The observation before.
    pub(super) before: &'a [u8],
    /// The choice.
    pub(super) action: usize,
    /// The discounted rewards.
    pub(super) reward: f32,
    /// The factor of the value of the observation after.
    pub(super) discount: f32,
    /// The observation after.
    pub(super) after: &'a [u8],
}

impl Replay {
    /// A buffer for `capacity` transitions, at least one, of observations of `width` bytes.
    pub(super) fn new(capacity: usize, width: usize, prioritised: bool) -> Self {
        Replay {
            capacity: capacity.max(1),
            width,
            next: 0,
            observations: vec![],
            actions: vec![],
            rewards: vec![],
            discounts: vec![],
            priorities: SumTree::new(if prioritised { capacity.max(1) } else { 0 }),
            undo: None,
        }
    }

    /// Keeps from now on what is overwritten, until [`Replay::keep`] or [`Replay::undo`].
    pub(super) fn begin(&mut self) {
        let (len, next, largest) = (self.len(), self.next, self.priorities.largest);
        self.undo = Some(Undo { len, next, largest, ..Undo::default() });
    }

    /// Accepts all changes since [`Replay::begin`].
    pub(super) fn keep(&mut self) {
        self.undo = None;
    }

    /// Takes back all changes since [`Replay::begin`]; without it, does nothing.
    pub(super) fn undo(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        let Undo { len, next, largest, transitions, observations, priorities } = undo;
        let pair = 2 * self.width;
        for (i, &(at, action, reward, discount)) in transitions.iter().enumerate().rev() {
            (self.actions[at], self.rewards[at], self.discounts[at]) = (action, reward, discount);
            self.observations[at * pair..][..pair].copy_from_slice(&observations[i * pair..][..pair]);
        }
        self.observations.truncate(len * pair);
        self.actions.truncate(len);
        self.rewards.truncate(len);
        self.discounts.truncate(len);
        for &(at, priority) in priorities.iter().rev() {
            self.priorities.set(at, priority);
        }
        (self.next, self.priorities.largest) = (next, largest);
    }

    /// Number of transitions.
    pub(super) fn len(&self) -> usize {
        self.actions.len()
    }

    /// The sum of all priorities; 0 when all are drawn equally.
    pub(super) fn total(&self) -> f64 {
        self.priorities.total()
    }

    /// Adds a transition, in place of the oldest when the buffer is full; it gets the largest priority.
    pub(super) fn push(&mut self, entry: Entry<'_>) {
        let Entry { before, action, reward, discount, after } = entry;
        let (at, width) = (self.next, self.width);
        if at == self.len() {
            self.observations.extend_from_slice(before);
            self.observations.extend_from_slice(after);
            self.actions.push(action as u32);
            self.rewards.push(reward);
            self.discounts.push(discount);
        } else {
            if let Some(undo) = &mut self.undo {
                undo.transitions.push((at, self.actions[at], self.rewards[at], self.discounts[at]));
                undo.observations.extend_from_slice(&self.observations[2 * at * width..][..2 * width]);
            }
            let (own_before, own_after) =
                self.observations[2 * at * width..][..2 * width].split_at_mut(width);
            own_before.copy_from_slice(before);
            own_after.copy_from_slice(after);
            (self.actions[at], self.rewards[at], self.discounts[at]) = (action as u32, reward, discount);
        }
        if !self.priorities.is_empty() {
            self.change_priority(at, self.priorities.largest);
        }
        self.next = (at + 1) % self.capacity;
    }

    /// Transition `index`.
    pub(super) fn get(&self, index: usize) -> Entry<'_> {
        let (before, after) =
            self.observations[2 * index * self.width..][..2 * self.width].split_at(self.width);
        Entry {
            before,
            action: self.actions[index] as usize,
            reward: self.rewards[index],
            discount: self.discounts[index],
            after,
        }
    }

    /// The index of a random transition, in proportion to its priority; there must be one.
    pub(super) fn draw(&self, rng: &mut Rng) -> usize {
        if self.priorities.is_empty() {
            rng.below(self.len() as u64) as usize
        } else {
            self.priorities.find(rng.next_f64() * self.priorities.total()).min(self.len() - 1)
        }
    }

    /// The priority of transition `index`.
    pub(super) fn priority(&self, index: usize) -> f64 {
        self.priorities.get(index)
    }

    /// Sets the priority of transition `index`, above 0; no effect when all are drawn equally.
    pub(super) fn set_priority(&mut self, index: usize, priority: f64) {
        if !self.priorities.is_empty() {
            self.priorities.largest = self.priorities.largest.max(priority);
            self.change_priority(index, priority);
        }
    }

    fn change_priority(&mut self, index: usize, priority: f64) {
        if let Some(undo) = &mut self.undo {
            undo.priorities.push((index, self.priorities.get(index)));
        }
        self.priorities.set(index, priority);
    }

    /// Adds its part of a state.
    pub(super) fn save(&self, state: &mut StateDict) {
        let bytes = TensorData::U8(self.observations.clone());
        let shape = vec![self.len(), 2, self.width];
        state.insert(
            "replay.observations".into(),
            Tensor::new(shape, bytes).expect("as many as its shape says"),
        );
        let numbers =
            |numbers: &[u32]| Tensor::from(numbers.iter().map(|&n| u64::from(n)).collect::<Vec<_>>());
        state.insert("replay.actions".into(), numbers(&self.actions));
        state.insert("replay.rewards".into(), Tensor::from(self.rewards.clone()));
        state.insert("replay.discounts".into(), Tensor::from(self.discounts.clone()));
        state.insert("replay.next".into(), Tensor::from(vec![self.next as u64]));
        if !self.priorities.is_empty() {
            let mut all: Vec<f64> = (0..self.len()).map(|i| self.priorities.get(i)).collect();
            all.push(self.priorities.largest);
            state.insert("replay.priorities".into(), Tensor::from(all));
        }
    }

    /// The buffer of this state, with the capacity and the kind of this one.
    ///
    /// # Errors
    /// When something is missing or does not fit.
    pub(super) fn restored(&self, saved: StateReader<'_>, choices: usize) -> Result<Self, LearnError> {
        let bad = |why: String| Err(LearnError::BadState { why });
        let actions = saved.u64s("replay.actions")?;
        let (len, width) = (actions.len(), self.width);
        let (observations, next) = (saved.bytes("replay.observations")?, saved.counts("replay.next", 1)?[0]);
        let (rewards, discounts) = (saved.f32s("replay.rewards", 1)?, saved.f32s("replay.discounts", 1)?);
        if len > self.capacity || next >= self.capacity as u64 || (len < self.capacity && next != len as u64)
        {
            return bad(format!(
                "{len} transitions and the next at {next}, in a replay buffer of {}; keep its size",
                self.capacity
            ));
        }
        if Some(observations.len()) != len.checked_mul(2 * width)
            || rewards.len() != len
            || discounts.len() != len
        {
            return bad(format!(
                "{len} transitions with {} bytes of observations, {} rewards and {} discounts",
                observations.len(),
                rewards.len(),
                discounts.len()
            ));
        }
        if let Some(action) = actions.iter().find(|&&action| action >= choices as u64) {
            return bad(format!("a transition with choice {action} of {choices}"));
        }
        let mut replay = Replay {
            next: next as usize,
            observations: observations.to_vec(),
            actions: actions.iter().map(|&action| action as u32).collect(),
            rewards: rewards.to_vec(),
            discounts: discounts.to_vec(),
            ..Replay::new(self.capacity, width, !self.priorities.is_empty())
        };
        if !self.priorities.is_empty() {
            let priorities = saved.sigmas("replay.priorities", len + 1)?;
            for (i, &priority) in priorities[..len].iter().enumerate() {
                replay.priorities.set(i, priority);
            }
            replay.priorities.largest = priorities[len];
        }
        Ok(replay)
    }
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;

    fn push(replay: &mut Replay, n: u8) {
        let (before, after) = ([n, n], [n + 1, n + 1]);
        let entry = Entry {
            before: &before,
            action: usize::from(n % 3),
            reward: n.into(),
            discount: 0.5,
            after: &after,
        };
        replay.push(entry);
    }

    #[test]
    fn the_oldest_are_overwritten() {
        let mut replay = Replay::new(4, 2, false);
        for n in 0..6 {
            push(&mut replay, n);
        }
        let rewards: Vec<f32> = (0..replay.len()).map(|i| replay.get(i).reward).collect();
        assert_eq!(rewards, [4.0, 5.0, 2.0, 3.0]);
        assert_eq!(replay.get(1).before, [5, 5]);
        assert_eq!(replay.get(1).after, [6, 6]);
        assert_eq!(replay.get(1).action, 2);
        let mut rng = Seed::root(1).rng();
        let mut counts = [0; 4];
        (0..4000).for_each(|_| counts[replay.draw(&mut rng)] += 1);
        assert!(counts.iter().all(|&n| (850..1150).contains(&n)), "{counts:?}");
    }

    #[test]
    fn priorities_are_frequencies() {
        let mut replay = Replay::new(5, 2, true);
        for n in 0..4 {
            push(&mut replay, n);
        }
        for (index, priority) in [1.0, 2.0, 3.0, 4.0].into_iter().enumerate() {
            replay.set_priority(index, priority);
        }
        assert_eq!(replay.total(), 10.0);
        let mut rng = Seed::root(1).rng();
        let mut counts = [0; 4];
        (0..10_000).for_each(|_| counts[replay.draw(&mut rng)] += 1);
        for (n, count) in counts.into_iter().enumerate() {
            let expect = 1000 * (n as i32 + 1);
            assert!((count - expect).abs() < 200, "{counts:?}");
        }
        // A new one gets the largest priority so far.
        push(&mut replay, 9);
        assert_eq!((replay.priority(4), replay.total()), (4.0, 14.0));
    }

    #[test]
    fn changes_can_be_taken_back() {
        for prioritised in [false, true] {
            for count in [0, 3, 8] {
                let mut replay = Replay::new(5, 2, prioritised);
                (0..count).for_each(|n| push(&mut replay, n));
                let before = replay.clone();
                for more in [1, 4, 12] {
                    replay.begin();
                    for n in 0..more {
                        push(&mut replay, 100 + n);
                        replay.set_priority(0, 7.0 + f64::from(n));
                    }
                    assert_ne!(replay, before);
                    let changed = replay.clone();
                    replay.undo();
                    assert_eq!(replay, before, "{more} after {count}");
                    replay = changed;
                    replay.keep();
                    replay.undo();
                    assert!(replay.len() > before.len() || replay.next != before.next || more > 4);
                    replay = before.clone();
                }
            }
        }
    }

    #[test]
    fn a_saved_buffer_is_the_same() {
        for prioritised in [false, true] {
            for count in [0, 3, 7] {
                let new = Replay::new(5, 2, prioritised);
                let mut replay = new.clone();
                (0..count).for_each(|n| push(&mut replay, n));
                if count > 0 {
                    replay.set_priority(1, 0.3);
                }
                let mut state = StateDict::new();
                replay.save(&mut state);
                assert_eq!(new.restored(StateReader(&state), 3).expect("its own"), replay);
                if count > 0 {
                    let said =
                        new.restored(StateReader(&state), 2).expect_err("a choice of three").to_string();
                    assert!(said.contains("choice 2 of 2"), "{said}");
                }
                if count == 7 {
                    let small = Replay::new(4, 2, prioritised);
                    assert!(small.restored(StateReader(&state), 3).is_err());
                }
                for name in state.keys() {
                    let mut broken = state.clone();
                    broken.insert(name.clone(), Tensor::from(vec![0.5_f64; 9]));
                    assert!(new.restored(StateReader(&broken), 3).is_err(), "{name}");
                }
            }
        }
    }
}
