//! The bottleneck: it reduces a picture to a few features of its K most important patches.
//!
//! Equation (1) of Choromanski et al. 2021, of which the attention of Tang, Nguyen and Ha 2020 is a case:
//! `[π(A c)]_{1:K} V`. Patches are projected to queries and keys, [votes](crate::voting) give their importance, and the
//! [features](crate::features) of the K selected patches are concatenated in the order of the selection.

pub(crate) mod graph;

use foveate_core::{
    Attention, EnvSpec, Image, Observation, Opened, PatchGrid, Pixels, PolicyError, Seed, Selected,
    TensorShape, Threads, rank_by_importance,
};
use foveate_kernels::project::{Projector, Strip};
use foveate_kernels::top_k::{top_k, top_k_apart};
use foveate_kernels::{Embedded, Level};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::{FeatureConfig, MAX_SIDE, Scale, bad, within};
use crate::descriptor::{self, Init};
use crate::features::Features;
use crate::fit;
use crate::params::Params;
use crate::voting::{MAX_PATCHES, Voter, VotingConfig};

/// Most numbers that queries and keys of all patches may have together.
const MAX_EMBEDDED: usize = 64 << 20;

/// The tensor of [`Aggregation::Learned`], `[patches]`.
const AGGREGATION: &str = "aggregation.weight";

/// Most threads that share the work on one picture.
const MAX_THREADS: usize = 256;

/// The configuration of a bottleneck; agents have these keys among their own.
#[derive(Debug, Clone, PartialEq)]
pub struct BottleneckConfig {
    /// Width and height of the picture in pixels.
    pub image: [usize; 2],
    /// True if the depth of a pixel is its fourth channel.
    pub depth: bool,
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Distance between neighbouring patches in pixels.
    pub stride: usize,
    /// Length of a query and of a key.
    pub query_dim: usize,
    /// Number of selected patches, K.
    pub top_k: usize,
    /// The divisor of queries × keys.
    pub scale: Scale,
    /// The attention kernel.
    pub voting: VotingConfig,
    /// The weight of each patch's vote: c of equation (1).
    pub aggregation: Aggregation,
    /// Which patches are selected, and in which order: π of equation (1).
    pub selection: Selection,
    /// The features of a selected patch: V of equation (1).
    pub features: FeatureConfig,
}

/// The weight of each patch's vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregation {
    /// All weights are 1.
    #[default]
    Ones,
    /// A learned weight per patch: the tensor `aggregation.weight`, `[patches]`, which is initialised with ones.
    Learned,
}

/// Which patches are selected, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// The most important patches, most important first.
    #[default]
    Best,
    /// The most important patches, row-major from the top left.
    BestInPlace,
    /// The least important patches, least important first.
    Least,
    /// The most important patches, most important first, without those whose corners are nearer than so many pixels to one
    /// of these along both axes: they show much the same. When no others are left, the most important of them follow.
    Apart(usize),
}

impl BottleneckConfig {
    /// Checks everything and cuts the picture into patches.
    ///
    /// # Errors
    /// When a value is out of bounds, the patch is larger than the picture, or there are fewer patches than `top_k`.
    pub fn check(&self) -> Result<PatchGrid, PolicyError> {
        let [width, height] = self.image;
        within("image width", width, MAX_SIDE)?;
        within("image height", height, MAX_SIDE)?;
        within("stride", self.stride, MAX_SIDE)?;
        let grid = PatchGrid::tile(width, height, self.patch, self.stride)?;
        if grid.len() > MAX_PATCHES {
            return bad(format!(
                "{} patches; at most {MAX_PATCHES} are possible, so raise stride",
                grid.len()
            ));
        }
        within("query_dim", self.query_dim, MAX_EMBEDDED)?;
        if grid.len().saturating_mul(2 * self.query_dim) > MAX_EMBEDDED {
            let n = grid.len();
            return bad(format!(
                "query_dim = {} for {n} patches is too large; lower it or raise stride",
                self.query_dim
            ));
        }
        within("top_k", self.top_k, usize::MAX)?;
        if self.top_k > grid.len() {
            return Err(PolicyError::TooFewPatches { wanted: self.top_k, available: grid.len() });
        }
        if let Selection::Apart(pixels) = self.selection {
            within("selection.apart", pixels, MAX_SIDE)?;
        }
        self.voting.check(self.query_dim)?;
        if self.aggregation == Aggregation::Learned && !self.voting.weighs_votes() {
            return bad(
                "aggregation = \"learned\" needs votes that can be weighed, and those of voting.kernel = \"softmax\" \
                 cannot; choose another kernel, as \"softmax_kernel\"",
            );
        }
        self.features.check(self.patch)?;
        Ok(grid)
    }

