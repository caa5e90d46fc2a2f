//! The report's figures.

use crate::charts::{
    Card, DotPlot, DotRow, PositionsPanel, SaliencyRow, around, attention_map, cards, curves, dots,
    hold_lengths, importance, over_time, patch_samples, percent, positions, region_shares, saliency_maps,
    traces,
};
use crate::estimate::Estimate;
use crate::faithful::Conclusion;
use crate::figure::{Figure, Ink, short};
use crate::looks::{around_changes, density, holds, regions, typical_hold};
use crate::saliency::BUMP_PX;
use crate::trajectory::Dimension;
use crate::{Fill, Mask, whiten};
use foveate_core::{Attention, Image, ImageBuf, Seed, Selected};

use super::Mean;
use super::conclude::Findings;
use super::conditions::Condition;
use super::phases::{Found, LookedAt};
use super::positions::Encoded;
use super::probes::levels;
use super::report_page::count;

/// The figures of every section.
pub(super) struct Figures {
    pub(super) looks: Vec<Figure>,
    pub(super) interest: Vec<Figure>,
    pub(super) tests: Vec<Figure>,
    pub(super) world: Vec<Figure>,
    pub(super) positions: Vec<Figure>,
    pub(super) saliency: Vec<Figure>,
}

impl Figures {
    pub(super) fn all(&self) -> impl Iterator<Item = &Figure> {
        [&self.looks, &self.interest, &self.tests, &self.world, &self.positions, &self.saliency]
            .into_iter()
            .flatten()
    }
}

pub(super) fn figures(found: &Found, findings: &Findings, dimensions: &[Dimension]) -> Figures {
    let n = found.episodes.len();
    let grid = found.grid;
    let mut looks = vec![];
    let mut interest = vec![];
    let mut shown = found.episodes[0].clone();
    for action in &mut shown.actions {
        *action = found.scale.shown(action);
    }
    if found.has_attention {
        let density = density(&found.episodes, grid);
        let places = regions(&density, grid);
        let held = holds(&found.episodes);
        let changes = around_changes(&found.episodes, &found.scale);
        let mean = mean_picture(found);
        looks.push(attention_map(
            &density,
            grid,
            mean.as_image(),
            format!("Looks per place over {}, over the mean of the pictures.", count(n, "episode")),
        ));
        looks.push(region_shares(
            &places,
            "Which part of all looks goes to each ninth of the picture, and how many times its share of the area that is."
                .into(),
        ));
        looks.push(over_time(
            &shown,
            grid,
            "The shown episode: where the looked-at patches lie, in both directions of the picture.".into(),
        ));
        looks.push(hold_lengths(
            &held,
            format!(
                "Half of all looks are part of a hold of at most {} in a row.",
                count(typical_hold(&held), "decision")
            ),
        ));
        looks.push(around(
            &changes,
            format!(
                "Patches not looked at one decision before, around the {} largest changes of the action (one decision \
                 in twenty); {}.",
                changes.changes,
                intervals("band", n)
            ),
        ));
        let votes = found.counts.quantile(0.95);
        interest.push(importance(
            &found.counts,
            1.0,
            format!(
                "{} patches in {}; one in twenty has {} votes or more. {} The scale of counts is logarithmic; what lies \
                 beyond the last bar is counted in it.",
                short(found.counts.total() as f64),
                count(n, "episode"),
                short(votes),
                whose_votes(found)
            ),
        ));
        interest.push(patch_samples(
            &found.samples,
            "Drawn at random from the tested pictures, within each range sorted; the number is the importance.".into(),
        ));
    }
    looks.push(traces(&shown, dimensions));
    let mut tests = vec![faithfulness_figure(findings, n)];
    tests.push(cards_figure(found, dimensions));
    tests.push(interventions_figure(findings, n));
    if found.has_attention {
        tests.push(scores_figure(findings, n));
    }
    tests.extend(curve_figures(found));
    let saliency = if found.has_attention { saliency_figures(found, findings) } else { vec![] };
    let world = if found.erasures.is_empty() { vec![] } else { vec![erasures_figure(found)] };
    let encoded = &found.encoded;
    let positions =
        if encoded.is_empty() { vec![] } else { vec![positions_figure(encoded, &mean_picture(found))] };
    Figures { looks, interest, tests, world, positions, saliency }
}

