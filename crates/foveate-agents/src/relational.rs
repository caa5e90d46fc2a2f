//! The relational module (Zambaldi et al. 2019, "Deep reinforcement learning with relational inductive biases", in the form
//! of *Deep Reinforcement Learning in Action*, chapter 10): every cell of a feature map is a node, attention between nodes
//! computes relations, and the largest answer over all nodes decides.
//!
//! Three networks: [`digits`] classifies handwritten digits, [`digits_baseline`] is the convolutional network that it is
//! compared with, and [`QNetworkConfig`] describes the one that values the actions in a grid world.

pub mod agent;
mod choices;
pub mod classifier;

use foveate_learn::{
    Add, Builder, Conv, Coordinates, Function, LayerNorm, Linear, MaxOverTokens, MaxPool, Network,
    NetworkError, Node, PairSums, Softmax, SoftmaxAttention, WeightedSum,
};
use serde::{Deserialize, Serialize};

/// A network from an input to an output, with a layer whose kept numbers are attention.
#[derive(Debug)]
pub struct Relational {
    /// The network.
    pub net: Network,
    input: Node,
    /// Its output: logits of the classes, or the values of the actions.
    pub output: Node,
    /// The value of the state, for policy gradients; `None` without a critic.
    pub critic: Option<Node>,
    /// Where the weights of its attention are, `[heads, nodes, nodes]`; `None` without attention.
    pub attention: Option<AttentionNode>,
}

impl Relational {
    /// Its only input.
    pub const fn input(&self) -> Node {
        self.input
    }
}

/// Where a network has the weights of its attention.
#[derive(Debug, Clone, Copy)]
pub enum AttentionNode {
    /// They are the numbers of this node.
    Output(Node),
    /// The layer of this node keeps them.
    Kept(Node),
}

/// The relational network for pictures of 28 × 28 pixels, `[28, 28, 1]` from 0 to 1, and ten classes: 85,228 parameters.
///
/// # Errors
/// Never: the sizes are fixed.
pub fn digits() -> Result<Relational, NetworkError> {
    const FEATURES: usize = 36;
    let mut net = Builder::default();
    let input = net.input("picture", [28, 28, 1]);
    let mut x = input;
    for (name, filters) in [("conv1", 16), ("conv2", 20), ("conv3", 24), ("conv4", 30)] {
        x = net.layer(name, Conv::new(filters, 4), [x]);
        x = net.map(Function::Relu, x);
    }
    // 16 × 16 nodes of 30 features, and the place of each.
    let x = net.then(Coordinates, [x]);
    let nodes = net.reshape(x, [256, 32]);
    let [query, key, value] = ["query", "key", "value"].map(|name| {
        let x = net.layer(name, Linear::new(FEATURES), [nodes]);
        net.layer(&format!("{name}_norm"), LayerNorm::over(2).with_affine(), [x])
    });
    let attention = SoftmaxAttention::new(1.0 / (FEATURES as f32).sqrt());
    let answers = net.then(attention, [query, key, value]);
    let x = net.layer("linear1", Linear::new(FEATURES), [answers]);
    let x = net.map(Function::Relu, x);
    let x = net.then(LayerNorm::over(2), [x]);
    let x = net.then(MaxOverTokens, [x]);
    let output = net.layer("linear2", Linear::new(10), [x]);
    let net = net.build(&[output])?;
    Ok(Relational { net, input, output, critic: None, attention: Some(AttentionNode::Kept(answers)) })
}

/// The convolutional network that [`digits`] is compared with, of about as many parameters: 88,252.
///
/// # Errors
/// Never: the sizes are fixed.
pub fn digits_baseline() -> Result<Relational, NetworkError> {
    let mut net = Builder::default();
    let input = net.input("picture", [28, 28, 1]);
    let mut x = input;
    for (name, filters) in [("conv1", 10), ("conv2", 16), ("conv3", 24), ("conv4", 32), ("conv5", 64)] {
        x = net.layer(name, Conv::new(filters, 4), [x]);
        x = net.map(Function::Relu, x);
        if name == "conv2" {
            x = net.then(MaxPool::new(2), [x]);
        }
    }
    let x = net.reshape(x, [256]);
    let x = net.layer("linear1", Linear::new(128), [x]);
    let x = net.map(Function::Relu, x);
    let output = net.layer("linear2", Linear::new(10), [x]);
    Ok(Relational { net: net.build(&[output])?, input, output, critic: None, attention: None })
}

/// How nodes attend to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scores {
    /// `W_a` `ELU(W_q` q + `W_k` k), one score for each index of a node: a node's scores depend on that node alone. This is what
    /// the book's code computes.
    #[default]
    Indices,
    /// `w_a` `ELU(W_q` `q_i` + `W_k` `k_j`) for every pair of nodes, additive attention as in Bahdanau et al. 2015.
    Pairs,
    /// `q_i` · `k_j` / √d for every pair of nodes, as in Vaswani et al. 2017 and Zambaldi et al. 2019; the cheapest of the three.
    Products,
}