    /// Numbers in a pixel.
    pub const fn channels(&self) -> usize {
        if self.depth { 4 } else { 3 }
    }

    /// Numbers in a patch.
    pub const fn patch_len(&self) -> usize {
        self.patch * self.patch * self.channels()
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.top_k.saturating_mul(self.features.per_patch(self.patch))
    }

    /// Name and shape of its parameter tensors, which come first in an agent's flat vector.
    pub fn tensors(&self) -> Vec<TensorShape> {
        let (d, d_in) = (self.query_dim, self.patch_len());
        let mut all = vec![
            ("query.bias", vec![d]),
            ("query.weight", vec![d, d_in]),
            ("key.bias", vec![d]),
            ("key.weight", vec![d, d_in]),
        ];
        if let (Aggregation::Learned, Ok(grid)) =
            (self.aggregation, PatchGrid::tile(self.image[0], self.image[1], self.patch, self.stride))
        {
            all.push((AGGREGATION, vec![grid.len()]));
        }
        if let Some(conv) = self.features.conv
            && conv.evolved
        {
            all.push(("conv.bias", vec![conv.filters]));
            all.push(("conv.weight", vec![conv.filters, conv.size, conv.size, 3]));
        }
        all.into_iter().map(|(name, shape)| TensorShape { name: name.to_owned(), shape }).collect()
    }
}

/// A bottleneck of a valid configuration. Zero weights until [`Bottleneck::pack`].
#[derive(Debug, Clone)]
pub(crate) struct Bottleneck {
    config: BottleneckConfig,
    grid: PatchGrid,
    projector: Projector,
    features: Features,
    /// `[patches]` when it is learned, else empty.
    aggregation: Vec<f32>,
    /// Threads that share the work on one picture.
    threads: Threads,
    /// How many of the selected patches the controller gets.
    told: usize,
    /// `[per_patch]`: the inputs for a patch that the controller does not get.
    neutral: Vec<f32>,
}

/// The scratch space of a bottleneck, and what it attended to last.
#[derive(Debug, Clone)]
pub(crate) struct BottleneckScratch {
    importance: Vec<f32>,
    /// The selected patches, in the order of the selection.
    chosen: Vec<u32>,
    /// The rank of each, by importance.
    ranks: Vec<u32>,
    workspace: Workspace,
}

/// What is needed while patches are selected. It is made at the first look; a copy makes its own.
#[derive(Debug, Default)]
struct Workspace(Option<Box<Buffers>>);

impl Clone for Workspace {
    fn clone(&self) -> Self {
        Workspace(None)
    }
}

#[derive(Debug)]
struct Buffers {
    /// `[height, width, 4]` with depth, else empty.
    rgbd: Vec<u8>,
    /// `[height, width, 3]` for pictures that are not RGB, else empty.
    rgb: Vec<u8>,
    strip: Strip,
    embedded: Embedded,
    voter: Voter,
    order: Vec<u32>,
    negated: Vec<f32>,
    /// The votes of the patches that can still be selected.
    left: Vec<f32>,
}

impl Bottleneck {
    /// A bottleneck of zero weights.
    ///
    /// # Errors
    /// When the configuration makes no sense; see [`BottleneckConfig::check`].
    pub(crate) fn new(config: BottleneckConfig) -> Result<Self, PolicyError> {
        let grid = config.check()?;
        let [width, height] = config.image;
        Ok(Bottleneck {
            grid,
            projector: Projector::new(width, height, config.patch, config.stride, config.query_dim)
                .with_channels(config.channels()),
            features: Features::new(&config.features, config.patch),
            told: config.top_k,
            neutral: config.features.neutral(config.patch),
            aggregation: match config.aggregation {
                Aggregation::Ones => vec![],
                Aggregation::Learned => vec![1.0; grid.len()],
            },
            threads: Threads::one(),
            config,
        })
    }