fn faithfulness_figure(findings: &Findings, episodes: usize) -> Figure {
    let mut rows = vec![];
    for claim in &findings.claims {
        for (fill, of) in Fill::ALL.into_iter().zip([claim.blur, claim.mean]) {
            rows.push(DotRow {
                name: claim.name.clone(),
                kind: said(fill).to_owned(),
                ink: ink(fill),
                value: of.value,
                interval: of.interval,
                remark: claim.verdict.filter(|_| fill == Fill::Blur).map(|verdict| {
                    let ink = if verdict == Conclusion::Supported { Ink::Other } else { Ink::Muted };
                    (ink, verdict.to_string())
                }),
            });
        }
    }
    let lowest = rows.iter().map(|row| row.interval.map_or(row.value, |[low, _]| low)).fold(0.0, f64::min);
    let null = &findings.claims[1];
    let band = null.blur.interval.zip(null.mean.interval);
    let band = band.map(|(blur, mean)| [blur[0].min(mean[0]), blur[1].max(mean[1])]);
    dots(DotPlot {
        name: "faithfulness",
        title: "Is it true? Faithfulness of every claim",
        caption: format!(
            "How much more the action changes when the claimed places are covered than when as many random other pixels \
             are, in parts of both together: 0 means no more, 1 that covering elsewhere changes nothing. Orange: covered \
             by blur, blue: by the mean colour; {}. A claim is supported when its bar lies above that of the null of the \
             same colour for both; the last line has a null of its own, the attention of that agent at other moments.",
            intervals("bars", episodes)
        ),
        wide: true,
        axis: "faithfulness",
        domain: Some([(lowest * 1.05).clamp(-1.0, -0.1), 1.0]),
        band: band.map(|band| (band, "null")),
        label: short,
        rows,
    })
}

fn interventions_figure(findings: &Findings, episodes: usize) -> Figure {
    let rows = findings.interventions.iter().map(|i| DotRow {
        name: i.name.clone(),
        kind: if i.fill == "blur" { said(Fill::Blur) } else { said(Fill::Mean) }.to_owned(),
        ink: if i.fill == "blur" { Ink::Attention } else { Ink::Control },
        value: i.change,
        interval: i.interval,
        remark: None,
    });
    dots(DotPlot {
        name: "interventions",
        title: "What each intervention does to the action",
        caption: format!(
            "Mean change of the action, in parts of its whole range; {}. How large each change of the picture is, says the \
             table.",
            intervals("bars", episodes)
        ),
        wide: false,
        axis: "change of the action",
        domain: None,
        band: None,
        label: percent,
        rows: rows.collect(),
    })
}

fn scores_figure(findings: &Findings, episodes: usize) -> Figure {
    let rows = findings.drives.iter().map(|d| DotRow {
        name: d.name.clone(),
        kind: if d.fill == "mean" { said(Fill::Mean).to_owned() } else { d.fill.clone() },
        ink: match &*d.fill {
            "blur" => Ink::Attention,
            "mean" => Ink::Control,
            _ => Ink::Text,
        },
        value: d.mean,
        interval: d.interval,
        remark: None,
    });
    // Both fills of a condition side by side.
    let mut rows: Vec<DotRow> = rows.collect();
    let order: Vec<String> = Condition::all().iter().map(|c| c.name().to_owned()).collect();
    rows.sort_by_key(|row| order.iter().position(|name| *name == row.name));
    dots(DotPlot {
        name: "scores",
        title: "What each intervention does to whole episodes",
        caption: format!(
            "Score with the intervention in every step of {}; {}.",
            count(episodes, "episode"),
            intervals("bars", episodes)
        ),
        wide: false,
        axis: "score",
        domain: None,
        band: None,
        label: short,
        rows,
    })
}

fn mean_picture(found: &Found) -> ImageBuf {
    let bytes = found.mean_picture.iter().map(|&v| v.round() as u8).collect();
    let [width, height] = found.shown.picture;
    ImageBuf::from_rgb(width, height, bytes).unwrap_or_else(|| ImageBuf::black(width, height))
}