/// The network that values the actions in a grid world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QNetworkConfig {
    /// Rows and columns of the view.
    pub view: [usize; 2],
    /// Numbers in a cell.
    pub channels: usize,
    /// Number of actions.
    pub actions: usize,
    /// Filters of the two 1 × 1 convolutions.
    pub filters: [usize; 2],
    /// Heads of the attention.
    pub heads: usize,
    /// Numbers in a query, a key and a value of one head.
    pub head_dim: usize,
    /// How nodes attend to each other.
    pub scores: Scores,
    /// Hidden units for scores of pairs; scores of indices have as many as there are nodes.
    pub score_dim: usize,
    /// Features of a node after the attention.
    pub features: usize,
    /// True if values go through ELU, so that none is below −1.
    pub elu_output: bool,
    /// What the codes of the cells are divided by.
    pub divisor: Divisor,
    /// Actions are drawn from the softmax of the values divided by this; 0 for the action of the largest value.
    pub temperature: f64,
    /// True if another layer estimates the value of the state, so that the agent learns by policy gradients: what are values of
    /// actions elsewhere are logits then, with a `temperature` of 1. Left out of the configuration where it is not so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub critic: bool,
}

/// What the codes of an observation are divided by before the network.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Divisor {
    /// The largest code of the observation, as the book does: all numbers change when an object of a larger code comes into
    /// view.
    Largest,
    /// 10, the largest code of a kind of object, in every observation.
    #[default]
    Ten,
    /// 1, for observations with a bit for each kind, colour and state.
    One,
}

impl Default for QNetworkConfig {
    fn default() -> Self {
        QNetworkConfig {
            view: [7, 7],
            channels: 3,
            actions: 5,
            filters: [16, 20],
            heads: 3,
            head_dim: 64,
            scores: Scores::Indices,
            score_dim: 49,
            features: 64,
            elu_output: true,
            divisor: Divisor::default(),
            temperature: 0.0,
            critic: false,
        }
    }
}

impl QNetworkConfig {
    /// The network, from `[rows, columns, channels]` to the values of the actions: 91,597 parameters by default.
    ///
    /// # Errors
    /// When a size is 0 or too large, with the layer.
    pub fn build(&self) -> Result<Relational, NetworkError> {
        let mut net = Builder::default();
        let (input, projected) = self.look(&mut net);
        let (answers, attention) = self.attend(&mut net, projected);
        let (output, critic) = self.value(&mut net, answers);
        let weights = match attention {
            AttentionNode::Output(weights) => Some(weights),
            AttentionNode::Kept(_) => None,
        };
        let outputs: Vec<Node> = [Some(output), critic, weights].into_iter().flatten().collect();
        Ok(Relational { net: net.build(&outputs)?, input, output, critic, attention: Some(attention) })
    }

    /// The network in two: up to the attention, and from it on. The parameters of the first are the first of the network, those
    /// of the second the last.
    ///
    /// # Errors
    /// As [`QNetworkConfig::build`].
    pub(crate) fn halves(&self) -> Result<Halves, NetworkError> {
        let mut net = Builder::default();
        let (_, projected) = self.look(&mut net);
        let (answers, attention) = self.attend(&mut net, projected);
        let [_, _, value] = projected;
        let weights = match attention {
            AttentionNode::Output(node) | AttentionNode::Kept(node) => node,
        };
        let front = net.build(&[answers, weights, value])?;

        let nodes = self.nodes();
        let mut net = Builder::default();
        let weights = net.input("weights", [self.heads, nodes, nodes]);
        let values = net.input("values", [self.heads, nodes, self.head_dim]);
        let answers = net.then(WeightedSum, [weights, values]);
        let (output, critic) = self.value(&mut net, answers);
        let outputs: Vec<Node> = [Some(output), critic].into_iter().flatten().collect();
        Ok(Halves { front, attention, values: value, back: net.build(&outputs)?, output, critic })
    }

    /// Nodes: the cells of the view.
    const fn nodes(&self) -> usize {
        self.view[0].saturating_mul(self.view[1])
    }

    /// 1. Features of every cell, with its place, make queries, keys and values, `[heads, nodes, head_dim]` each.
    fn look(&self, net: &mut Builder) -> (Node, [Node; 3]) {
        let [rows, columns] = self.view;
        let width = self.heads.saturating_mul(self.head_dim);
        let input = net.input("view", [rows, columns, self.channels]);
        let mut x = input;
        for (name, filters) in [("conv1", self.filters[0]), ("conv2", self.filters[1])] {
            x = net.layer(name, Conv::new(filters, 1), [x]);
            x = net.map(Function::Relu, x);
        }
        let x = net.then(Coordinates, [x]);
        let x = net.reshape(x, [self.nodes(), self.filters[1].saturating_add(2)]);
        let projected = ["query", "key", "value"].map(|name| {
            let x = net.layer(name, Linear::new(width).split(self.heads), [x]);
            net.layer(&format!("{name}_norm"), LayerNorm::over(3).with_affine(), [x])
        });
        (input, projected)
    }