    pub(crate) const fn config(&self) -> &BottleneckConfig {
        &self.config
    }

    pub(crate) const fn grid(&self) -> PatchGrid {
        self.grid
    }

    /// Converts the parameters to the layout that the kernels use. Does not allocate.
    pub(crate) fn pack(&mut self, params: &Params) {
        let divisor = self.config.scale.divisor(self.config.patch_len(), self.config.query_dim);
        let query = params.linear("query.weight", "query.bias");
        let key = params.linear("key.weight", "key.bias");
        self.projector.set(query, key, self.config.voting.scales(divisor));
        self.aggregation.copy_from_slice(params.get(AGGREGATION));
        if self.config.features.conv.is_some_and(|conv| conv.evolved) {
            self.features.set_conv(params.linear("conv.weight", "conv.bias"));
        }
    }

    /// Threads that share the work on one picture, for scratch space made from now on.
    pub(crate) fn set_threads(&mut self, threads: &Threads) {
        self.threads = threads.at_most(MAX_THREADS);
    }

    /// Number of selected patches, K.
    pub(crate) const fn patches(&self) -> usize {
        self.config.top_k
    }

    /// Replaces the features of all but the first `k` selected patches by neutral values.
    pub(crate) fn limit_patches(&mut self, k: usize) {
        self.told = k.min(self.config.top_k);
    }

    pub(crate) fn scratch(&self) -> BottleneckScratch {
        BottleneckScratch {
            importance: vec![0.0; self.grid.len()],
            chosen: vec![0; self.config.top_k],
            // With `Selection::Best` the order is the rank.
            ranks: (0..self.config.top_k as u32).collect(),
            workspace: Workspace::default(),
        }
    }

    fn buffers(&self) -> Box<Buffers> {
        let patches = self.grid.len();
        let [width, height] = self.config.image;
        let least = self.config.selection == Selection::Least;
        Box::new(Buffers {
            rgbd: vec![0; if self.config.depth { width * height * 4 } else { 0 }],
            rgb: vec![],
            strip: self.projector.strip_for(&self.threads),
            embedded: self.projector.embedded(),
            voter: self.config.voting.voter(patches, self.config.query_dim, &self.threads),
            order: Vec::with_capacity(patches),
            negated: vec![0.0; if least { patches } else { 0 }],
            left: vec![],
        })
    }