fn erasures_figure(found: &Found) -> Figure {
    let mut rows = vec![];
    for erasure in &found.erasures {
        let mut row = |kind: &str, ink: Ink, of: &Estimate, remark: Option<(Ink, String)>| {
            rows.push(DotRow {
                name: erasure.kind.clone(),
                kind: kind.into(),
                ink,
                value: of.value,
                interval: of.interval,
                remark,
            });
        };
        let remark = erasure.cost.map(|(lost, _)| (Ink::Text, format!("score {}", short(-lost.round()))));
        row("change of the action", Ink::Attention, &erasure.change, remark);
        row("its share of the picture", Ink::Muted, &erasure.pixels, None);
        if let Some(looked_at) = &erasure.looked_at {
            row("its share of what it looks at", Ink::Control, looked_at, None);
        }
    }
    dots(DotPlot {
        name: "erased",
        title: "Things taken out of the world",
        caption: format!(
            "A kind of thing is taken out and the picture drawn anew. On the right: what whole episodes without it score more or \
             less. {}.",
            intervals("Bars", found.episodes.len())
        ),
        wide: true,
        axis: "share",
        domain: None,
        band: None,
        label: percent,
        rows,
    })
}

fn positions_figure(encoded: &[Encoded], under: &ImageBuf) -> Figure {
    let panels: Vec<PositionsPanel<'_>> = encoded
        .iter()
        .map(|of| PositionsPanel {
            name: &of.quantity,
            remark: format!(
                "told: {}; one deviation is {}",
                of.r2.plain(),
                short((of.deviation * 1000.0).round() / 1000.0)
            ),
            moves: &of.moves,
        })
        .collect();
    positions(
        &panels,
        under,
        "Each arrow is a selected patch, numbered by its rank. It leads from where the patch lies on average when the quantity is \
         one standard deviation below its mean to where it lies at one above; a dot stays where it is. Told is the share of its variance \
         (R²) that a linear function of all positions explains in episodes that it was not fitted to."
            .into(),
    )
}

fn curve_figures(found: &Found) -> Vec<Figure> {
    let levels = levels(found.grid);
    let points = |which: usize, order: usize| -> Vec<Mean> {
        (0..levels.len())
            .map(|level| found.over_episodes(|p| p.curves[which][order].get(level).copied()))
            .collect()
    };
    let figure = |which, name, title, caption: &str, axis| {
        let series = [
            ("most important first", Ink::Attention, points(which, 0)),
            ("in random order", Ink::Control, points(which, 1)),
        ];
        curves(name, title, caption.to_owned(), axis, &levels, &series)
    };
    vec![
        figure(
            0,
            "deletion",
            "Deletion: covering more and more",
            "How far the action moves as patches are blurred; the sooner it moves, the more the first ones mattered.",
            "patches covered (uneven steps)",
        ),
        figure(
            1,
            "insertion",
            "Insertion: uncovering more and more",
            "How far the action is from what it was while only these patches are sharp; the sooner it comes back, the \
             more the first ones suffice.",
            "patches kept (uneven steps)",
        ),
    ]
}

fn cards_figure(found: &Found, dimensions: &[Dimension]) -> Figure {
    let names: Vec<String> = dimensions.iter().map(|d| d.name.clone()).collect();
    let made = found.cards.iter().map(|taken| {
        let picture = taken.seen.newest();
        let (scene, flat) = (taken.editor(Fill::Blur), taken.editor(Fill::Mean));
        let mask = taken.mask(&taken.claim);
        let mut rng = Seed::root(taken.step as u64).child("card", 0).rng();
        let random = Mask::random_elsewhere(&mask, taken.grid, &mut rng);
        let ranks: Vec<u32> = (0..taken.claim.len() as u32).collect();
        let selected = Selected { tokens: &taken.claim, ranks: &ranks };
        let attended = match Attention::patches(taken.grid, &taken.importance, selected) {
            Ok(attention) => whiten(picture, &attention),
            // A claim that fits no grid marks nothing.
            Err(_) => owned(picture),
        };
        let free = (0..taken.grid.len() as u32).rev().find(|&patch| !mask.touches(taken.grid, patch));
        let first = taken.claim.first().copied().unwrap_or(0);
        let changed = [
            ("blur it", scene.cover(&mask)),
            ("blur elsewhere", scene.cover(&random)),
            ("grey it out", flat.cover(&mask)),
            ("grey elsewhere", flat.cover(&random)),
            ("nothing but it", scene.keep(&mask)),
            ("top patch moved", flat.move_patch(taken.grid, first, free.unwrap_or(first))),
        ];
        let mut shots = vec![("what it looks at", attended, found.scale.shown(&taken.action), 0.0)];
        for (name, changed) in changed {
            // It acted on this very picture size before: it takes it again.
            let action = taken.act(changed.as_image()).unwrap_or_else(|_| taken.action.clone());
            let change = found.scale.distance(&action, &taken.action);
            shots.push((name, owned(taken.seen.newest_of(&changed)), found.scale.shown(&action), change));
        }
        Card { step: taken.step, shots }
    });
    let caption = "Decisions of the shown episode, evenly spaced and not chosen, each taken again from the same state of \
                   the agent on a changed picture. The change is in parts of the action's whole range."
        .into();
    cards(&made.collect::<Vec<_>>(), &names, caption)
}

