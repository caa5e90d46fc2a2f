//! Everything that is asked of a decision once it was taken.

use crate::faithful::Effect;
use crate::saliency::{Agreement, top};
use crate::trajectory::{ActionScale, Trajectory};
use crate::{Fill, Mask, PictureEditor, shuffled};
use foveate_core::{ActContext, Agent, Attention, ImageBuf, PatchGrid, PolicyError, Rng, Seed};

use super::StudyError;
use super::fields::Fields;
use super::play::{EpisodeStart, ObservedStep, play, policy_error};
use super::saved_decision::{DRAWS, InterventionEffect, SavedDecision, Shown};
use super::seen::SeenPicture;

/// Interventions, in the order of [`Probed::outcomes`].
pub(super) const INTERVENTIONS: [&str; 8] = [
    "cover what it looks at",
    "cover random other places",
    "cover others, same change",
    "cover the least attended",
    "keep only what it looks at",
    "keep only random places",
    "move the top patch",
    "move another patch",
];

/// Whose claims are tested on the same decisions, in the order of [`Probed::claims`].
pub(super) const CLAIMS: [&str; 5] = [
    "the agent's own gaze",
    "its null: gaze of other moments",
    "shuffled gaze",
    "random-weight agent",
    "blind agent",
];

/// How many patches the curves cover or keep; all patches come last.
const LEVELS: [usize; 12] = [0, 1, 2, 3, 5, 8, 12, 20, 40, 80, 160, 320];

/// What the study of a decision found. Arrays with two entries have one per fill.
pub(super) struct Probed {
    pub(super) step: usize,
    pub(super) outcomes: [[InterventionEffect; 8]; 2],
    pub(super) claims: [[Effect; 5]; 2],
    /// Change of the action with so many patches covered or kept: `[deletion, insertion][by claim, random][level]`.
    pub(super) curves: [[Vec<f64>; 2]; 2],
    pub(super) salient: Option<Salient>,
}

/// What perturbation saliency says of a decision.
pub(super) struct Salient {
    /// `[n_patches]`
    pub(super) map: Vec<f64>,
    pub(super) agreement: Agreement,
    /// Agreement with the attention at another moment.
    pub(super) null: Agreement,
}

/// What a decision is compared with.
pub(super) struct Comparisons<'a> {
    pub(super) scale: &'a ActionScale,
    pub(super) random: &'a dyn Agent,
    /// What it attended to at other moments, drawn twice.
    pub(super) others: [&'a [u32]; 2],
    /// Importance at another moment.
    pub(super) other_importance: &'a [f32],
    pub(super) saliency: bool,
    /// Where the contents of cells come from, if it attends to cells.
    pub(super) fields: Option<&'a Fields>,
    pub(super) seed: Seed,
}

/// The numbers of patches that the curves stop at.
pub(super) fn levels(grid: PatchGrid) -> Vec<usize> {
    LEVELS.into_iter().filter(|&level| level < grid.len()).chain([grid.len()]).collect()
}

/// Plays the episode and keeps decisions that are spread evenly over it, so many.
///
/// Which ones depends on how long the episode is, so it is played twice; once if it is as long as the world allows.
pub(super) fn take_spread(
    start: &dyn Fn() -> EpisodeStart,
    decisions: usize,
    fields: Option<&Fields>,
) -> Result<Vec<SavedDecision>, StudyError> {
    let first = start();
    let expected = first.env.spec().max_steps.unwrap_or(0).min(first.max_steps).min(u32::MAX as usize);
    let (taken, length) = take(first, &spread(expected, decisions), fields, &mut |_| Ok(()))?;
    if length == expected {
        return Ok(taken);
    }
    let steps = spread(length, decisions);
    Ok(take(start().until(&steps), &steps, fields, &mut |_| Ok(()))?.0)
}