    /// 2. Answers of all nodes, and where the weights behind them are.
    fn attend(&self, net: &mut Builder, [query, key, value]: [Node; 3]) -> (Node, AttentionNode) {
        let nodes = self.nodes();
        let scores = match self.scores {
            Scores::Indices => {
                let query = net.layer("score_query", Linear::new(nodes), [query]);
                let key = net.layer("score_key", Linear::new(nodes), [key]);
                let x = net.then(Add, [query, key]);
                let x = net.map(Function::Elu, x);
                net.layer("score", Linear::new(nodes), [x])
            }
            Scores::Pairs => {
                let query = net.layer("score_query", Linear::new(self.score_dim), [query]);
                let key = net.layer("score_key", Linear::new(self.score_dim).without_bias(), [key]);
                let x = net.then(PairSums, [query, key]);
                let x = net.map(Function::Elu, x);
                let x = net.layer("score", Linear::new(1).without_bias(), [x]);
                net.reshape(x, [self.heads, nodes, nodes])
            }
            Scores::Products => {
                let scale = 1.0 / (self.head_dim as f32).sqrt();
                let x = net.then(SoftmaxAttention::new(scale), [query, key, value]);
                return (x, AttentionNode::Kept(x));
            }
        };
        let weights = net.then(Softmax, [scores]);
        (net.then(WeightedSum, [weights, value]), AttentionNode::Output(weights))
    }

    /// 3. The largest answer over all nodes values the actions, and the state where there is a critic.
    fn value(&self, net: &mut Builder, answers: Node) -> (Node, Option<Node>) {
        let x = net.layer("linear1", Linear::new(self.features).merging(), [answers]);
        let x = net.map(Function::Relu, x);
        let x = net.then(LayerNorm::over(2), [x]);
        let x = net.then(MaxOverTokens, [x]);
        let values = net.layer("linear2", Linear::new(self.actions), [x]);
        let output = if self.elu_output { net.map(Function::Elu, values) } else { values };
        (output, self.critic.then(|| net.layer("critic", Linear::new(1), [x])))
    }
}

/// A [`QNetworkConfig`]'s network in two.
#[derive(Debug)]
pub(crate) struct Halves {
    /// Its input is the view.
    pub(crate) front: Network,
    pub(crate) attention: AttentionNode,
    /// Of the front, `[heads, nodes, head_dim]`.
    pub(crate) values: Node,
    /// Its inputs are weights, `[heads, nodes, nodes]`, and values, `[heads, nodes, head_dim]`.
    pub(crate) back: Network,
    /// Of the back.
    pub(crate) output: Node,
    /// Of the back.
    pub(crate) critic: Option<Node>,
}

#[cfg(test)]
mod tests {
    use foveate_learn::check;

    use super::*;

    #[test]
    fn parameters_are_counted_as_published() {
        assert_eq!(digits().expect("fixed").net.params(), 85_228);
        assert_eq!(digits_baseline().expect("fixed").net.params(), 88_252);
        assert_eq!(QNetworkConfig::default().build().expect("default").net.params(), 91_597);
    }

    #[test]
    fn gradients_are_those_of_the_functions() {
        let small = QNetworkConfig {
            view: [3, 2],
            actions: 4,
            filters: [3, 2],
            heads: 2,
            head_dim: 5,
            score_dim: 3,
            features: 6,
            ..QNetworkConfig::default()
        };
        for scores in [Scores::Indices, Scores::Pairs, Scores::Products] {
            for elu_output in [true, false] {
                let config = QNetworkConfig { scores, elu_output, critic: !elu_output, ..small.clone() };
                let made = config.build().expect("small");
                check::network(&made.net, &[made.input()], made.output, 1e-4);
                assert_eq!(made.critic.is_some(), !elu_output);
                if let Some(critic) = made.critic {
                    check::network(&made.net, &[made.input()], critic, 1e-4);
                }
            }
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for (config, layer) in [
            (QNetworkConfig { view: [0, 7], ..QNetworkConfig::default() }, "view"),
            (QNetworkConfig { heads: 0, ..QNetworkConfig::default() }, "query"),
            (QNetworkConfig { head_dim: usize::MAX, ..QNetworkConfig::default() }, "query"),
            (QNetworkConfig { filters: [16, usize::MAX], ..QNetworkConfig::default() }, "conv2"),
        ] {
            let said = config.build().expect_err("impossible").to_string();
            assert!(said.starts_with(&format!("layer {layer}: ")), "{said}");
        }
    }
}