    /// The pictures in `observation` and their depths, if they are grey or RGB and the frames, one below the other, have the
    /// configured size.
    fn picture<'o>(
        &self,
        observation: Observation<'o>,
    ) -> Result<(Pixels<'o>, Option<&'o [u8]>), PolicyError> {
        let [width, height] = self.config.image;
        let depth = if self.config.depth { observation.depth() } else { None };
        let depth = depth.map(|depth| depth.bytes()).filter(|depth| depth.len() == width * height);
        match observation.image() {
            Some(pixels)
                if pixels.shape().tall() == (width, height)
                    && matches!(pixels.channels(), 1 | 3)
                    && (depth.is_some() || !self.config.depth) =>
            {
                Ok((pixels, depth))
            }
            _ => {
                let depth = if self.config.depth { " with depth" } else { "" };
                let wanted = format!("a picture of {width}x{height}{depth}");
                Err(PolicyError::ObservationShape { wanted, given: observation.describe() })
            }
        }
    }

    /// Selects patches of `observation` and writes their features to `values`, `[top_k, per_patch]`.
    ///
    /// # Errors
    /// When the observation has another shape, or the votes are not finite.
    pub(crate) fn look(
        &self,
        level: Level,
        observation: Observation<'_>,
        scratch: &mut BottleneckScratch,
        values: &mut [f32],
    ) -> Result<(), PolicyError> {
        let (pixels, depth) = self.picture(observation)?;
        let BottleneckScratch { importance, chosen, ranks, workspace } = scratch;
        let g = &mut **workspace.0.get_or_insert_with(|| self.buffers());
        // Grey pictures have as much red as green and blue.
        let image: Image<'_> = pixels.to_rgb(&mut g.rgb);
        let mut pixels = image.rgb();
        if let Some(depth) = depth {
            let colours = image.rgb().as_chunks::<3>().0;
            for ((to, &[r, g, b]), &far) in g.rgbd.as_chunks_mut::<4>().0.iter_mut().zip(colours).zip(depth) {
                *to = [r, g, b, far];
            }
            pixels = &g.rgbd;
        }
        // Patches to queries and keys, queries and keys to votes, votes to the top K.
        self.projector.project(level, pixels, &mut g.strip, &mut g.embedded);
        let weights = (!self.aggregation.is_empty()).then_some(&self.aggregation[..]);
        g.voter.compute(level, &g.embedded, weights, self.config.top_k, importance)?;
        match self.config.selection {
            Selection::Best => top_k(importance, chosen, &mut g.order),
            Selection::BestInPlace => {
                top_k(importance, chosen, &mut g.order);
                chosen.sort_unstable();
            }
            Selection::Least => {
                for (to, from) in g.negated.iter_mut().zip(importance.iter()) {
                    *to = -from;
                }
                top_k(&g.negated, chosen, &mut g.order);
            }
            Selection::Apart(pixels) => {
                let reach = (pixels - 1) / self.config.stride;
                top_k_apart(importance, self.grid.columns(), reach, chosen, &mut g.left);
            }
        }
        if self.config.selection != Selection::Best {
            rank_by_importance(chosen, importance, ranks, &mut g.order);
        }
        self.features.extract(level, image, self.grid, chosen, values);
        for unknown in values.chunks_exact_mut(self.neutral.len().max(1)).skip(self.told) {
            unknown.copy_from_slice(&self.neutral);
        }
        Ok(())
    }

    /// Opens the decision whose patches were selected last and whose features are `values`: the selected patches are the units,
    /// and their votes the weights.
    pub(crate) fn open(scratch: &BottleneckScratch, values: &[f32], opened: &mut Opened) {
        let BottleneckScratch { chosen, importance, .. } = scratch;
        opened.units = chosen.len();
        opened.hard = true;
        opened.tokens.clone_from(chosen);
        opened.readers = 1;
        opened.means = false;
        opened.weights.clear();
        opened.weights.extend(chosen.iter().map(|&patch| importance[patch as usize]));
        opened.values.clear();
        opened.values.extend_from_slice(values);
        opened.terms.clear();
    }

    /// Writes the values of an opened decision over the features of the selected patches.
    ///
    /// # Errors
    /// [`PolicyError::BadAttention`] when there are not as many.
    pub(crate) fn resume(&self, opened: &Opened, values: &mut [f32]) -> Result<(), PolicyError> {
        if opened.values.len() != values.len() {
            let why = format!(
                "{} values, where the controller takes {} of {} patches",
                opened.values.len(),
                values.len(),
                self.config.top_k
            );
            return Err(PolicyError::BadAttention { why });
        }
        values.copy_from_slice(&opened.values);
        Ok(())
    }

    /// The attention of the last decision: one vote per patch, and the selected patches.
    ///
    /// # Errors
    /// Never: grid, votes and selection have the configured sizes.
    pub(crate) fn attention<'s>(&self, scratch: &'s BottleneckScratch) -> Result<Attention<'s>, PolicyError> {
        let selected = Selected { tokens: &scratch.chosen, ranks: &scratch.ranks };
        Ok(Attention::patches(self.grid, &scratch.importance, selected)?.told(self.told))
    }
}

/// Initial parameters of an agent with a bottleneck. Aggregation weights start at ones: with zeros, all patches would be
/// equally important and there would be nothing to learn from.
pub(crate) fn initial_params(tensors: &[TensorShape], init: Init, seed: Seed) -> Vec<f32> {
    let mut params = descriptor::draw(tensors, init, seed);
    let mut rest = &mut params[..];
    for tensor in tensors {
        let (numbers, behind) = rest.split_at_mut(tensor.len());
        if tensor.name == AGGREGATION {
            numbers.fill(1.0);
        }
        rest = behind;
    }
    params
}

/// Settings that fit an agent with a bottleneck to a world with a picture.
pub(crate) fn fit(spec: &EnvSpec, _: &[[f64; 2]]) -> Value {
    let actions = spec.action.bounds();
    let Some((image, stride)) = fit::picture(spec) else { return json!({ "actions": actions }) };
    json!({ "image": image, "stride": stride, "actions": actions })
}