/// Plays the episode and keeps the decisions at `steps`; beside them the episode's length.
pub(super) fn take(
    start: EpisodeStart,
    steps: &[usize],
    fields: Option<&Fields>,
    also: &mut dyn FnMut(&ObservedStep<'_>) -> Result<(), StudyError>,
) -> Result<(Vec<SavedDecision>, usize), StudyError> {
    let (job, scale) = (start.job, super::play::action_scale(start.env.spec()));
    let mut taken = Vec::new();
    let (episode, _) = play(start, fields, &|step| steps.contains(&step), &mut |mut moment| {
        also(&moment)?;
        let Some(before) = moment.before.take() else { return Ok(()) };
        let seen = moment.seen.clone();
        let action = moment.decision.action.to_vec();
        taken.push(match moment.grid {
            Some(grid) => SavedDecision {
                step: moment.step,
                before,
                seen,
                action,
                grid,
                importance: moment.importance.to_vec(),
                claim: moment.claim.to_vec(),
            },
            None => without_attention(moment.step, before, seen, action, &scale)
                .map_err(|source| policy_error(job, moment.step, source))?,
        });
        Ok(())
    })?;
    Ok((taken, episode.len()))
}

/// Places that a policy without attention, or with soft attention, is said to look at.
const CLAIMED: usize = 10;

/// The places that the attention claims to matter, most important first: those that were selected, or of soft attention
/// the ten with the largest weights.
pub(super) fn claim(attention: &Attention<'_>) -> Vec<u32> {
    let mut claim = attention.by_rank();
    if attention.selected().is_none() {
        claim.truncate(CLAIMED);
    }
    claim
}

/// Where an attention lies in the picture.
pub(super) struct Located {
    /// The places.
    pub(super) grid: PatchGrid,
    /// `[places]`: how much each is attended to.
    pub(super) importance: Vec<f32>,
    /// The places that are claimed to matter, most important first.
    pub(super) claim: Vec<u32>,
}

/// Where `attention` lies in what was seen: at its patches, or, of soft attention over cells whose fields were measured, at the places
/// that change the cells. `None` where its tokens have no place in the picture.
pub(super) fn located(
    attention: &Attention<'_>,
    seen: &SeenPicture,
    fields: Option<&Fields>,
) -> Option<Located> {
    let grid = attention.tokens().grid()?;
    if let Some(fields) = fields.filter(|fields| fields.are_of(attention)) {
        let weights: Vec<f64> = attention.importance().iter().map(|&weight| weight.into()).collect();
        let pooled = fields.pool(&weights);
        let importance = pooled.iter().map(|&weight| weight as f32).collect();
        return Some(Located { grid: fields.grid(), importance, claim: top(&pooled, CLAIMED) });
    }
    let importance = seen.restored(&attention.importance());
    Some(Located { grid, importance, claim: seen.places(claim(attention)) })
}

/// A decision of a policy without attention to places of the picture: perturbation saliency claims what matters.
fn without_attention(
    step: usize,
    before: (Box<dyn Agent>, ActContext),
    seen: SeenPicture,
    action: Vec<f64>,
    scale: &ActionScale,
) -> Result<SavedDecision, PolicyError> {
    let [width, height] = seen.size();
    let side = width.min(height);
    let grid = PatchGrid::tile(width, height, (side / 12).max(1), (side / 24).max(1))?;
    let mut taken = SavedDecision { step, before, seen, action, grid, importance: vec![], claim: vec![] };
    let map = taken.saliency(scale)?;
    let map = taken.perturber().on_patches(&map, grid);
    taken.claim = top(&map, CLAIMED.min(grid.len()));
    taken.importance = map.iter().map(|&value| value as f32).collect();
    Ok(taken)
}

/// The steps of an episode whose decisions are tested: `count` of them, evenly spread.
pub(super) fn spread(steps: usize, count: usize) -> Vec<usize> {
    let count = count.min(steps);
    (0..count).map(|i| (2 * i + 1) * steps / (2 * count)).collect()
}

/// Puts one decision to the test.
pub(super) fn probe(taken: &SavedDecision, foils: &Comparisons<'_>) -> Result<Probed, PolicyError> {
    let scale = foils.scale;
    let mut outcomes = [[InterventionEffect::default(); 8]; 2];
    let mut claims = [[Effect::default(); 5]; 2];
    let mut random = foils.random.boxed_clone();
    let mut bytes = vec![];
    let random_claim = random
        .act(taken.seen.observation(taken.seen.picture(), &mut bytes), &mut ActContext::default())?
        .attention
        .as_ref()
        .and_then(|attention| located(attention, &taken.seen, foils.fields))
        .map(|located| located.claim);
    for (f, fill) in Fill::ALL.into_iter().enumerate() {
        let mut rng = foils.seed.child("fill", f as u64).rng();
        let scene = taken.editor(fill);
        outcomes[f] = intervene(taken, &scene, scale, &mut rng)?;
        let own = Effect { claimed: outcomes[f][0].action, elsewhere: outcomes[f][1].action };
        let mut other = |claim: &[u32], eyes| taken.claim_effect(&scene, claim, eyes, scale, &mut rng);
        claims[f] = [
            own,
            other(foils.others[0], Shown::Picture)?,
            other(foils.others[1], Shown::Picture)?,
            random_claim.as_deref().map_or(Ok(Effect::default()), |claim| other(claim, Shown::Picture))?,
            other(&taken.claim, Shown::Grey)?,
        ];
    }
    let salient = if foils.saliency { Some(salient(taken, foils)?) } else { None };
    Ok(Probed { step: taken.step, outcomes, claims, curves: curves(taken, foils)?, salient })
}

/// The claims of an agent on its own decisions, and their null.
pub(super) fn own_claims(
    taken: &SavedDecision,
    other: &[u32],
    scale: &ActionScale,
    seed: Seed,
) -> Result<[[Effect; 2]; 2], PolicyError> {
    let mut out = [[Effect::default(); 2]; 2];
    for (f, fill) in Fill::ALL.into_iter().enumerate() {
        let mut rng = seed.child("fill", f as u64).rng();
        let scene = taken.editor(fill);
        out[f][0] = taken.claim_effect(&scene, &taken.claim, Shown::Picture, scale, &mut rng)?;
        out[f][1] = taken.claim_effect(&scene, other, Shown::Picture, scale, &mut rng)?;
    }
    Ok(out)
}

fn intervene(
    taken: &SavedDecision,
    scene: &PictureEditor<'_>,
    scale: &ActionScale,
    rng: &mut Rng,
) -> Result<[InterventionEffect; 8], PolicyError> {
    let grid = taken.grid;
    let mask = taken.mask(&taken.claim);
    let of = |changed: &ImageBuf| InterventionEffect::of(taken, changed, scale);
    let covered = of(&scene.cover(&mask))?;
    let covers: Vec<Mask> = (0..DRAWS).map(|_| Mask::random_elsewhere(&mask, grid, rng)).collect();
    let elsewhere = covers.iter().map(|cover| of(&scene.cover(cover))).collect::<Result<Vec<_>, _>>()?;
    // Of the random covers, the one that changes the picture most nearly as much as covering the claim does.
    let apart = |o: &InterventionEffect| (o.size - covered.size).abs();
    let alike = elsewhere.iter().min_by(|a, b| apart(a).total_cmp(&apart(b))).copied().unwrap_or_default();
    let mut least: Vec<u32> = (0..grid.len() as u32).collect();
    least.sort_by(|&i, &j| taken.importance[i as usize].total_cmp(&taken.importance[j as usize]));
    let least = of(&scene.cover(&Mask::elsewhere(&mask, grid, least)))?;
    let kept = of(&scene.keep(&mask))?;
    let kept_random =
        covers.iter().take(DRAWS / 3).map(|cover| of(&scene.keep(cover))).collect::<Result<Vec<_>, _>>()?;

    // Patches that do not touch what is looked at, for moves.
    let free: Vec<u32> =
        shuffled(grid.len(), rng).into_iter().filter(|&patch| !mask.touches(grid, patch)).collect();
    let (mut moved, mut moved_other) = (Vec::new(), Vec::new());
    if let Some(&first) = taken.claim.first() {
        for pair in free.chunks_exact(2).take(DRAWS / 3) {
            moved.push(of(&scene.move_patch(grid, first, pair[1]))?);
            moved_other.push(of(&scene.move_patch(grid, pair[0], pair[1]))?);
        }
    }
    Ok([
        covered,
        InterventionEffect::mean(&elsewhere),
        alike,
        least,
        kept,
        InterventionEffect::mean(&kept_random),
        InterventionEffect::mean(&moved),
        InterventionEffect::mean(&moved_other),
    ])
}

fn curves(taken: &SavedDecision, foils: &Comparisons<'_>) -> Result<[[Vec<f64>; 2]; 2], PolicyError> {
    let scene = taken.editor(Fill::Blur);
    let importance: Vec<f64> = taken.importance.iter().map(|&v| f64::from(v)).collect();
    let by_claim = top(&importance, taken.grid.len());
    let random = shuffled(taken.grid.len(), &mut foils.seed.child("curve", 0).rng());
    let mut out: [[Vec<f64>; 2]; 2] = Default::default();
    for (order, patches) in [by_claim, random].iter().enumerate() {
        for level in levels(taken.grid) {
            let mask = taken.mask(&patches[..level]);
            out[0][order].push(taken.effect(scene.cover(&mask).as_image(), foils.scale)?);
            out[1][order].push(taken.effect(scene.keep(&mask).as_image(), foils.scale)?);
        }
    }
    Ok(out)
}

fn salient(taken: &SavedDecision, foils: &Comparisons<'_>) -> Result<Salient, PolicyError> {
    let places = taken.saliency(foils.scale)?;
    let map = taken.perturber().on_patches(&places, taken.grid);
    let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
    let agreement = Agreement::of(taken.grid, &map, &wide(&taken.importance), &taken.claim);
    let null = Agreement::of(taken.grid, &map, &wide(foils.other_importance), foils.others[0]);
    Ok(Salient { map, agreement, null })
}

/// Another moment for every tested one: of another episode, or, when there is only one, of another time in it.
pub(super) fn other_moment(counts: &[usize], episode: usize, index: usize, rng: &mut Rng) -> (usize, usize) {
    let others: Vec<usize> = (0..counts.len()).filter(|&e| e != episode && counts[e] > 0).collect();
    if others.is_empty() {
        let n = counts[episode].max(1);
        return (episode, (index + 1 + rng.below(n.saturating_sub(1) as u64) as usize) % n);
    }
    let other = others[rng.below(others.len() as u64) as usize];
    (other, rng.below(counts[other] as u64) as usize)
}

/// Returns whether any episode has attention.
pub(super) fn any_attention(episodes: &[Trajectory]) -> bool {
    episodes.iter().any(|episode| episode.grid.is_some())
}

#[cfg(test)]
mod tests {
    use foveate_core::{Selected, Tokens};

    use super::*;

    #[test]
    fn a_claim_is_by_rank_and_of_soft_attention_the_ten_largest_weights() {
        let grid = PatchGrid::tile(12, 1, 1, 1).expect("fits");
        let weights: Vec<f32> = (0..12_u8).map(f32::from).collect();
        // In the order of telling 2, 7, 5; by their ranks 7, 2, 5, which are not those of the weights.
        let selected = Selected { tokens: &[2, 7, 5], ranks: &[1, 0, 2] };
        let attention = Attention::patches(grid, &weights, selected).expect("they fit together");
        assert_eq!(claim(&attention), [7, 2, 5]);
        let cells = Tokens::Cells { rows: 1, columns: 12 };
        let soft = Attention::soft(cells, 1, 1, &weights).expect("they fit together");
        assert_eq!(claim(&soft), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
    }
}