fn owned(image: Image<'_>) -> ImageBuf {
    ImageBuf::from_rgb(image.width(), image.height(), image.rgb().to_vec()).expect("it is a picture")
}

fn saliency_figures(found: &Found, findings: &Findings) -> Vec<Figure> {
    let [ranks, ranks_null, overlap, overlap_null] = findings.agreement;
    let row = |name: &str, kind: &str, ink, (value, interval): Mean| DotRow {
        name: name.into(),
        kind: kind.into(),
        ink,
        value,
        interval,
        remark: None,
    };
    let agreement = dots(DotPlot {
        name: "agreement",
        title: "Do both methods agree?",
        caption: format!(
            "Rank correlation over all patches, and the overlap (intersection over union) of the looked-at patches with as \
             many of the most salient, over {}; {}. Null: the attention at another moment.",
            count(findings.salient, "decision"),
            intervals("bars", found.episodes.len())
        ),
        wide: true,
        axis: "agreement",
        domain: None,
        band: None,
        label: short,
        rows: vec![
            row("rank correlation", "same moment", Ink::Attention, ranks),
            row("rank correlation", "null", Ink::Muted, ranks_null),
            row("overlap", "same moment", Ink::Attention, overlap),
            row("overlap", "null", Ink::Muted, overlap_null),
        ],
    });
    let rows: Vec<SaliencyRow<'_>> = found
        .cards
        .iter()
        .filter_map(|taken| {
            let salient = found.probed[0].iter().find(|p| p.step == taken.step)?.salient.as_ref()?;
            Some(SaliencyRow {
                step: taken.step,
                picture: taken.seen.newest(),
                importance: taken.importance.iter().map(|&v| f64::from(v)).collect(),
                saliency: salient.map.clone(),
                ranks: salient.agreement.ranks,
            })
        })
        .collect();
    let maps = saliency_maps(
        &rows,
        found.grid,
        "importance",
        format!(
            "Above, the agent's own importance; below, how much the action changes when a place is blurred softly (σ = \
             {BUMP_PX} pixels, Greydanus et al. 2018)."
        ),
    );
    vec![maps, agreement]
}

fn ink(fill: Fill) -> Ink {
    match fill {
        Fill::Blur => Ink::Attention,
        Fill::Mean => Ink::Control,
    }
}

/// What bars and bands show, in words.
pub(super) fn intervals(what: &str, episodes: usize) -> String {
    if episodes == 1 {
        "one episode has no interval".to_owned()
    } else {
        format!("{what}: 95 % over {episodes} episodes")
    }
}

pub(super) fn said(fill: Fill) -> &'static str {
    match fill {
        Fill::Blur => "blur",
        Fill::Mean => "mean colour",
    }
}

/// Where the votes of a picture come from.
fn whose_votes(found: &Found) -> String {
    let sum = found.shown.maps.first().map_or(0.0, |map| map.iter().map(|&votes| f64::from(votes)).sum());
    match found.shown.looked_at {
        LookedAt::Chosen => "Each patch of a picture hands out one vote.".into(),
        LookedAt::Marked | LookedAt::Weighted => {
            format!("The patches of a picture get {} votes together.", short(sum))
        }
    }
}
